"""The settings and the formats of an export.

A format is an entry of `FORMATS` and one of `WRITERS` in its module: a function that writes the
files, and perhaps one that says why a dataset cannot be written so. This module imports none of
them, because the command line needs only names and summaries.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from eqforge.core.errors import InputError

if TYPE_CHECKING:
    from eqforge.schemas.dataset.reader import Dataset
    from eqforge.transforms.export.target import Export


ImageFormat = Literal["keep", "jpeg", "png"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportSettings:
    """What the bytes of an export depend on beside the dataset."""

    format: str
    """Its name."""

    table: str = "samples"
    """The table whose rows are written, such as `retrieval` of a vlue dataset."""

    rows_per_file: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    """Most rows of a file, where the form has several: Parquet files, tar shards."""

    max_side: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Longest side of a picture in pixels; larger ones are scaled down. Without it none is."""

    image_format: ImageFormat = "keep"
    """How pictures are encoded: keep takes their bytes as they are; jpeg (quality 95) and png
    encode what has another format. With --max-side, keep scales JPEG as JPEG, and all others as
    PNG."""

    image_files: bool = False
    """Of jsonl and karpathy: write the pictures as files below images/, too."""

    redistributable: bool = False
    """Leave out rows whose pictures or texts nobody may pass on, by the licences that their sources
    state; a licence that is not stated allows nothing. A pair stays if both its pictures may."""

    def __post_init__(self) -> None:
        if self.rows_per_file < 1:
            raise InputError(f"--rows-per-file {self.rows_per_file}: expected 1 or more")
        if self.max_side is not None and self.max_side < 1:
            raise InputError(f"--max-side {self.max_side}: expected 1 or more")


@dataclass(frozen=True, slots=True)
class Writer:
    """How a format is written.

    Attributes:
      refusal: returns why a table cannot be written so; empty where it can. It looks at columns,
        never at the name of a dataset, so that it takes datasets that are yet to come.
    """

    write: "Callable[[Export], None]"
    refusal: "Callable[[Dataset, str], str]" = lambda dataset, table: ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """A form in which datasets are written.

    Attributes:
      module: of this folder, whose `WRITERS` has the name.
      summary: what is written, of which datasets; for the help.
      columns: that the rows must have.
      image_files: whether it takes --image-files.
    """

    name: str
    module: str
    summary: str
    columns: frozenset[str] = frozenset()
    image_files: bool = False

    def refusal(self, dataset: "Dataset", table: str) -> str:
        """Say why a table cannot be written in this format; empty where it can."""
        if missing := self.columns - set(dataset.columns(table)):
            return (
                f"expected rows with the columns {', '.join(sorted(missing))}, which {table} "
                "lacks; pairs, hf, webdataset and jsonl take any rows"
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
        summary="one flat table, of any dataset: each row with its pictures, in Parquet files that "
        "are named by their splits, for `datasets.load_dataset(folder)`, pandas and others.",
    ),
    Format(
        name="hf",
        module="parquet",
        summary="a repository folder for the Hugging Face hub, of any dataset: the card, the rows "
        "with their pictures as the default configuration, every other table as one of its own.",
    ),
    Format(
        name="webdataset",
        module="folders",
        summary="tar shards of any dataset, for the package webdataset and for `datasets`: of "
        "each row its pictures, such as KEY.image_0.png, and KEY.json; --image-format jpeg makes "
        "all of them .jpg.",
    ),
    Format(
        name="imagefolder",
        module="folders",
        summary="the ImageFolder of `datasets`, of any dataset with pictures: a folder for each "
        "split, with its pictures and a metadata.jsonl of its rows.",
    ),
    Format(
        name="jsonl",
        image_files=True,
        module="folders",
        summary="one file of JSON lines for each split, of any dataset: test.jsonl; with "
        "--image-files the pictures as files below images/, and their paths in the rows.",
    ),
    Format(
        name="karpathy",
        image_files=True,
        module="folders",
        summary="dataset_NAME.json in the form of Karpathy's splits, of rows with captions of "
        "images: each image with what is true of it.",
    ),
    Format(
        name="simat",
        module="simat",
        summary="SIMAT's own files, of a simat dataset: retrieval_db.tsv, triplets.csv, "
        "captions.txt and transfos.csv.",
    ),
    Format(
        name="vl-checklist",
        module="hard_positives",
        summary="the JSON of the published hard positives (Kamath et al.), of a hard-positives "
        "dataset: data/ has captions and negatives, swapped_data/ hard positives and the same "
        "negatives, both in the source's order: vl_checklist_attributes.json and "
        "vl_checklist_relations.json of VL-CheckList, text_pairs.json of --pairs (with boxes, "
        "where it has them), captions.json of --captions. Of VL-CheckList and --mode paper these "
        "are the four published files, byte by byte, and so they are of `eqforge import "
        "replace-swap`.",
    ),
    Format(
        name="winoground",
        module="published",
        summary="examples.jsonl of pairs, and their pictures below images/; --image-format png "
        "makes all of them .png, which Winoground's own loader opens.",
        columns=_PAIRS,
    ),
    Format(
        name="eqben",
        module="published",
        summary="of pairs, eqben.json of image0, caption0, image1, caption1, subset after subset "
        "in the order of EqBen's vectors; eqben_random.json, the single images and captions in the "
        "order in which EqBen's server takes scores (`eqforge metrics --format eqben` takes it "
        "back); and the image tree below images/.",
        columns=_PAIRS,
    ),
    Format(
        name="sugar-crepe",
        module="published",
        summary="of captions and foils, a JSON file for each kind, such as swap_obj.json.",
        columns=_FOILS,
    ),
    Format(
        name="sugar-crepe-plus",
        module="published",
        summary="the same with a second true caption, of rewordings.",
        columns=_FOILS | {"hard_positive"},
    ),
    Format(
        name="aro",
        module="published",
        summary="of captions and foils, one JSON file as of VG-Relation and VG-Attribution.",
        columns=_FOILS,
    ),
    Format(
        name="vl-checklist-tree",
        module="published",
        summary="of captions and foils, VL-CheckList's tree of JSON files.",
        columns=_FOILS | {"item_id"},
    ),
    Format(
        name=RECIPE,
        module="parquet",
        summary="of any dataset but combined ones, what it was made from and its records without "
        "pictures and texts: ids, names of sources, times, boxes, and digests. `eqforge build "
        "--recipe` makes it again of the user's own sources, and says what no longer matches.",
    ),
    Format(
        name="lmms-eval",
        module="harnesses",
        summary="a task folder of lmms-eval, of pairs, captions with a false one, and questions: "
        "lmms_eval --include_path FOLDER --tasks eqforge_... asks for the caption of an image and "
        "the image of a caption, in every order, and questions as they are.",
    ),
    Format(
        name="vlmevalkit",
        module="harnesses",
        summary="the same questions as the table of a dataset of VLMEvalKit, eqforge_....tsv, for "
        "the folder that LMUData names.",
    ),
    Format(
        name="clip-benchmark",
        module="harnesses",
        summary="a folder of CLIP_benchmark, of captions with a false one: clip_benchmark eval "
        "--dataset wds/NAME --dataset_root FOLDER --task image_caption_selection.",
    ),
)
FORMATS: Final[Mapping[str, Format]] = {each.name: each for each in _ALL}
