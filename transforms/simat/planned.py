"""The plan of a SIMAT dataset: images, their regions and queries."""

from dataclasses import dataclass

from eqforge.generators.simat.triplets import TRIPLET_REASONS, Change
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject, Stage
from eqforge.schemas.tables.simat import CaptionRow, SimatSplit
from eqforge.sources.simat import Region
from eqforge.transforms.dataset.image_folder import FOLDER_REASONS
from eqforge.transforms.simat.crops import CROP_REASONS

CUT = "cut"  # the progress step that a worker counts for every image whose regions were cut out

RELATIONS_STAGE = Stage(
    "relations",
    {
        "region_twice": "Another region has the same id.",
        "not_chosen": "The triplet file does not list the region.",
        **TRIPLET_REASONS,
        **FOLDER_REASONS,
        "other_size": "The boxes were annotated for an image of a different size.",
        **CROP_REASONS,
    },
    note="A candidate is a region: a subject, a relation and an object in an image.",
)
QUERIES_STAGE = Stage(
    "queries",
    {
        "region_refused": "The query's crop is missing or rejected.",
        "synonym": "The two words have the same meaning, or are the singular and plural of one "
        "noun.",
        "target_without_crop": "No crop in the gallery shows the target triplet.",
        "not_scored": "The oracle has no score for the crop or a caption.",
        "own_caption_mismatch": "The oracle finds that an image does not match its own caption.",
        "target_caption_match": "The oracle finds that the crop already shows the target triplet.",
        "oracle_disagreement": "Only one of the two oracles rejects the candidate.",
    },
    note="A candidate is a query: a region and a word to change.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedQuery:
    """One change of a region's triplet.

    Attributes:
      frequency: as published; None if it must be counted.
      rejection: set if the query is rejected whatever the images show.
    """

    sample_id: str
    change: Change
    split: SimatSplit
    frequency: int | None = None
    rejection: Rejection | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedRegion:
    """A region of the gallery and its queries."""

    region: Region
    queries: tuple[PlannedQuery, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedImage:
    """A source image with its regions.

    Attributes:
      paths: possible files below the images folder; the first that exists counts.
      size: width and height in image_data.json, if given.
      captions: of the triplets of the regions and of their queries' targets.
      rejects: regions and queries that are rejected without looking at any image.
      new_triplets: number of triplets that no earlier image of the plan shows.
    """

    image_id: str
    paths: tuple[str, ...]
    size: tuple[int, int] | None
    regions: tuple[PlannedRegion, ...]
    captions: tuple[CaptionRow, ...]
    rejects: tuple[Reject, ...]
    new_triplets: int = 0

    @property
    def refused_regions(self) -> int:
        return sum(each.stage == RELATIONS_STAGE.name for each in self.rejects)
