"""Imports items of VLUE's tasks: finds their images, lints them, and makes their rows."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from eqforge.generators.text.caption_lint import CAPTION_REASONS, CaptionSettings, lint_caption
from eqforge.schemas.records.books import Reject, Stage, Tally
from eqforge.schemas.records.scores import Rejection
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
from eqforge.sources.vlue import VlueItem
from eqforge.transforms.dataset.books import guarded
from eqforge.transforms.dataset.image_folder import FOLDER_REASONS, ImageFolder
from eqforge.transforms.dataset.plan import is_wanted
from eqforge.transforms.vlue.images import match_name
from eqforge.transforms.vlue.lints import MIN_WORDS, lint_item
from eqforge.transforms.vlue.rows import sample_row, task_row

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


@dataclass(frozen=True, kw_only=True, slots=True)
class VlueRules:
    """How items are imported.

    Attributes:
      by_image: rows of the same image are one candidate of the retrieval; else each is its own.
      answers: the list of answers, where there is one.
      min_words: words that a caption has at least.
      images: the folder of images, where the user names one.
      only: ids of the items to import; empty imports all.
    """

    by_image: bool
    answers: frozenset[str] | None = None
    min_words: int = MIN_WORDS
    images: ImageFolder | None = None
    only: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class VlueWork:
    """What has been made from a batch: the rows of each table, by name, and the books."""

    samples: tuple[VlueSample, ...] = ()
    retrieval: tuple[RetrievalCaption, ...] = ()
    nlvr2: tuple[Nlvr2Statement, ...] = ()
    vqa: tuple[VqaQuestion, ...] = ()
    captioning: tuple[CaptioningImage, ...] = ()
    grounding: tuple[GroundingPhrase, ...] = ()
    findings: tuple[Finding, ...] = ()
    images: tuple[ImageRow, ...] = ()
    rejects: tuple[Reject, ...] = ()
    tallies: tuple[Tally, ...] = ()

    def rows(self, table: str, _dataset: str) -> tuple[Any, ...]:
        """Returns the rows of one of the tables, or of the rejects."""
        return getattr(self, table)


def import_batch(batch: VlueBatch, rules: VlueRules) -> VlueWork:
    """Returns the rows of a batch.

    An item is refused where it cannot be used at all: a text is empty or holds control characters,
    or an image is missing or does not decode. What merely breaks an annotation rule is a finding.
    """
    items = [item for item in batch.items if is_wanted(item.item_id, rules.only)]
    rows: dict[str, list[Any]] = {name: [] for name in (*TASKS, "samples", "findings", "rejects")}
    images: dict[str, ImageRow] = {}
    for item in items:
        made = guarded(partial(import_item, item, rules))
        if isinstance(made, Rejection):
            rows["rejects"].append(_reject(item, made))
            continue
        rows["samples"].append(made.sample)
        rows[item.task].append(made.row)
        rows["findings"] += made.findings
        images |= {image.image_id: image for image in made.images}
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
    """The rows of one item: of `samples`, of its task's table, of `findings` and of `images`."""

    sample: VlueSample
    row: Any
    findings: tuple[Finding, ...]
    images: tuple[ImageRow, ...]


def import_item(item: VlueItem, rules: VlueRules) -> Imported | Rejection:
    """Returns the rows of one item, or why it cannot be used."""
    images = _admit(item, rules.images)
    if isinstance(images, Rejection):
        return images
    size = (images[0].width_px, images[0].height_px) if images else None
    ids = tuple(image.image_id for image in images) or (None,) * len(item.images)
    findings = tuple(lint_item(item, rules.answers, size, rules.min_words))
    return Imported(
        sample=sample_row(item, ids, findings),
        row=task_row(item, ids, by_image=rules.by_image, answers=rules.answers, size=size),
        findings=findings,
        images=images,
    )


def _admit(item: VlueItem, folder: ImageFolder | None) -> tuple[ImageRow, ...] | Rejection:
    """Returns the images of an item, none where no folder is named; or why it cannot be used."""
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
