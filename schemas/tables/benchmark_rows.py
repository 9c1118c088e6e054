"""The rows of imported benchmarks, and of datasets that `eqforge combine` makes of several.

The columns are those of eqforge's own datasets wherever they mean the same, so that `lint`,
`audit`, `score` and `metrics` take both by one path. Such a dataset has `samples` and `rejects`,
and `images` where the benchmark brings its pictures or the user names a folder of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from eqforge.schemas.records.stages import Stage
from eqforge.schemas.records.values import CornerBox, Sha256, Text
from eqforge.schemas.tables.description import DatasetType, samples_table
from eqforge.schemas.tables.pairs import IMAGES_TABLE, REJECTS_TABLE
from eqforge.schemas.tables.texts import HARD_POSITIVES, TRAINING_CAPTIONS

_COMMON = "In `samples`, {} `annotation` contains the other fields of the source's record, as JSON."


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkPair:
    """Two images, each with a caption. Caption i describes image i.

    Attributes:
      sample_id: `<dataset>/<file>/<published id>`. Without a published id, the image name and a
        digest of the record.
      dataset: name of the benchmark.
      split: name of the source's split, or `test` if the source has no splits.
      kind: subset or category in the source, or empty without subsets.
      source_id: id shared by related records, such as a video; the cluster in statistics.
      caption_0, caption_1: caption of each image.
      image_0, image_1: image names, as in the source.
      image_0_id, image_1_id: keys into `images`.
      annotation: other fields of the record, as a JSON object. For `eqben` and `replace-swap`, also
        `source_order`, the position among records of the same kind.
    """

    sample_id: Text
    dataset: Text
    split: str
    kind: str
    source_id: str | None
    caption_0: str
    caption_1: str
    image_0: str
    image_0_id: str | None
    image_1: str
    image_1_id: str | None
    annotation: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkFoil:
    """An image with a true caption and a false caption.

    Attributes:
      sample_id, dataset, split, kind, annotation: as in BenchmarkPair.
      item_id: id of the published record, shared by the rows of all its foils.
      image: image name, as in the source.
      image_id: key into `images`.
      caption: true caption.
      hard_negative: false caption.
      box: crop that the captions describe and `image_id` shows, in pixels, or None for the whole
        image.
      source_sha256: SHA-256 of the cropped file.
    """

    sample_id: Text
    dataset: Text
    split: str
    kind: str
    item_id: str
    image: str
    image_id: str | None
    caption: str
    hard_negative: str
    box: CornerBox | None
    source_sha256: Sha256 | None
    annotation: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkRewording:
    """An image with a true caption, a reworded caption that is also true, and a false caption.

    Attributes:
      sample_id, dataset, split, kind, annotation: as in BenchmarkPair.
      item_id, image, image_id, caption, hard_negative, box, source_sha256: as in BenchmarkFoil.
      hard_positive: the reworded caption.
    """

    sample_id: Text
    dataset: Text
    split: str
    kind: str
    item_id: str
    image: str
    image_id: str | None
    caption: str
    hard_positive: str
    hard_negative: str
    box: CornerBox | None
    source_sha256: Sha256 | None
    annotation: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkQuestion:
    """A question about an image. The questions in a group are scored together.

    Attributes:
      sample_id, dataset, split, kind, annotation: as in BenchmarkPair.
      group_id: id shared by the questions of a group.
      image, image_id: as in BenchmarkFoil.
      question: text of the question.
      options: possible answers, or empty if the question contains the answers.
      answer: right answer.
    """

    sample_id: Text
    dataset: Text
    split: str
    kind: str
    group_id: str
    image: str
    image_id: str | None
    question: str
    options: tuple[str, ...]
    answer: str
    annotation: str


def _type(record: type, images: tuple[str, ...], card: str) -> DatasetType:
    samples = samples_table(record, dict.fromkeys(images, "images"))
    return DatasetType(
        tables=(samples, IMAGES_TABLE, REJECTS_TABLE),
        card=_COMMON.format(card),
        image=images[0].removesuffix("_id"),
    )


PAIRS: Final = _type(
    BenchmarkPair,
    ("image_0_id", "image_1_id"),
    "`caption_0` describes the image `image_0` and `caption_1` the image `image_1`.",
)
FOILS: Final = _type(
    BenchmarkFoil, ("image_id",), "`caption` is true of the image and `hard_negative` is not."
)
REWORDINGS: Final = _type(
    BenchmarkRewording,
    ("image_id",),
    "`caption` and `hard_positive` are true of the image and `hard_negative` is not.",
)
QUESTIONS: Final = _type(
    BenchmarkQuestion,
    ("image_id",),
    "`answer` answers `question` about the image; rows of one `group_id` are scored together.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CombinedPair:
    """Two images that differ in one detail, each with a caption, from any dataset of pairs.

    Attributes:
      sample_id: id of the pair in the dataset that it comes from.
      dataset: dataset that the pair comes from, such as `eq-gebc`.
      split: name of the source's split.
      kind: name of the dataset (or the name that you gave it) and kind of the pair, such as
        `eq-kubric/location`.
      source_id, caption_0, caption_1, image_0_id, image_1_id: as in BenchmarkPair.
      image_0, image_1: image file names, as in the source, or None for images without a file, such
        as generated images.
      annotation: all other columns of the source dataset, such as `origin_0`, as a JSON object. If
        there are no other columns, the source dataset's `annotation`.
    """

    sample_id: Text
    dataset: Text
    split: str
    kind: str
    source_id: str | None
    caption_0: str
    caption_1: str
    image_0: str | None
    image_0_id: str | None
    image_1: str | None
    image_1_id: str | None
    annotation: str


COMBINED_PAIRS: Final = DatasetType(
    tables=(
        samples_table(CombinedPair, {"image_0_id": "images", "image_1_id": "images"}),
        IMAGES_TABLE,
        REJECTS_TABLE,
    ),
    card="In `samples`, `caption_0` describes the image `image_0_id` and `caption_1` the image "
    "`image_1_id`; the two ids are keys into `images`, which has one row per distinct image. "
    "`dataset` and `kind` identify the subset of a pair, and `annotation` contains the columns "
    "that not all subsets have, as JSON. Stages and rejects are named after their dataset.",
    image="image_0",
)


PAIRS_NAME: Final = "combined-pairs"
COMBINED: Final[Mapping[str, DatasetType]] = {
    PAIRS_NAME: COMBINED_PAIRS,
    "combined-foils": FOILS,
    "combined-rewordings": REWORDINGS,
    "combined-questions": QUESTIONS,
    "combined-hard-positives": HARD_POSITIVES,
    "combined-training-captions": TRAINING_CAPTIONS,
}
"""What can be combined: pairs, whatever columns they have beside, or samples of one record."""

COMBINE_STAGE: Final = Stage(
    "combine",
    {"duplicate": "Another input dataset contains an identical sample."},
    note="The stages of the parts come first, as `PART: STAGE`.",
)
