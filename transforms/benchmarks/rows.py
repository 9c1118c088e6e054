"""The rows that the items of a benchmark become."""

from typing import Any

from eqforge.schemas.tables.benchmark_rows import (
    BenchmarkFoil,
    BenchmarkPair,
    BenchmarkQuestion,
    BenchmarkRewording,
)
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.sources.benchmarks.form import BenchmarkItem


def sample_row(
    benchmark: str, item: BenchmarkItem, ids: tuple[str | None, ...], source_sha256: str | None
) -> Any:
    """Returns an item's row of `samples`, of the record of its benchmark.

    Args:
      benchmark: a key of BENCHMARKS.
      item: of the benchmark.
      ids: keys of its images into `images`, each None where there are no pictures.
      source_sha256: of the file that a part was cut out of; None where none was.
    """
    common: dict[str, Any] = {
        "sample_id": item.item_id,
        "dataset": benchmark,
        "split": item.split,
        "kind": item.kind,
        "annotation": item.annotation,
    }
    record = BENCHMARKS[benchmark].type.table("samples").record
    if record is BenchmarkPair:
        return BenchmarkPair(
            **common,
            source_id=item.source_id,
            caption_0=item.texts[0],
            caption_1=item.texts[1],
            image_0=item.names[0],
            image_0_id=ids[0],
            image_1=item.names[1],
            image_1_id=ids[1],
        )
    common |= {"image": item.names[0], "image_id": ids[0]}
    if record is BenchmarkQuestion:
        return BenchmarkQuestion(
            **common,
            group_id=item.group or item.item_id,
            question=item.texts[0],
            options=item.negatives,
            answer=item.answer,
        )
    common |= {
        "item_id": item.group or item.item_id,
        "caption": item.texts[0],
        "hard_negative": item.negatives[0],
        "box": item.box,
        "source_sha256": source_sha256,
    }
    if record is BenchmarkFoil:
        return BenchmarkFoil(**common)
    return BenchmarkRewording(**common, hard_positive=item.texts[1])
