"""Reads the rows of a dataset back as the records they were written from."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from eqforge.schemas.dataset import Dataset
from eqforge.schemas.rendered_tables import MASKS, RENDERED_SAMPLES, MaskRow, RenderedSample
from eqforge.schemas.simat_tables import (
    GALLERY,
    QUERIES,
    SIMAT_CAPTIONS,
    CaptionRow,
    GalleryRow,
    QueryRow,
)
from eqforge.schemas.tables import IMAGES, PAIR_SAMPLES, REJECTS, ImageRow, PairSample, Reject
from eqforge.schemas.text_tables import (
    HARD_POSITIVES,
    MEASURED_CAPTIONS,
    PERTURBED_CAPTIONS,
    TRAINING_CAPTIONS,
    HardPositiveSample,
    MeasuredCaption,
    PerturbedCaption,
    TrainingCaption,
)
from eqforge.schemas.vlue_tables import (
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
from eqforge.transforms.write import fingerprint_records


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
# Tables with pictures: the record that each row was, and the column that names the picture.
_MEDIA_IDS: dict[type, str] = {ImageRow: "image_id", MaskRow: "mask_id"}


def table_type(dataset: str, table: str) -> TableType | None:
    """Returns the columns and record of a dataset's table; None where it has no such table."""
    return _TABLES.get((dataset, table), _TABLES.get(("", table)))


def is_as_written(dataset: Dataset, path: str, kind: TableType) -> bool:
    """Tells whether a file holds the records it was written with; pictures are not looked at.

    Raises:
      InputError: the file is missing or damaged.
    """
    return fingerprint_records(kind.schema, _records(dataset, path, kind)) == dataset.fingerprint(
        path
    )


def _records(dataset: Dataset, path: str, kind: TableType) -> Iterator[Any]:
    media_id = _MEDIA_IDS.get(kind.record)
    renamed = {"image": "image.path"} if media_id is not None else {}
    columns = [renamed.get(name, name) for name in kind.schema.names]
    for batch in dataset.file_batches(path, columns):
        for row in batch.to_pylist():
            if media_id is not None:
                row["suffix"] = row.pop("image")["path"].removeprefix(row[media_id])
            yield msgspec.convert(row, kind.record)
