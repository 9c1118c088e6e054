"""The tables of the datasets: their columns, and the record that each of their rows was."""

import functools
from dataclasses import dataclass

import pyarrow as pa

from eqforge.schemas.records.books import Reject
from eqforge.schemas.tables.pairs import IMAGES, PAIR_SAMPLES, REJECTS, ImageRow, PairSample
from eqforge.schemas.tables.rendered import MASKS, RENDERED_SAMPLES, MaskRow, RenderedSample
from eqforge.schemas.tables.simat import (
    GALLERY,
    QUERIES,
    SIMAT_CAPTIONS,
    CaptionRow,
    GalleryRow,
    QueryRow,
)
from eqforge.schemas.tables.texts import (
    HARD_POSITIVES,
    MEASURED_CAPTIONS,
    PERTURBED_CAPTIONS,
    TRAINING_CAPTIONS,
    HardPositiveSample,
    MeasuredCaption,
    PerturbedCaption,
    TrainingCaption,
)
from eqforge.schemas.tables.vlue import (
    CAPTIONING,
    FINDINGS,
    GROUNDING,
    NLVR2,
    RETRIEVAL,
    VLUE_SAMPLES,
    VQA,
    CaptioningImage,
    Finding,
    GroundingPhrase,
    Nlvr2Statement,
    RetrievalCaption,
    VlueSample,
    VqaQuestion,
)


@dataclass(frozen=True, slots=True)
class TableType:
    """The columns of a table, and the record that each of its rows was."""

    schema: pa.Schema
    record: type


# By dataset and table; "" stands for all datasets without a table of their own.
_TABLES = {
    ("", "samples"): TableType(PAIR_SAMPLES, PairSample),
    ("", "images"): TableType(IMAGES, ImageRow),
    ("", "masks"): TableType(MASKS, MaskRow),
    ("", "rejects"): TableType(REJECTS, Reject),
    ("", "captions"): TableType(MEASURED_CAPTIONS, MeasuredCaption),
    ("eq-kubric", "samples"): TableType(RENDERED_SAMPLES, RenderedSample),
    ("eq-sd", "samples"): TableType(RENDERED_SAMPLES, RenderedSample),
    ("retrieval-perturbations", "samples"): TableType(PERTURBED_CAPTIONS, PerturbedCaption),
    ("hard-positives", "samples"): TableType(HARD_POSITIVES, HardPositiveSample),
    ("training-captions", "samples"): TableType(TRAINING_CAPTIONS, TrainingCaption),
    ("simat", "samples"): TableType(QUERIES, QueryRow),
    ("simat", "gallery"): TableType(GALLERY, GalleryRow),
    ("simat", "captions"): TableType(SIMAT_CAPTIONS, CaptionRow),
    ("vlue", "samples"): TableType(VLUE_SAMPLES, VlueSample),
    ("vlue", "retrieval"): TableType(RETRIEVAL, RetrievalCaption),
    ("vlue", "nlvr2"): TableType(NLVR2, Nlvr2Statement),
    ("vlue", "vqa"): TableType(VQA, VqaQuestion),
    ("vlue", "captioning"): TableType(CAPTIONING, CaptioningImage),
    ("vlue", "grounding"): TableType(GROUNDING, GroundingPhrase),
    ("vlue", "findings"): TableType(FINDINGS, Finding),
}

TABLE_NAMES = frozenset(table for _, table in _TABLES)
"""Of the tables of all datasets."""


def table_type(dataset: str, table: str) -> TableType | None:
    """Returns the columns and record of a dataset's table; None where it has no such table."""
    return _TABLES.get((dataset, table), _TABLES.get(("", table)))


@functools.cache
def known_columns(dataset: str, table: str, name: str) -> tuple[pa.Field, ...]:
    """Returns what a column of a dataset's table may be.

    Of a dataset or a column that is not known, it is what other datasets have under that name;
    nothing where none has, or where the dataset has no name.
    """
    own = table_type(dataset, table)
    if not dataset:
        return ()
    if own is not None and name in own.schema.names:
        return (own.schema.field(name),)
    others = (kind.schema for (_, other), kind in _TABLES.items() if other == table)
    return tuple(schema.field(name) for schema in others if name in schema.names)


def is_of_type(found: pa.DataType, expected: pa.DataType) -> bool:
    """Tells whether values read as those of a type do, whatever may be null in them."""
    if pa.types.is_struct(expected):
        names = [field.name for field in expected]
        return (
            pa.types.is_struct(found)
            and sorted(field.name for field in found) == sorted(names)
            and all(is_of_type(found.field(n).type, expected.field(n).type) for n in names)
        )
    if pa.types.is_list(expected):
        return pa.types.is_list(found) and is_of_type(found.value_type, expected.value_type)
    same = bool(found.equals(expected)) or pa.types.is_null(found)
    return same or (pa.types.is_integer(found) and pa.types.is_integer(expected))


def lacks_values(array: pa.Array, expected: pa.Field) -> bool:
    """Tells whether values are null, also below lists and structs, that must not be."""
    if array.null_count and not expected.nullable:
        return True
    there = array.drop_null()
    if pa.types.is_struct(array.type):
        fields = zip(array.type, there.flatten(), strict=True)
        return any(lacks_values(one, expected.type.field(field.name)) for field, one in fields)
    if pa.types.is_list(array.type):
        return lacks_values(there.flatten(), expected.type.value_field)
    return False
