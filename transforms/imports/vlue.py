"""Imports VLUE items: finds their images, lints them, and makes their rows."""

import os
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from eqforge.core.files.source_folder import SourceFolder
from eqforge.generators.text.caption_lint import CAPTION_REASONS, CaptionSettings, lint_caption
from eqforge.generators.text.words import count_words
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject, Stage
from eqforge.schemas.records.values import XywhBox
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.schemas.tables.vlue import (
    TASKS,
    CaptioningImage,
    Finding,
    GroundingPhrase,
    Nlvr2Statement,
    RetrievalCaption,
    VlueSample,
    VqaQuestion,
)
from eqforge.sources.vlue import VlueItem, canonical_name
from eqforge.transforms.dataset.failures import guarded
from eqforge.transforms.dataset.image_folder import FOLDER_REASONS, ImageFolder
from eqforge.transforms.dataset.plan import is_wanted
from eqforge.transforms.dataset.tables import BatchWork
from eqforge.transforms.imports.vlue_lints import MIN_WORDS, is_listed, lint_item, size_of

LIMITS = CaptionSettings(max_tokens=None)
ANNOTATIONS_STAGE = Stage(
    "annotations",
    {
        **FOLDER_REASONS,
        **{name: CAPTION_REASONS[name] for name in CAPTION_REASONS if not name.endswith("_tokens")},
    },
)


@dataclass(frozen=True, kw_only=True, slots=True)
class VlueBatch:
    """Items that are imported together; the same items in every run."""

    items: tuple[VlueItem, ...]

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, kw_only=True, slots=True)
class VlueRules:
    """How items are imported.

    Attributes:
      by_image: True in corrected mode: rows of one image are one retrieval candidate, and the pair
        rule of questions is checked.
    """

    by_image: bool
    answers: frozenset[str] | None = None
    min_words: int = MIN_WORDS
    images: ImageFolder | None = None
    only: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class VlueWork(BatchWork):
    """Rows of a batch by table, including the tables of the tasks, and the counts."""

    retrieval: tuple[RetrievalCaption, ...] = ()
    nlvr2: tuple[Nlvr2Statement, ...] = ()
    vqa: tuple[VqaQuestion, ...] = ()
    captioning: tuple[CaptioningImage, ...] = ()
    grounding: tuple[GroundingPhrase, ...] = ()
    findings: tuple[Finding, ...] = ()


def import_batch(batch: VlueBatch, rules: VlueRules) -> VlueWork:
    """Return the rows of a batch.

    An unusable item is rejected: a text is empty or has control characters, or an image is missing
    or does not decode. A breach of an annotation rule is only a finding.
    """
    items = [item for item in batch.items if is_wanted(item.item_id, rules.only)]
    rows: dict[str, list[Any]] = {name: [] for name in (*TASKS, "samples", "findings", "rejects")}
    images: dict[str, ImageRow] = {}
    for item in items:
        result = guarded(partial(import_item, item, rules))
        if isinstance(result, Rejection):
            rows["rejects"].append(_reject(item, result))
            continue
        rows["samples"].append(result.sample)
        rows[item.task].append(result.row)
        rows["findings"] += result.findings
        images |= {image.image_id: image for image in result.images}
    return VlueWork(
        images=tuple(images.values()),
        tallies=(ANNOTATIONS_STAGE.tally(len(items), len(rows["samples"])),),
        **{name: tuple(found) for name, found in rows.items()},
    )


def _reject(item: VlueItem, rejection: Rejection) -> Reject:
    image = item.image
    return ANNOTATIONS_STAGE.reject(item.item_id, rejection, source_id=image, source_path=image)


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """The rows of one item, by table."""

    sample: VlueSample
    row: Any
    findings: tuple[Finding, ...]
    images: tuple[ImageRow, ...]


def import_item(item: VlueItem, rules: VlueRules) -> Imported | Rejection:
    images = _admit(item, rules.images)
    if isinstance(images, Rejection):
        return images
    size = (images[0].width_px, images[0].height_px) if images else None
    ids = tuple(image.image_id for image in images) or (None,) * len(item.images)
    findings = tuple(
        lint_item(item, rules.answers, size, rules.min_words, pair_rule=rules.by_image)
    )
    return Imported(
        sample=sample_row(item, ids, findings),
        row=task_row(item, ids, by_image=rules.by_image, answers=rules.answers, size=size),
        findings=findings,
        images=images,
    )


def _admit(item: VlueItem, folder: ImageFolder | None) -> tuple[ImageRow, ...] | Rejection:
    for text in (*item.texts, *item.answers):
        rejection = lint_caption(text.strip(), LIMITS)
        if rejection is not None:
            return rejection
    found: list[ImageRow] = []
    if folder is not None:
        for name in item.images:
            image = folder.find(match_name(folder.root, name))
            if isinstance(image, Rejection):
                return image
            found.append(image)
    return tuple(found)


ImageIds = tuple[str | None, ...]


def sample_row(item: VlueItem, ids: ImageIds, findings: tuple[Finding, ...]) -> VlueSample:
    names = [canonical_name(image) for image in item.images]
    has_two = len(names) > 1
    return VlueSample(
        sample_id=item.item_id,
        task=item.task,
        split=item.split,
        group=names[0].partition("/")[0] if "/" in names[0] else "",
        image=names[0],
        image_id=ids[0],
        image_1=names[1] if has_two else None,
        image_1_id=ids[1] if has_two else None,
        source_image=item.images[0],
        source_image_1=item.images[1] if has_two else None,
        findings=tuple(sorted({finding.rule for finding in findings})),
    )


def task_row(
    item: VlueItem,
    ids: ImageIds,
    *,
    by_image: bool,
    answers: frozenset[str] | None,
    size: tuple[int, int] | None,
) -> Any:
    image: dict[str, Any] = {"sample_id": item.item_id, "image": item.image, "image_id": ids[0]}
    match item.task:
        case "retrieval":
            assert item.entry_id is not None
            assert item.number is not None
            return RetrievalCaption(
                **image,
                entry_id=item.entry_id,
                gallery_id=item.image if by_image else item.entry_id,
                number=item.number,
                caption=item.texts[0],
                words=count_words(item.texts[0]),
            )
        case "nlvr2":
            return _statement(item, ids)
        case "vqa":
            return VqaQuestion(
                **image,
                source_id=_source_id(item),
                question=item.texts[0],
                answers=item.answers,
                answer_listed=is_listed(item, answers),
            )
        case "captioning":
            return CaptioningImage(**image, source_id=item.source_id, references=item.texts)
        case "grounding":
            return _phrase(item, ids, size)


def _source_id(item: VlueItem) -> str:
    assert item.source_id is not None
    return item.source_id


def _statement(item: VlueItem, ids: ImageIds) -> Nlvr2Statement:
    assert item.label is not None
    return Nlvr2Statement(
        sample_id=item.item_id,
        source_id=item.source_id,
        statement=item.texts[0],
        image_0=item.image,
        image_0_id=ids[0],
        image_1=canonical_name(item.images[1]),
        image_1_id=ids[1],
        label=item.label,
    )


def _phrase(item: VlueItem, ids: ImageIds, size: tuple[int, int] | None) -> GroundingPhrase:
    assert item.box is not None
    x, y, width, height = item.box
    width_px, height_px = size_of(item, size) or (None, None)
    return GroundingPhrase(
        sample_id=item.item_id,
        source_id=_source_id(item),
        phrase=item.texts[0],
        image=item.image,
        image_id=ids[0],
        box=XywhBox(x=x, y=y, width=width, height=height),
        width_px=width_px,
        height_px=height_px,
    )


def match_name(folder: SourceFolder, name: str) -> str:
    """Return the name under which an image lies in a folder, matching each part of its path.

    A part that exists as written wins; then the first in code point order that is equal in Unicode
    NFC; else it is kept, and opening the file reports what is missing. Archives unpacked on
    different systems differ only in this.

    Args:
      folder: the images folder; a web server lists no names, so none is matched.
    """
    if not folder.is_on_disk:
        names = folder.names or frozenset((name,))
        return name if name in names else _canonical(names).get(canonical_name(name), name)
    place, found = folder.root, []
    for part in name.split("/"):
        if part in ("", ".", ".."):
            return name  # for the images folder to judge
        by_name = {} if os.path.lexists(os.path.join(place, part)) else _names(place)
        found.append(by_name.get(canonical_name(part), part))
        place = os.path.join(place, found[-1])
    return "/".join(found)


@lru_cache
def _canonical(names: frozenset[str]) -> dict[str, str]:
    return {canonical_name(name): name for name in sorted(names, reverse=True)}


@lru_cache(maxsize=4_096)
def _names(folder: str) -> dict[str, str]:
    try:
        names = sorted(os.listdir(folder), reverse=True)
    except OSError:
        return {}
    return {canonical_name(name): name for name in names}
