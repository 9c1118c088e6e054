"""The rows of datasets that `eqforge combine` makes of several: pairs of any kind, or one other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from eqforge.schemas.tables.benchmark_rows import FOILS, QUESTIONS, REWORDINGS
from eqforge.schemas.tables.description import DatasetType, TableType
from eqforge.schemas.tables.pairs import IMAGES_TABLE, REJECTS_TABLE
from eqforge.schemas.tables.texts import HARD_POSITIVES, TRAINING_CAPTIONS


@dataclass(frozen=True, kw_only=True, slots=True)
class CombinedPair:
    """Two images that differ in one thing, with a caption of each, of any dataset of pairs.

    Attributes:
      sample_id: as in the part that the pair comes from.
      dataset: the dataset that it comes from, such as `eq-gebc`.
      split: the source's split.
      kind: the subset: the dataset and, where it tells kinds of pairs apart, the kind, such as
        `eq-kubric/location`; of a part that was named, the name in place of the dataset.
      source_id: what several pairs share, such as a video: the cluster of the statistics; None
        where each stands alone.
      caption_0, caption_1: the captions; caption i describes image i.
      image_0, image_1: the files of the images as the source names them; None where they are of no
        file, as those that were drawn.
      image_0_id, image_1_id: keys into `images`; None where there are no pictures.
      annotation: every other column of the part, such as `origin_0`, as a JSON object; where the
        part has no others, its `annotation` as it is.
    """

    sample_id: str
    dataset: str
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
        TableType(
            name="samples",
            record=CombinedPair,
            key=("sample_id",),
            references={"image_0_id": "images", "image_1_id": "images"},
        ),
        IMAGES_TABLE,
        REJECTS_TABLE,
    ),
    card="In `samples`, `caption_0` describes the image `image_0_id` and `caption_1` the image "
    "`image_1_id`; the two ids are keys into `images`, where every distinct picture stands once. "
    "`dataset` and `kind` say which subset a pair is of, and `annotation` holds the columns that "
    "not all subsets have, as JSON. Stages and rejects bear the name of their part.",
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
