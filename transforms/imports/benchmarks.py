"""Imports the items of a benchmark: checks their texts and finds their images."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from eqforge.generators.text.caption_lint import CAPTION_REASONS, CaptionSettings, lint_caption
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject, Stage
from eqforge.schemas.tables.benchmark_rows import (
    BenchmarkFoil,
    BenchmarkPair,
    BenchmarkQuestion,
    BenchmarkRewording,
)
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.sources.benchmarks.form import NO_IMAGE, NOT_CONFIRMED, BenchmarkItem
from eqforge.transforms.dataset.failures import guarded
from eqforge.transforms.dataset.image_folder import (
    FOLDER_REASONS,
    FoundImage,
    ImageFolder,
    store_image,
)
from eqforge.transforms.dataset.plan import is_wanted
from eqforge.transforms.dataset.tables import BatchWork
from eqforge.transforms.filters.pairs import PAIRS_STAGE

ANY_LENGTH: Final = CaptionSettings(max_chars=None, max_tokens=None)
ITEMS_STAGE: Final = Stage(
    "items",
    {
        "unreadable_record": "The record is invalid or lacks a field. See the column `detail`.",
        NO_IMAGE: "The record lacks an image name, although other records have one.",
        NOT_CONFIRMED: "Fewer than two of the three annotators preferred the caption to the foil.",
        "same_image": PAIRS_STAGE.reasons["same_image"],
        "bad_box": "A box is empty or lies outside its image.",
        **{name: CAPTION_REASONS[name] for name in ("empty_caption", "control_characters")},
        **FOLDER_REASONS,
    },
)


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkBatch:
    """Items that are imported together; the same items in every run."""

    items: tuple[BenchmarkItem, ...]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkRules:
    """How items are imported.

    Attributes:
      media: the media store of images that are embedded in tables.
      unconfirmed: whether items that the publication leaves out are kept.
    """

    benchmark: str
    images: ImageFolder | None
    media: str
    unconfirmed: bool = False
    only: tuple[str, ...] = ()


def import_batch(batch: BenchmarkBatch, rules: BenchmarkRules) -> BatchWork:
    items = [item for item in batch.items if is_wanted(item.item_id, rules.only)]
    samples: list[Any] = []
    rejects: list[Reject] = []
    images: dict[str, ImageRow] = {}
    for item in items:
        found = guarded(partial(_admit, item, rules))
        if isinstance(found, Rejection):
            lineage = {"source_id": item.source_id or item.image, "source_path": item.image}
            rejects.append(ITEMS_STAGE.reject(item.item_id, found, **lineage))
            continue
        images |= {one.row.image_id: one.row for one in found}
        ids = tuple(one.row.image_id for one in found) or (None,) * len(item.images)
        cut = found[0].source_sha256 if found and item.box is not None else None
        samples.append(sample_row(rules.benchmark, item, ids, cut))
    return BatchWork(
        samples=tuple(samples),
        images=tuple(images.values()),
        rejects=tuple(rejects),
        tallies=(ITEMS_STAGE.tally(len(items), len(samples)),),
    )


def _admit(item: BenchmarkItem, rules: BenchmarkRules) -> tuple[FoundImage, ...] | Rejection:
    if item.problem:
        return Rejection(reason="unreadable_record", detail=item.problem)
    if item.refusal and not (rules.unconfirmed and item.refusal == NOT_CONFIRMED):
        return Rejection(reason=item.refusal)
    for text in (*item.texts, *item.negatives, *([item.answer] if item.answer else [])):
        if (rejection := lint_caption(" ".join(text.split()), ANY_LENGTH)) is not None:
            return rejection
    found: list[FoundImage] = []
    for name, image in _images(item, rules):
        if isinstance(image, Rejection):
            return replace(image, detail=f"{name}: {image.detail}" if image.detail else name)
        found.append(image)
    names = [one.row.image_id for one in found] or [name for name in item.images if name]
    if rules.benchmark == "own-pairs" and len(names) == 2 and len({*names}) == 1:
        return Rejection(reason="same_image", detail=" = ".join(item.images))
    return tuple(found)


def _images(
    item: BenchmarkItem, rules: BenchmarkRules
) -> Iterator[tuple[str, FoundImage | Rejection]]:
    cells = item.cells or (None,) * len(item.images)
    if not any(item.images) or (rules.images is None and not any(cells)):
        return
    for name, cell in zip(item.images, cells, strict=True):
        if cell is not None:
            yield name, store_image(rules.media, cell.read(), item.box, clip_boxes=False)
        elif rules.images is not None:
            yield name, rules.images.look_up(name, item.box)
        else:
            yield name, Rejection(reason="image_missing", detail="no folder of images was named")


def sample_row(
    benchmark: str, item: BenchmarkItem, ids: tuple[str | None, ...], source_sha256: str | None
) -> Any:
    """Return an item's row of `samples`, of the record of its benchmark.

    Args:
      ids: keys of its images into `images`, None for missing images.
      source_sha256: of the file that a crop comes from, if any.
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
