"""A batch of captions in a text pipeline, and the rows it becomes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from eqforge.generators.text.caption_lint import CAPTION_REASONS, CaptionSettings, lint_caption
from eqforge.generators.text.language import Language, reject_language
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject, Stage, Tally
from eqforge.schemas.records.values import CornerBox
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.dataset.failures import guarded
from eqforge.transforms.dataset.image_folder import (
    BAD_BOX,
    FOLDER_REASONS,
    FoundImage,
    ImageFolder,
    bad_box,
)
from eqforge.transforms.dataset.plan import is_wanted

CAPTIONS_STAGE = Stage(
    "captions",
    {
        **FOLDER_REASONS,
        "bad_box": BAD_BOX,
        "not_english": "The caption is not in English. The rules handle only English.",
        **CAPTION_REASONS,
    },
)


class SourceText(Protocol):
    """A source's text about an image: a caption, or a caption and a false one."""

    @property
    def image(self) -> str:
        """The image as the source names it."""

    @property
    def text_id(self) -> str:
        """Unique in the source; a sample's id is this, optionally with a suffix after a slash."""

    @property
    def texts(self) -> tuple[str, ...]: ...


class ShownText(SourceText, Protocol):
    """A text of an image, or of a part of it."""

    @property
    def box(self) -> CornerBox | None:
        """The described part of the image; None for the whole."""


Text = TypeVar("Text", bound=SourceText)
Shown = TypeVar("Shown", bound=ShownText)


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionBatch:
    """Captions that are analysed together; the same captions in every run."""

    captions: tuple[CaptionRecord, ...]

    def __len__(self) -> int:
        return len(self.captions)


def reject(record: SourceText, candidate_id: str, stage: Stage, rejection: Rejection) -> Reject:
    image = record.image
    return stage.reject(candidate_id, rejection, source_id=image, source_path=image)


@dataclass(frozen=True, kw_only=True, slots=True)
class Admitted(Generic[Shown]):
    """The usable texts of a batch, and rejects of requested ones.

    Some records are only there because their image is requested. Images are by text id, and empty
    without a folder.
    """

    records: tuple[Shown, ...]
    images: dict[str, FoundImage]
    rejects: tuple[Reject, ...]
    tally: Tally

    def image_id(self, record: Shown) -> str | None:
        image = self.image(record.text_id)
        return None if image is None else image.image_id

    def image(self, text_id: str) -> ImageRow | None:
        image = self.images.get(text_id)
        return None if image is None else image.row

    def images_of(self, rows: Iterable[Any]) -> tuple[ImageRow, ...]:
        used = {row.image_id for row in rows}
        by_id = {image.row.image_id: image.row for image in self.images.values()}
        return tuple(image for image_id, image in by_id.items() if image_id in used)


def admit_texts(
    records: Iterable[Shown],
    settings: CaptionSettings,
    images: ImageFolder | None,
    only: tuple[str, ...] = (),
    *,
    language: Language = "any",
) -> Admitted[Shown]:
    """Check texts, and find their images if a folder is named; `only` names wanted ids."""
    admitted: list[Shown] = []
    found: dict[str, FoundImage] = {}
    rejects: list[Reject] = []
    candidates = 0
    for record in records:
        wanted = is_wanted(record.text_id, only)
        candidates += wanted
        checked = _check(record, settings, images, language)
        if not isinstance(checked, Rejection):
            admitted.append(record)
            found.update({} if checked is None else {record.text_id: checked})
        elif wanted:
            rejects.append(reject(record, record.text_id, CAPTIONS_STAGE, checked))
    kept = sum(is_wanted(record.text_id, only) for record in admitted)
    return Admitted(
        records=tuple(admitted),
        images=found,
        rejects=tuple(rejects),
        tally=CAPTIONS_STAGE.tally(candidates, kept),
    )


def _check(
    record: ShownText, settings: CaptionSettings, images: ImageFolder | None, language: Language
) -> FoundImage | Rejection | None:
    for text in record.texts:
        rejection = lint_caption(text.strip(), settings)
        if rejection is not None:
            return rejection
    if language == "en":
        # Together, as more words make the language easier to detect.
        refused = guarded(lambda: reject_language("\n".join(record.texts)))
        if refused is not None:
            return refused
    if record.box is not None and record.box.is_empty:
        return bad_box(record.box)
    return None if images is None else guarded(lambda: images.look_up(record.image, record.box))
