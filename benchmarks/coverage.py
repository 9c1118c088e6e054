"""Counts which captions get a hard positive and a hard negative, by kind, as Markdown tables.

python benchmarks/coverage.py annotations/captions_val2017.json
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path

from eqforge.generators.text.rewordings.rules import FAMILIES
from eqforge.schemas.records.scores import Rejection
from eqforge.sources.caption_sources import CaptionRecord, read_captions
from eqforge.transforms.text.caption_edits import EditedCaption, EditRules, edit_captions

IMAGES = 256


def edit_all(records: list[CaptionRecord]) -> Iterator[EditedCaption]:
    """Yields all captions with their texts, edited in batches of whole images."""
    images = [list(captions) for _, captions in groupby(records, key=lambda each: each.image)]
    for first in range(0, len(images), IMAGES):
        batch = [record for captions in images[first : first + IMAGES] for record in captions]
        yield from edit_captions(batch, EditRules(seed=0))


def table(title: str, counts: Mapping[str, int], captions: int) -> Iterator[str]:
    """Yields the lines of a Markdown table of counts, the most frequent first."""
    yield f"| {title} | rows | share of captions |"
    yield "|---|---:|---:|"
    for name, rows in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"| `{name}` | {rows:,} | {100 * rows / captions:.1f}% |"


def main() -> None:
    """Prints the coverage, the kinds that were drawn, and the speed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("captions", type=Path, help="a file of captions, as for --captions")
    records = sorted(read_captions(parser.parse_args().captions), key=lambda each: each.image)
    start = time.perf_counter()
    edited = list(edit_all(records))
    seconds = time.perf_counter() - start
    positives = [made.positive for made in edited if not isinstance(made.positive, Rejection)]
    negatives = [made.negative for made in edited if not isinstance(made.negative, Rejection)]
    both = [
        made
        for made in edited
        if not isinstance(made.positive, Rejection) and not isinstance(made.negative, Rejection)
    ]
    total = len(edited)
    print(f"{total:,} captions, {total / seconds:,.0f} a second in one process\n")
    for name, some in (("a hard positive", positives), ("a hard negative", negatives)):
        print(f"{name}: {len(some):,} ({100 * len(some) / total:.1f}%)")
    print(f"both: {len(both):,} ({100 * len(both) / total:.1f}%)\n")
    families = Counter(edit.kind.partition("/")[0] for edit in positives)
    print(*table("family of rewordings", families, total), sep="\n", end="\n\n")
    print(*table("hard negative", Counter(edit.kind for edit in negatives), total), sep="\n")
    assert set(families) <= {*FAMILIES, "swap"}


if __name__ == "__main__":
    main()
