"""The rows of an imported VLUE-like dataset and the Parquet columns they become.

`samples` has one row per item of any task: which images it needs, and what was found wrong with it.
Beside it stands one table per imported task, under the task's name and with the same `sample_id`,
and `findings`, one row per breach of the annotation rules. In every table `image` is the image's
name as Unicode NFC, equal for the same image in all tables, and `image_id` the key into `images`,
None where no folder of images was named.
"""

from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa

from eqforge.schemas.records.boxes import XywhBox
from eqforge.schemas.tables.pairs import list_of, required

Task = Literal["retrieval", "nlvr2", "vqa", "captioning", "grounding"]
TASKS: Final[tuple[Task, ...]] = ("retrieval", "nlvr2", "vqa", "captioning", "grounding")


@dataclass(frozen=True, kw_only=True, slots=True)
class VlueSample:
    """An item of any task.

    Attributes:
      sample_id: unique in the dataset; the key into the task's table.
      task: the task, and the name of its table.
      split: the source's split.
      group: the first folder of the image's name, in VLUE the language of its concept (`id`, `sw`,
        `ta`, `tr`, `zh`); empty where the name has no folder.
      image, image_id: the image, of a statement the left one.
      image_1, image_1_id: of a statement the right image; None for the other tasks.
      source_image, source_image_1: the names exactly as the source writes them.
      findings: rules that the item breaks, sorted; details stand in the table `findings`.
    """

    sample_id: str
    task: Task
    split: str
    group: str
    image: str
    image_id: str | None
    image_1: str | None
    image_1_id: str | None
    source_image: str
    source_image_1: str | None
    findings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalCaption:
    """A caption of an image, for retrieval in both directions; R@k.

    Attributes:
      sample_id: of the caption.
      entry_id: the source's row it stands in; 5,450 in VLUE, with 4 to 8 captions each.
      gallery_id: the image as a candidate of the retrieval. Captions with the same `gallery_id` are
        the true ones of that candidate, and no other is. In corrected mode it is the image's name:
        rows of the same image (37 in VLUE) are one candidate. In paper mode it is the row.
      image, image_id: the image.
      number: place of the caption in its row, from 0.
      caption: the text as the source has it.
      words: runs of characters between white space.
    """

    sample_id: str
    entry_id: str
    gallery_id: str
    image: str
    image_id: str | None
    number: int
    caption: str
    words: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Nlvr2Statement:
    """A statement about two images; accuracy of true against false.

    Attributes:
      sample_id: of the statement.
      source_id: the source's identifier; None in VLUE's file, which has none.
      statement: the text as the source has it.
      image_0, image_0_id: the left image.
      image_1, image_1_id: the right image.
      label: whether the statement is true of the two.
    """

    sample_id: str
    source_id: str | None
    statement: str
    image_0: str
    image_0_id: str | None
    image_1: str
    image_1_id: str | None
    label: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class VqaQuestion:
    """A question about an image; VQA accuracy.

    Attributes:
      sample_id: `vqa/` and the question's id.
      source_id: the published `question_id`.
      question: the text as the source has it.
      image, image_id: the image.
      answers: every annotated answer in the source's order: one in VLUE, ten in VQA 2.0.
      answer_listed: whether one of the answers is in the list of answers, letter by letter; None
        where no list was given.
    """

    sample_id: str
    source_id: str
    question: str
    image: str
    image_id: str | None
    answers: tuple[str, ...]
    answer_listed: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptioningImage:
    """An image to be captioned, with its reference captions; BLEU and CIDEr.

    Attributes:
      sample_id: `captioning/` and the published `image_id`, where there is one.
      source_id: the published `image_id`; None where there is none.
      image, image_id: the image.
      references: the captions as the source has them, in its order.
    """

    sample_id: str
    source_id: str | None
    image: str
    image_id: str | None
    references: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroundingPhrase:
    """A phrase that refers to one object of an image; accuracy at an IoU of 0.5.

    Attributes:
      sample_id: of the phrase.
      source_id: the `ref_id` of the object; several phrases may refer to one.
      phrase: the text as the source has it.
      image, image_id: the image.
      box: where the object is, as the source has it.
      width_px, height_px: size of the image: of the file where there is one, else as the source
        states it, else None.
    """

    sample_id: str
    source_id: str
    phrase: str
    image: str
    image_id: str | None
    box: XywhBox
    width_px: int | None
    height_px: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A breach of the annotation rules; the item stays in the dataset.

    Attributes:
      finding_id: `<sample_id> <rule> <part>`.
      sample_id, task, image: the item.
      rule: one of `eqforge.transforms.vlue.lints.RULES`.
      part: place of the text, answer or image in the item, from 0.
      text: what breaks the rule.
      value: what was counted, such as words; None where nothing is.
    """

    finding_id: str
    sample_id: str
    task: Task
    image: str
    rule: str
    part: int
    text: str
    value: float | None


_TEXT, _WHOLE = pa.string(), pa.int32()
_ID, _IMAGE = required("sample_id", _TEXT), [required("image", _TEXT), pa.field("image_id", _TEXT)]
BOX: Final = pa.struct([required(name, pa.float64()) for name in ("x", "y", "width", "height")])

VLUE_SAMPLES: Final = pa.schema(
    [
        _ID,
        *(required(name, _TEXT) for name in ("task", "split", "group")),
        *_IMAGE,
        *(pa.field(name, _TEXT) for name in ("image_1", "image_1_id")),
        required("source_image", _TEXT),
        pa.field("source_image_1", _TEXT),
        required("findings", list_of(_TEXT)),
    ]
)
RETRIEVAL: Final = pa.schema(
    [
        _ID,
        *(required(name, _TEXT) for name in ("entry_id", "gallery_id")),
        *_IMAGE,
        required("number", _WHOLE),
        required("caption", _TEXT),
        required("words", _WHOLE),
    ]
)
NLVR2: Final = pa.schema(
    [
        _ID,
        pa.field("source_id", _TEXT),
        required("statement", _TEXT),
        *(
            pa.field(f"image_{number}{end}", _TEXT, nullable=bool(end))
            for number in (0, 1)
            for end in ("", "_id")
        ),
        required("label", pa.bool_()),
    ]
)
VQA: Final = pa.schema(
    [
        _ID,
        *(required(name, _TEXT) for name in ("source_id", "question")),
        *_IMAGE,
        required("answers", list_of(_TEXT)),
        pa.field("answer_listed", pa.bool_()),
    ]
)
CAPTIONING: Final = pa.schema(
    [_ID, pa.field("source_id", _TEXT), *_IMAGE, required("references", list_of(_TEXT))]
)
GROUNDING: Final = pa.schema(
    [
        _ID,
        *(required(name, _TEXT) for name in ("source_id", "phrase")),
        *_IMAGE,
        required("box", BOX),
        *(pa.field(name, _WHOLE) for name in ("width_px", "height_px")),
    ]
)
FINDINGS: Final = pa.schema(
    [
        *(required(name, _TEXT) for name in ("finding_id", "sample_id", "task", "image", "rule")),
        required("part", _WHOLE),
        required("text", _TEXT),
        pa.field("value", pa.float64()),
    ]
)
TASK_SCHEMAS: Final[dict[Task, pa.Schema]] = {
    "retrieval": RETRIEVAL,
    "nlvr2": NLVR2,
    "vqa": VQA,
    "captioning": CAPTIONING,
    "grounding": GROUNDING,
}
"""The tables of the tasks, by name; each has the key `sample_id`."""
