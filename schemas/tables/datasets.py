"""The datasets: each has a kind, which describes its tables."""

import functools
import inspect
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from eqforge.schemas.tables import citations
from eqforge.schemas.tables.benchmark_rows import COMBINED
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.description import DatasetType, KnownDataset, TableType
from eqforge.schemas.tables.generated import EDITED_PAIRS, GENERATED_PAIRS
from eqforge.schemas.tables.pairs import VIDEO_PAIRS
from eqforge.schemas.tables.simat import SIMAT
from eqforge.schemas.tables.texts import HARD_POSITIVES, RETRIEVAL_PERTURBATIONS, TRAINING_CAPTIONS
from eqforge.schemas.tables.vlue import VLUE

if TYPE_CHECKING:
    import pyarrow as pa


DATASETS: Final[Mapping[str, KnownDataset]] = {
    "eq-youcook2": KnownDataset(
        VIDEO_PAIRS,
        "Pairs of recipe steps, each shown by its middle frame.",
        "YouCook2's `youcookii_annotations_trainval.json`, videos",
        citations.EQBEN,
    ),
    "eq-gebc": KnownDataset(
        VIDEO_PAIRS,
        "Pairs of frames, one before an event boundary and one after the next (GEB+).",
        "GEB+'s `train.json` / `val.json`, Kinetics videos",
        citations.EQBEN,
    ),
    "eq-ag": KnownDataset(
        VIDEO_PAIRS,
        "Pairs of frames that differ in a person's relation to an object.",
        "Action Genome's pickles, Charades videos",
        citations.EQBEN,
    ),
    "eq-video": KnownDataset(
        VIDEO_PAIRS, "Pairs of captioned frames from your own videos.", "your own captioned videos"
    ),
    "eq-sd": KnownDataset(
        GENERATED_PAIRS,
        "Pairs of images generated from two prompts that differ in one thing.",
        "only a diffusion model",
        citations.EQBEN,
    ),
    "eq-edit": KnownDataset(
        EDITED_PAIRS,
        "Photographs, each paired with an edited version that shows its hard negative.",
        "your own captioned photographs and an image editing model",
    ),
    "eq-kubric": KnownDataset(
        GENERATED_PAIRS,
        "Pairs of rendered images that differ in an attribute, a count or a location.",
        "no input files; eqforge renders scenes with Blender",
        citations.EQBEN,
    ),
    "hard-positives": KnownDataset(
        HARD_POSITIVES,
        "Captions, each with a true rewording and a false one (REPLACE and SWAP).",
        "VL-CheckList, text pairs, or captions",
        citations.HARD_POSITIVES,
        released="eqforge import replace-swap SOURCE --output OUT",
    ),
    "training-captions": KnownDataset(
        TRAINING_CAPTIONS,
        "Captions for training, each with a hard positive and a hard negative.",
        "COCO, Karpathy, Flickr30k or your captions",
        citations.HARD_POSITIVES,
    ),
    "retrieval-perturbations": KnownDataset(
        RETRIEVAL_PERTURBATIONS,
        "Perturbed captions for retrieval, with the level of detail of each caption.",
        "COCO, Karpathy, Flickr30k or your captions",
        citations.GRANULARITY,
    ),
    "vlue": KnownDataset(
        VLUE,
        "VLUE's test sets for five tasks, or your own in the same format.",
        "VLUE's published files, or your own in the same format",
        citations.VLUE,
        released="eqforge build vlue --retrieval itr_vlue_test.json --nlvr2 nlvr2_vlue_test.json "
        "--vqa vqa_vlue_test.json --captioning caption_vlue_test.json --images IMAGES --output OUT",
    ),
    "simat": KnownDataset(
        SIMAT,
        "Image crops, and queries that change one word about a crop (SIMAT).",
        "Visual Genome's relations and images, or SIMAT's own files",
        citations.SIMAT,
        released="eqforge build simat --retrieval-db retrieval_db.tsv --triplets triplets.csv "
        "--transfos transfos.csv --captions captions.txt --images IMAGES --output OUT",
    ),
}

MADE_BY: Final[Mapping[str, Mapping[str, KnownDataset]]] = {
    "plan": {**DATASETS, **BENCHMARKS},
    "build": DATASETS,
    "import": BENCHMARKS,
}
"""What each command takes, by name."""

TYPES: Final[Mapping[str, DatasetType]] = {
    **{name: known.type for several in (DATASETS, BENCHMARKS) for name, known in several.items()},
    **COMBINED,
}
"""What every dataset holds that can be built, imported or combined, by name."""

TABLE_TYPES: Final = tuple(table for kind in TYPES.values() for table in kind.tables)
TABLE_NAMES: Final = frozenset(table.name for table in TABLE_TYPES)
"""The names of the tables of all datasets."""


def dataset_type(dataset: str) -> DatasetType:
    """Return the description of a dataset; that of video pairs for an unknown name."""
    return TYPES.get(dataset, VIDEO_PAIRS)


def table_type(dataset: str, table: str) -> TableType | None:
    """Return the description of a dataset's table; None if it has no such table."""
    return next((each for each in dataset_type(dataset).tables if each.name == table), None)


def dataset_with(table: str, columns: Iterable[str]) -> str:
    """Return the first dataset whose table has some columns; an empty name if there is none."""
    for name in TYPES:
        if (kind := table_type(name, table)) and set(columns).issubset(kind.schema.names):
            return name
    return ""


@functools.cache
def known_columns(dataset: str, table: str, name: str) -> "tuple[pa.Field, ...]":
    """Return the types that a column of a dataset's table may have.

    For an unknown table or column, these are the types that other datasets have under that name;
    none if no dataset has it, or if `dataset` is empty.
    """
    known_type = table_type(dataset, table)
    if not dataset:
        return ()
    if known_type is not None and name in known_type.schema.names:
        return (known_type.schema.field(name),)
    schemas = (other.schema for other in TABLE_TYPES if other.name == table)
    return tuple(schema.field(name) for schema in schemas if name in schema.names)


ENTRY = re.compile(r"^  (\w+(?:,\s+\w+)*):\s(.+?)(?=^  \w|\Z)", re.M | re.S)
_SAME = re.compile(r"as in ([A-Z]\w+)")
_RECORDS = {table.record.__name__: table.record for table in TABLE_TYPES}


@functools.cache
def meanings(record: type) -> Mapping[str, str]:
    """Return what the docstring of a record says about each field, without the final full stop.

    "as in PairSample" stands for the text of the same field in the docstring of that record.
    """
    _, _, entries = inspect.cleandoc(record.__doc__ or "").partition("Attributes:\n")
    found: dict[str, str] = {}
    for names, meaning in ENTRY.findall(entries):
        text = " ".join(meaning.split()).removesuffix(".").replace("None", "null")
        for name in names.replace("\n", " ").split(","):
            found[name.strip()] = text
    for name, text in found.items():
        if same := _SAME.match(text):
            found[name] = meanings(_RECORDS[same[1]])[name] + text[same.end() :]
    return found


def summary(record: type) -> str:
    return " ".join(inspect.cleandoc(record.__doc__ or "").partition("\n\n")[0].split())
