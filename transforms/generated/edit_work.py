"""The state of one photograph and its edit in the pipeline, and the stages that may refuse it."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from eqforge.schemas.records.books import Stage
from eqforge.schemas.records.frames import StoredImage
from eqforge.schemas.tables.generated import EditedSample, MaskRow
from eqforge.sources.edit_captions import EditCaption
from eqforge.transforms.generated.work import PairWork, samples_of
from eqforge.transforms.text.caption_edits import NO_HARD_NEGATIVE, TRUE_OF_IMAGE
from eqforge.transforms.text.negatives import NEGATIVE_REFUSALS

NEGATIVES_STAGE = Stage(
    "negatives",
    {
        NO_HARD_NEGATIVE: "No rule makes a hard negative of the caption, and none is given.",
        TRUE_OF_IMAGE: "The negative says what another caption of the image says.",
        "equal_captions": "The negative says the same as the caption, letter case and spacing "
        "aside.",
        "duplicate": "Another caption of the image asks for the same edit.",
        **NEGATIVE_REFUSALS,
    },
    note="What edited photographs are to show.",
)
EDITS_STAGE = Stage(
    "edits",
    {
        "mask_missing": "The masks folder has no file of the name that the captions give.",
        "undecodable_mask": "The mask cannot be read, or has too many pixels.",
        "mask_size": "The mask has another shape than its photograph.",
        "empty_mask": "By the mask nothing may change.",
        "no_mask": "Nobody says where the photograph may change: no mask of its name lies in the "
        "masks folder, and the grounder finds nothing.",
        "unfit_request": "The texts do not fit the editor's model, or it lacks something.",
        "safety_checker": "The model's own checker flagged the edited photograph.",
        "unchanged": "The edited photograph has the pixels of the photograph.",
        "changed_outside": "Before it was locked, more of the photograph changed outside the mask "
        "than --max-changed-outside allows.",
    },
)


@dataclass(frozen=True, kw_only=True, slots=True)
class EditTask:
    """An edit of a photograph, before it is made.

    Attributes:
      photograph: its upright pixels, in the media store.
      source_sha256: SHA-256 of its file.
      caption: what the source says of it.
      negative, generator: what the edited one is to show, and what made that text.
      instruction: what an editor is told that follows one.
      things: what is looked for in the photograph where no mask is given.
      mask: where it may change, as the user says; None where no mask is given.
      seed: of the noise.
    """

    photograph: StoredImage
    source_sha256: str
    caption: EditCaption
    negative: str
    generator: str
    instruction: str
    things: tuple[str, ...]
    mask: MaskRow | None = None
    seed: int

    @property
    def content(self) -> list[Any]:
        """What the edit is, whatever it is called and wherever it stands, as JSON-like values."""
        mask = None if self.mask is None else self.mask.mask_id
        texts = [self.caption.caption, self.negative, self.instruction, list(self.things)]
        return [self.photograph.image_id, *texts, mask]


@dataclass(frozen=True, kw_only=True, slots=True)
class EditWork(PairWork):
    """A pair of a photograph and its edit; `task` is None where no edit is asked for."""

    task: EditTask | None = None

    def rows(self, table: str, dataset: str) -> Iterable[Any]:
        """Returns the rows of a finished pair in one of the tables of a dataset."""
        if table != "samples":
            return PairWork.rows(self, table, dataset)  # `slots` makes super() name another class
        return (self._edited(sample) for sample in samples_of(self, dataset))

    def _edited(self, sample: Any) -> EditedSample:
        assert self.task is not None
        caption = self.task.caption
        return EditedSample(
            **{field.name: getattr(sample, field.name) for field in fields(sample)},
            caption_id=caption.caption_id,
            source_path=caption.image,
            source_sha256=self.task.source_sha256,
            source_box=caption.box,
            negative_generator=self.task.generator,
        )
