"""What sources say of an image: foiled records, text pairs and free captions, image by image."""

from collections.abc import Mapping
from dataclasses import dataclass

from eqforge.generators.text.hard_positives.corrected import record_id
from eqforge.generators.text.lexicon import Kind
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.sources.text_pairs import TextPair
from eqforge.sources.vl_checklist import VlChecklistRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class FoilRecord:
    """A record of VL-CheckList and the file it stands in."""

    kind: Kind
    group: str
    record: VlChecklistRecord

    @property
    def image(self) -> str:
        """The image as the source names it."""
        return self.record.image

    @property
    def text_id(self) -> str:
        """The id of the record; its samples' ids begin with it."""
        return record_id(self.record, self.kind, self.group)

    @property
    def texts(self) -> tuple[str, ...]:
        """The captions, true and false."""
        return (*self.record.positives, *self.record.negatives)

    @property
    def box(self) -> None:
        """The whole image is shown, as by the authors of REPLACE."""
        return None


Text = FoilRecord | TextPair | CaptionRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageTexts:
    """All that a source says of one image."""

    image: str
    foils: tuple[FoilRecord, ...] = ()
    pairs: tuple[TextPair, ...] = ()
    captions: tuple[CaptionRecord, ...] = ()

    @property
    def records(self) -> tuple[Text, ...]:
        """Everything said of the image."""
        return (*self.foils, *self.pairs, *self.captions)


@dataclass(frozen=True, kw_only=True, slots=True)
class TextsBatch:
    """Images that are worked on together.

    Attributes:
      images: what is said of each.
      drawn: the places of the negatives that captions get, as `balanced_edits` draws them; None
        where each caption's own seed decides.
    """

    images: tuple[ImageTexts, ...]
    drawn: Mapping[str, int] | None = None
