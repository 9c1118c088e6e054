"""The settings and the formats of an export.

The writer of each format is in `WRITERS` of its module. This file imports none of these modules,
because the command line needs only names and summaries.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.visible import series

if TYPE_CHECKING:
    from eqforge.schemas.dataset.reader import Dataset
    from eqforge.transforms.export.target import Export


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportSettings:
    """Settings that the bytes of an export depend on."""

    format: str
    """Name of the export format."""

    table: str = "samples"
    """Table to export, such as `retrieval` in a vlue dataset."""

    rows_per_file: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    """Maximum number of rows per Parquet file or tar shard."""

    max_side: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Maximum width and height of an image, in pixels. Larger images are scaled down."""

    image_format: Literal["keep", "jpeg", "png"] = "keep"
    """Format of the exported images. `keep` leaves the format unchanged, and `jpeg` converts the
    images to JPEG of quality 95."""

    image_files: bool = False
    """Also write each image to a file in the folder images/. Applies only to jsonl and karpathy."""

    redistributable: bool = False
    """Leave out rows whose licence is unknown or does not allow redistribution."""

    def __post_init__(self) -> None:
        if self.rows_per_file < 1:
            raise InputError(f"--rows-per-file {self.rows_per_file}: expected 1 or more")
        if self.max_side is not None and self.max_side < 1:
            raise InputError(f"--max-side {self.max_side}: expected 1 or more")


@dataclass(frozen=True, slots=True)
class Writer:
    """How a format is written.

    Attributes:
      refusal: returns why a table cannot have the format, or an empty text. It checks columns,
        never a dataset's name, so that it accepts future datasets.
    """

    write: "Callable[[Export], None]"
    refusal: "Callable[[Dataset, str], str]" = lambda dataset, table: ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """A format that datasets can be written in.

    Attributes:
      module: in this folder; its `WRITERS` has the name.
    """

    name: str
    module: str
    summary: str
    columns: frozenset[str] = frozenset()
    image_files: bool = False

    def refusal(self, dataset: "Dataset", table: str) -> str:
        """Explain why a table cannot have this format; return an empty text if it can."""
        if missing := self.columns - set(dataset.columns(table)):
            return (
                f"the table {table!r} has no column {series(map(repr, sorted(missing)), 'or')}, "
                "which this format needs; --format pairs, hf, webdataset and jsonl accept any "
                "columns"
            )
        return self._writer.refusal(dataset, table)

    def write(self, export: "Export") -> None:
        self._writer.write(export)

    @property
    def _writer(self) -> Writer:
        module = importlib.import_module(f"eqforge.transforms.export.{self.module}")
        return module.WRITERS[self.name]


_PAIRS: Final = frozenset(("caption_0", "caption_1", "dataset"))
_FOILS: Final = frozenset(("caption", "hard_negative", "image"))
RECIPE: Final = "recipe"
_ALL: Final = (
    Format(
        name="pairs",
        module="parquet",
        summary="Parquet files with one flat table, for `datasets.load_dataset(folder)` and "
        "pandas.",
    ),
    Format(
        name="hf",
        module="parquet",
        summary="a repository folder for the Hugging Face Hub, with the card and every table.",
    ),
    Format(
        name="webdataset",
        module="folders",
        summary="tar shards for webdataset and `datasets`, with images (KEY.image_0.png) and "
        "KEY.json. With --image-format jpeg, all images are .jpg.",
    ),
    Format(
        name="imagefolder",
        module="folders",
        summary="ImageFolder for `datasets`, with one image folder and metadata.jsonl per split.",
    ),
    Format(
        name="jsonl",
        image_files=True,
        module="folders",
        summary="one JSON Lines file per split, such as test.jsonl. --image-files adds the images.",
    ),
    Format(
        name="karpathy",
        image_files=True,
        module="folders",
        summary="dataset_NAME.json in the format of Karpathy's splits, for captioned images. It "
        "contains the true captions of each image.",
    ),
    Format(
        name="simat",
        module="simat",
        summary="SIMAT's own files: retrieval_db.tsv, triplets.csv, captions.txt and transfos.csv.",
    ),
    Format(
        name="vl-checklist",
        module="hard_positives",
        summary="the JSON files of the published hard positives (Kamath et al.), in the source's "
        "order. `data/` contains captions and negatives. `swapped_data/` contains hard positives "
        "and the same negatives. Datasets built from VL-CheckList with --mode paper, and datasets "
        "from `eqforge import replace-swap`, reproduce the four published files byte for byte.",
        columns=frozenset(("caption", "hard_positive", "hard_negative")),
    ),
    Format(
        name="winoground",
        module="published",
        summary="pairs in examples.jsonl, with their images in images/. Winoground's own loader "
        "needs --image-format png.",
        columns=_PAIRS,
    ),
    Format(
        name="eqben",
        module="published",
        summary="EqBen's JSON files of pairs, in the order of EqBen's score vectors, and EqBen's "
        "image folders. eqben_random.json has the order of EqBen's server. To evaluate scores in "
        "that order, run `eqforge metrics --format eqben`.",
        columns=_PAIRS,
    ),
    Format(
        name="sugar-crepe",
        module="published",
        summary="captions and foils, with one JSON file per kind, such as swap_obj.json.",
        columns=_FOILS,
    ),
    Format(
        name="sugar-crepe-plus",
        module="published",
        summary="like sugar-crepe, with a second true caption. Requires a dataset with rewordings.",
        columns=_FOILS | {"hard_positive"},
    ),
    Format(
        name="aro",
        module="published",
        summary="captions and foils in one JSON file, like VG-Relation and VG-Attribution.",
        columns=_FOILS,
    ),
    Format(
        name="vl-checklist-tree",
        module="published",
        summary="captions and foils in VL-CheckList's folders of JSON files.",
        columns=_FOILS | {"item_id"},
    ),
    Format(
        name=RECIPE,
        module="parquet",
        summary="the ids, source names, times, boxes and digests of the dataset, without images "
        "and texts. `eqforge build --recipe` rebuilds the dataset from the user's own sources and "
        "lists records that no longer match. Combined datasets have no recipe.",
    ),
    Format(
        name="lmms-eval",
        module="harnesses",
        summary="a task folder for lmms-eval, with pairs, captions with a foil, questions, or a "
        "task of VLUE (--table vqa). To ask each question in every order of captions and images, "
        "run lmms_eval --include_path FOLDER --tasks eqforge_....",
    ),
    Format(
        name="vlmevalkit",
        module="harnesses",
        summary="the table eqforge_....tsv for VLMEvalKit, with the questions of lmms-eval. Copy "
        "this table to the folder LMUData.",
    ),
    Format(
        name="clip-benchmark",
        module="harnesses",
        summary="a CLIP_benchmark folder of captions with a foil. Run clip_benchmark eval "
        "--dataset wds/NAME --dataset_root FOLDER --task image_caption_selection.",
    ),
)
FORMATS: Final[Mapping[str, Format]] = {each.name: each for each in _ALL}
