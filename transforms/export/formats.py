"""The formats: each is a module of this folder."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from eqforge.schemas.dataset.reader import Dataset
    from eqforge.transforms.export.target import Export


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """A form in which datasets are written.

    Attributes:
      name: as the command line knows it.
      module: of this folder; it has `refusal` and `write`.
      summary: what is written, of which datasets; for the help.
      columns: that the rows have to have.
      image_files: whether it takes --image-files.
    """

    name: str
    module: str
    summary: str
    columns: frozenset[str] = frozenset()
    image_files: bool = False

    def refusal(self, dataset: "Dataset", table: str) -> str:
        """Returns why a table cannot be written so; empty where it can."""
        if missing := self.columns - set(dataset.columns(table)):
            return (
                f"expected rows with the columns {', '.join(sorted(missing))}, which {table} "
                "lacks; pairs, hf, webdataset and jsonl take any rows"
            )
        return self._module().refusal(dataset, table)

    def write(self, export: "Export") -> None:
        """Writes the files."""
        self._module().write(export)

    def _module(self) -> Any:
        return importlib.import_module(f"eqforge.transforms.export.{self.module}")


_PAIRS: Final = frozenset(("caption_0", "caption_1", "dataset"))
_FOILS: Final = frozenset(("caption", "hard_negative", "image"))
RECIPE: Final = "recipe"
_ALL: Final = (
    Format(
        name="pairs",
        module="flat",
        summary="one flat table, of any dataset: each row with its pictures, in Parquet files that "
        "are named by their splits, for `datasets.load_dataset(folder)`, pandas and others.",
    ),
    Format(
        name="hf",
        module="hugging_face",
        summary="a repository folder for the Hugging Face hub, of any dataset: the card, the rows "
        "with their pictures as the default configuration, every other table as one of its own.",
    ),
    Format(
        name="webdataset",
        module="web_dataset",
        summary="tar shards of any dataset, for the package webdataset and for `datasets`: of "
        "each row its pictures, such as KEY.image_0.png, and KEY.json; --image-format jpeg makes "
        "all of them .jpg.",
    ),
    Format(
        name="imagefolder",
        module="image_folder",
        summary="the ImageFolder of `datasets`, of any dataset with pictures: a folder for each "
        "split, with its pictures and a metadata.jsonl of its rows.",
    ),
    Format(
        name="jsonl",
        image_files=True,
        module="json_lines",
        summary="one file of JSON lines for each split, of any dataset: test.jsonl; with "
        "--image-files the pictures as files below images/, and their paths in the rows.",
    ),
    Format(
        name="karpathy",
        image_files=True,
        module="karpathy",
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
        module="benchmark",
        summary="examples.jsonl of pairs, and their pictures below images/; --image-format png "
        "makes all of them .png, which Winoground's own loader opens.",
        columns=_PAIRS,
    ),
    Format(
        name="eqben",
        module="benchmark",
        summary="of pairs, eqben.json of image0, caption0, image1, caption1, subset after subset "
        "in the order of EqBen's vectors; eqben_random.json, the single images and captions in the "
        "order in which EqBen's server takes scores (`eqforge metrics --format eqben` takes it "
        "back); and the image tree below images/.",
        columns=_PAIRS,
    ),
    Format(
        name="sugar-crepe",
        module="benchmark",
        summary="of captions and foils, a JSON file for each kind, such as swap_obj.json.",
        columns=_FOILS,
    ),
    Format(
        name="sugar-crepe-plus",
        module="benchmark",
        summary="the same with a second true caption, of rewordings.",
        columns=_FOILS | {"hard_positive"},
    ),
    Format(
        name="aro",
        module="benchmark",
        summary="of captions and foils, one JSON file as of VG-Relation and VG-Attribution.",
        columns=_FOILS,
    ),
    Format(
        name="vl-checklist-tree",
        module="benchmark",
        summary="of captions and foils, VL-CheckList's tree of JSON files.",
        columns=_FOILS | {"item_id"},
    ),
    Format(
        name=RECIPE,
        module="recipe",
        summary="of any dataset but combined ones, what it was made from and its records without "
        "pictures and texts: ids, names of sources, times, boxes, and digests. `eqforge build "
        "--recipe` makes it again of the user's own sources, and says what no longer matches.",
    ),
    Format(
        name="lmms-eval",
        module="lmms_eval",
        summary="a task folder of lmms-eval, of pairs, captions with a false one, and questions: "
        "lmms_eval --include_path FOLDER --tasks eqforge_... asks for the caption of an image and "
        "the image of a caption, in every order, and questions as they are.",
    ),
    Format(
        name="vlmevalkit",
        module="vlmevalkit",
        summary="the same questions as the table of a dataset of VLMEvalKit, eqforge_....tsv, for "
        "the folder that LMUData names.",
    ),
    Format(
        name="clip-benchmark",
        module="clip_benchmark",
        summary="a folder of CLIP_benchmark, of captions with a false one: clip_benchmark eval "
        "--dataset wds/NAME --dataset_root FOLDER --task image_caption_selection.",
    ),
)
FORMATS: Final[Mapping[str, Format]] = {each.name: each for each in _ALL}
