"""The rows of an imported VLUE-like dataset.

`samples` has one row per item of any task: which images it needs, and what was found wrong with it.
Beside it stands one table per imported task, under the task's name and with the same `sample_id`,
and `findings`, one row per breach of the annotation rules. In every table `image` is the image's
name as Unicode NFC, equal for the same image in all tables, and `image_id` the key into `images`,
None where no folder of images was named.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from eqforge.schemas.records.values import Finite, Text, Whole32, XywhBox
from eqforge.schemas.tables.description import DatasetType, TableType, samples_table
from eqforge.schemas.tables.pairs import IMAGES_TABLE, REJECTS_TABLE

Task = Literal["retrieval", "nlvr2", "vqa", "captioning", "grounding"]
TASKS: Final[tuple[Task, ...]] = ("retrieval", "nlvr2", "vqa", "captioning", "grounding")


@dataclass(frozen=True, kw_only=True, slots=True)
class VlueSample:
    """An item from one of VLUE's tasks.

    Attributes:
      sample_id: unique id, and key into the table of the task.
      task: name of the task and of its table.
      split: name of the source's split.
      group: first folder in the image name, or empty if there is none. In VLUE, this folder is the
        language of the image's concept (`id`, `sw`, `ta`, `tr`, `zh`).
      image: name of the image in Unicode NFC. For a statement, name of the left image.
      image_id: key of this image in `images`.
      image_1, image_1_id: name and key of the right image of a statement.
      source_image, source_image_1: image name exactly as in the source.
      findings: annotation rules that the item breaks, as in the table `findings`.
    """

    sample_id: Text
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
    """A caption of an image, for retrieval in both directions (metric: R@k).

    Attributes:
      sample_id: as in VlueSample.
      entry_id: id of the row in the source. VLUE has 5,450 rows with 4 to 8 captions each.
      gallery_id: retrieval candidate: the image name in corrected mode, and the row in paper mode.
        In corrected mode, rows of the same image (37 in VLUE) share one candidate.
      image, image_id: as in VlueSample.
      number: position of the caption in its row, from 0.
      caption: text as in the source.
      words: number of words separated by white space.
    """

    sample_id: Text
    entry_id: str
    gallery_id: str
    image: str
    image_id: str | None
    number: Whole32
    caption: str
    words: Whole32


@dataclass(frozen=True, kw_only=True, slots=True)
class Nlvr2Statement:
    """A statement about two images, which is true or false (metric: accuracy).

    Attributes:
      sample_id: as in VlueSample.
      source_id: id of the statement in the source. VLUE's file has no ids.
      statement: text as in the source.
      image_0: names of the left image and the right image.
      image_0_id: keys into `images`.
      image_1: names of the left image and the right image.
      image_1_id: keys into `images`.
      label: whether the statement is true of the images.
    """

    sample_id: Text
    source_id: str | None
    statement: str
    image_0: str
    image_0_id: str | None
    image_1: str
    image_1_id: str | None
    label: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class VqaQuestion:
    """A question about an image (metric: VQA accuracy).

    Attributes:
      sample_id: `vqa/` followed by the question's id.
      source_id: `question_id` in the source.
      question: text as in the source.
      image, image_id: as in VlueSample.
      answers: all annotated answers, in the source's order: one in VLUE, ten in VQA 2.0.
      answer_listed: whether the answer list contains one of the answers (exact match).
    """

    sample_id: Text
    source_id: str
    question: str
    image: str
    image_id: str | None
    answers: tuple[str, ...]
    answer_listed: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptioningImage:
    """An image to caption, with its reference captions (metrics: BLEU and CIDEr).

    Attributes:
      sample_id: `captioning/` followed by the `image_id`, if the source has an `image_id`.
      source_id: `image_id` in the source.
      image, image_id: as in VlueSample.
      references: reference captions, unchanged and in the source's order.
    """

    sample_id: Text
    source_id: str | None
    image: str
    image_id: str | None
    references: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroundingPhrase:
    """A phrase that refers to one object in an image (metric: accuracy at an IoU of 0.5).

    Attributes:
      sample_id: as in VlueSample.
      source_id: `ref_id` of the object in the source. Several phrases may share this id.
      phrase: text as in the source.
      image, image_id: as in VlueSample.
      box: position of the object, as in the source.
      width_px, height_px: size of the image file, or the size stated in the source, or None if
        unknown.
    """

    sample_id: Text
    source_id: str
    phrase: str
    image: str
    image_id: str | None
    box: XywhBox
    width_px: Whole32 | None
    height_px: Whole32 | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A violation of an annotation rule. The item is still in the dataset.

    Attributes:
      finding_id: `<sample_id> <rule> <part>`.
      sample_id, task, image: as in VlueSample.
      rule: one of `eqforge.transforms.imports.vlue_lints.RULES`.
      part: position of the text, answer or image in the item, from 0.
      text: text that breaks the rule.
      value: counted value, such as the number of words.
    """

    finding_id: Text
    sample_id: Text
    task: Task
    image: str
    rule: Text
    part: Whole32
    text: str
    value: Finite | None

    RULES: ClassVar = {
        "finding_id": lambda row: row.finding_id == f"{row.sample_id} {row.rule} {row.part}"
    }


def _task(name: Task, record: type, *images: str) -> TableType:
    """Return the table of a task: details of its samples, under their ids."""
    references = {"sample_id": "samples", **dict.fromkeys(images, "images")}
    return TableType(name=name, record=record, key=("sample_id",), references=references)


ITEMS_TABLE = samples_table(VlueSample, {"image_id": "images", "image_1_id": "images"})
TASK_TABLES: Final[Mapping[str, TableType]] = {
    table.name: table
    for table in (
        _task("retrieval", RetrievalCaption, "image_id"),
        _task("nlvr2", Nlvr2Statement, "image_0_id", "image_1_id"),
        _task("vqa", VqaQuestion, "image_id"),
        _task("captioning", CaptioningImage, "image_id"),
        _task("grounding", GroundingPhrase, "image_id"),
    )
}
FINDINGS_TABLE = TableType(
    name="findings",
    record=Finding,
    key=("finding_id",),
    references={"sample_id": "samples"},
    counted=("task", "rule"),
)
VLUE = DatasetType(
    tables=(ITEMS_TABLE, *TASK_TABLES.values(), FINDINGS_TABLE, IMAGES_TABLE, REJECTS_TABLE),
    card="A row of `samples` is one item of the task in `task`; the table of that name contains "
    "the item under the same `sample_id`. `findings` lists violations of the annotation rules; "
    "the items concerned are still in the dataset.",
)
