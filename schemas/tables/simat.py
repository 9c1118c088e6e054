"""The rows of a SIMAT dataset.

`samples` are the queries. `gallery` has the regions that are searched, for both splits, and
`captions` the caption of each triplet; both are joined by their ids. `images` has the crops, each
once, and `rejects` what was refused.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from eqforge.schemas.records.scores import Score
from eqforge.schemas.records.values import CornerBox, Sha256, Share, Text, Whole32
from eqforge.schemas.tables.description import DatasetType, TableType, samples_table
from eqforge.schemas.tables.pairs import IMAGES_TABLE, REJECTS_TABLE

SimatSplit: TypeAlias = Literal["dev", "test"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GalleryRow:
    """A crop that can be retrieved.

    Attributes:
      region_id: unique id, used in queries and published scores.
      source_id: Visual Genome image that the crop comes from.
      source_path, source_sha256: path of the image file relative to the image folder, and its
        SHA-256.
      triplet_id: key into `captions` of the triplet that is annotated for the region.
      image_id: key into `images`.
      subject_box, object_box: annotated boxes of subject and object, in pixels of the source image.
      box: box of the crop, in pixels of the source image.
      scores: probability that the crop matches its own caption, by each oracle: `oracle_1`,
        `oracle_2`.
    """

    region_id: str
    source_id: str
    source_path: str | None
    source_sha256: Sha256 | None
    triplet_id: str
    image_id: str | None
    subject_box: CornerBox
    object_box: CornerBox
    box: CornerBox
    scores: tuple[Score, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryRow:
    """A query: a crop, and the word to change in its triplet.

    Attributes:
      sample_id: `simat/<region_id>/<part>/<target word>`.
      split: `dev` or `test`, which share the gallery.
      region_id: id of the query's crop, a key into `gallery`.
      source_id: image that the crop comes from, used as the cluster in statistics.
      image_id: key into `images`.
      part: part of the triplet that changes: `subject`, `relation` or `object`.
      source_word, target_word: word before and after the change.
      source_triplet_id, target_triplet_id: keys into `captions` of the triplet before and after the
        change.
      frequency: number of queries with the same source word. The mode decides which queries count.
      weight: weight of the query, 1 / sqrt(frequency). Scores are divided by the total weight of
        the split.
      scores: each oracle's probabilities that the crop matches its own caption (`oracle_1_source`)
        and the target's caption (`oracle_1_target`). Empty without an oracle.
    """

    sample_id: Text
    split: SimatSplit
    region_id: str
    source_id: str
    image_id: str | None
    part: Literal["subject", "relation", "object"]
    source_word: str
    target_word: str
    source_triplet_id: str
    target_triplet_id: str
    frequency: Whole32
    weight: Share
    scores: tuple[Score, ...]

    RULES: ClassVar = {
        "sample_id": lambda row: (
            row.sample_id == f"simat/{row.region_id}/{row.part}/{row.target_word}"
        ),
        "weight": lambda row: row.weight == 1 / math.sqrt(row.frequency or math.inf),
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionRow:
    """A triplet and its caption.

    Attributes:
      caption_id: `<subject>/<relation>/<object>`.
      subject, relation, object: words of the triplet.
      caption: sentence that oracles and baselines read.
      origin: `template`, or `file` if the caption comes from the user's file.
      regions: number of annotated regions that show the triplet, counted before any image is
        opened.
    """

    caption_id: str
    subject: str
    relation: str
    object: str
    caption: str
    origin: Literal["template", "file"]
    regions: Whole32

    RULES: ClassVar = {
        "caption_id": lambda row: row.caption_id == f"{row.subject}/{row.relation}/{row.object}"
    }


QUERIES_TABLE = samples_table(
    QueryRow,
    {
        **{"region_id": "gallery", "image_id": "images"},
        **{"source_triplet_id": "captions", "target_triplet_id": "captions"},
    },
)
GALLERY_TABLE = TableType(
    name="gallery",
    record=GalleryRow,
    key=("region_id",),
    references={"triplet_id": "captions", "image_id": "images"},
)
TRIPLETS_TABLE = TableType(name="captions", record=CaptionRow, key=("caption_id",))
SIMAT = DatasetType(
    tables=(QUERIES_TABLE, GALLERY_TABLE, TRIPLETS_TABLE, IMAGES_TABLE, REJECTS_TABLE),
    card="A row of `samples` is a query: in the crop `region_id` of `gallery`, `source_word` "
    "becomes `target_word`. `source_triplet_id` and `target_triplet_id` are keys into "
    "`captions`; `triplet_id` of `gallery` is one too. To compute a score, add the `weight` "
    "of the queries whose target was found, and divide by the total weight of the split.",
    image="source_id",
    collection="vg",
)
