"""The rows of imported benchmarks: pairs, foils, rewordings or questions, whoever published them.

The columns are those of eqforge's own datasets wherever they mean the same, so that `lint`,
`audit`, `score` and `metrics` take both by one path. Such a dataset has `samples` and `rejects`,
and `images` where the benchmark brings its pictures or the user names a folder of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from eqforge.schemas.records.boxes import CornerBox
from eqforge.schemas.tables.description import Collection, DatasetType, TableType
from eqforge.schemas.tables.pairs import IMAGES_TABLE, REJECTS_TABLE

_COMMON = (
    "In `samples`, {} The other fields of the published record stand in `annotation`, as JSON."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkPair:
    """Two images with a caption of each: caption i describes image i.

    Attributes:
      sample_id: `<dataset>/<file>/<published id>`; without an id, the image and a digest of the
        record.
      dataset: name of the benchmark.
      split: the source's split, `test` where it names none.
      kind: the subset or category that the source puts the record in; empty where it has none.
      source_id: what several records share, such as a video: the cluster of the statistics; None
        where each stands alone.
      caption_0, caption_1: the captions.
      image_0, image_1: the images as the source names them.
      image_0_id, image_1_id: keys into `images`; None where there are no pictures.
      annotation: the record's other fields, as a JSON object.
    """

    sample_id: str
    dataset: str
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
    """An image with a caption that is true of it and one that is not.

    Attributes:
      sample_id, dataset, split, kind, annotation: as in `BenchmarkPair`.
      item_id: the published record; several rows where it has several foils.
      image, image_id: the image as the source names it, and the key into `images`; None where there
        are no pictures.
      caption: the true caption.
      hard_negative: the false one, the foil.
      box: the part of the image that the captions describe, in pixels, which is what `image_id`
        shows; None for the whole image.
      source_sha256: SHA-256 of the file that it was cut out of; None where nothing was.
    """

    sample_id: str
    dataset: str
    split: str
    kind: str
    item_id: str
    image: str
    image_id: str | None
    caption: str
    hard_negative: str
    box: CornerBox | None
    source_sha256: str | None
    annotation: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkRewording:
    """An image with two captions that are true of it, one reworded, and one that is not.

    Attributes:
      sample_id, dataset, split, kind, annotation: as in `BenchmarkPair`.
      item_id, image, image_id, caption, hard_negative, box, source_sha256: as in `BenchmarkFoil`.
      hard_positive: the caption reworded, which is true too.
    """

    sample_id: str
    dataset: str
    split: str
    kind: str
    item_id: str
    image: str
    image_id: str | None
    caption: str
    hard_positive: str
    hard_negative: str
    box: CornerBox | None
    source_sha256: str | None
    annotation: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkQuestion:
    """A question on an image; the questions of a group are right together or not at all.

    Attributes:
      sample_id, dataset, split, kind, annotation: as in `BenchmarkPair`.
      group_id: what the questions of a group share.
      image, image_id: as in `BenchmarkFoil`.
      question: the text.
      options: the answers to choose from; empty where the question says them.
      answer: the right one.
    """

    sample_id: str
    dataset: str
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
    samples = TableType(
        name="samples",
        record=record,
        key=("sample_id",),
        references=dict.fromkeys(images, "images"),
    )
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
    "`answer` answers `question` on the image; rows of one `group_id` count together.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownBenchmark:
    """A benchmark that can be imported.

    Attributes:
      type: its tables and what they mean.
      module: of `eqforge.schemas.benchmarks`, which reads its files.
      summary: what it holds, in a line.
      made_from: what a user brings.
      licence: of its texts, as the source states it; empty where it states none.
      collection: whose pictures it names, where they are those of a collection.
    """

    type: DatasetType
    module: str
    summary: str
    made_from: str
    licence: str = ""
    collection: Collection | None = None


BENCHMARKS: Final[Mapping[str, KnownBenchmark]] = {
    "winoground": KnownBenchmark(
        type=PAIRS,
        module="winoground",
        summary="Two images, and two captions of the same words in another order.",
        made_from="the folder of the hub, or `examples.jsonl` and its images: 400 pairs",
    ),
    "eqben": KnownBenchmark(
        type=PAIRS,
        module="eqben",
        summary="Pairs of similar images of five sources, with a caption of each.",
        made_from="the authors' annotation files, of a subset or of all, and their image tree",
    ),
    "valse": KnownBenchmark(
        type=FOILS,
        module="valse",
        summary="Captions and foils of six linguistic phenomena.",
        made_from="its JSON files: existence 505, actant swap 949, nouns 943 confirmed items",
        licence="MIT",
    ),
    "sugar-crepe": KnownBenchmark(
        type=FOILS,
        module="sugar_crepe",
        summary="COCO captions with a word replaced, swapped or added.",
        made_from="its seven JSON files, and COCO's val2017",
        licence="MIT",
        collection="coco",
    ),
    "sugar-crepe-plus": KnownBenchmark(
        type=REWORDINGS,
        module="sugar_crepe",
        summary="SugarCrepe with a second true caption in other words.",
        made_from="its JSON files, and COCO's val2017",
        licence="MIT",
        collection="coco",
    ),
    "aro-relation": KnownBenchmark(
        type=FOILS,
        module="aro",
        summary="Regions of Visual Genome: two objects of a relation, swapped.",
        made_from="`visual_genome_relation.json` and its images: 23,937 rows",
        licence="MIT",
        collection="vg",
    ),
    "aro-attribution": KnownBenchmark(
        type=FOILS,
        module="aro",
        summary="Regions of Visual Genome: the attributes of two objects, swapped.",
        made_from="`visual_genome_attribution.json` and its images: 28,748 rows",
        licence="MIT",
        collection="vg",
    ),
    "aro-order": KnownBenchmark(
        type=FOILS,
        module="aro",
        summary="COCO's or Flickr30k's captions with their words in another order.",
        made_from="records of `image_path` and `caption_options`, the true one first",
    ),
    "vl-checklist": KnownBenchmark(
        type=FOILS,
        module="vl_checklist",
        summary="Captions with an object, an attribute or a relation replaced.",
        made_from="its tree of JSON files, and the images of VG, SWiG and HAKE",
    ),
    "bivlc": KnownBenchmark(
        type=PAIRS,
        module="bivlc",
        summary="SugarCrepe's captions with an image drawn for each false one.",
        made_from="the folder of the hub, or the CSV of drawn candidates",
    ),
    "natural-bench": KnownBenchmark(
        type=QUESTIONS,
        module="natural_bench",
        summary="Two questions on two images that no answer fits twice.",
        made_from="`test_set.json` and its images, or the folder of the hub: 4 rows a group",
    ),
    "vismin": KnownBenchmark(
        type=PAIRS,
        module="vismin",
        summary="Minimal changes of an object, an attribute, a count or a relation.",
        made_from="the folder of the hub: 2,084 pairs",
        licence="CC-BY-4.0",
    ),
    "conme": KnownBenchmark(
        type=FOILS,
        module="conme",
        summary="SugarCrepe's captions with harder negatives, by language models.",
        made_from="its CSV files, and COCO's val2017",
        collection="coco",
    ),
    "mmvp": KnownBenchmark(
        type=QUESTIONS,
        module="mmvp",
        summary="Questions on pairs of images that CLIP cannot tell apart.",
        made_from="`Questions.csv` and `MMVP Images`: 300 questions in 150 pairs",
    ),
    "mmvp-vlm": KnownBenchmark(
        type=PAIRS,
        module="mmvp",
        summary="Pairs of images and statements of nine visual patterns.",
        made_from="`Questions.csv` and `MLLM_VLM Images`: 135 pairs",
    ),
    "coco-counterfactuals": KnownBenchmark(
        type=PAIRS,
        module="winoground",
        summary="Drawn pairs of images whose captions differ in one noun.",
        made_from="`examples.jsonl` and its images, or the folder of the hub",
        licence="CC-BY-4.0",
    ),
    "negclip": KnownBenchmark(
        type=FOILS,
        module="negclip",
        summary="COCO's captions with two phrases swapped, to train NegCLIP on.",
        made_from="its TSV files, and COCO's images of 2014",
        licence="MIT",
        collection="coco",
    ),
    "replace-swap": KnownBenchmark(
        type=REWORDINGS,
        module="replace_swap",
        summary="The published hard positives: REPLACE and SWAP.",
        made_from="the folder with `data` and `swapped_data`",
    ),
    "own-pairs": KnownBenchmark(
        type=PAIRS,
        module="own",
        summary="Your own pairs: two images and two captions.",
        made_from="a table, JSON, or a folder of Hugging Face's; --columns names its columns",
    ),
    "own-foils": KnownBenchmark(
        type=FOILS,
        module="own",
        summary="Your own captions with a false one each.",
        made_from="a table, JSON, or a folder of Hugging Face's; --columns names its columns",
    ),
    "own-rewordings": KnownBenchmark(
        type=REWORDINGS,
        module="own",
        summary="Your own captions with a rewording and a false one each.",
        made_from="a table, JSON, or a folder of Hugging Face's; --columns names its columns",
    ),
    "own-questions": KnownBenchmark(
        type=QUESTIONS,
        module="own",
        summary="Your own questions on images, in groups.",
        made_from="a table, JSON, or a folder of Hugging Face's; --columns names its columns",
    ),
}
