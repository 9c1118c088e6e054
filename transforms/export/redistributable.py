"""Exports of those records alone whose licences allow that everybody passes them on.

Licences are those that sources state: of a video with what its file of captions says of it, of a
record in its field `licence` or `license`, and of a published benchmark for its texts. A picture
whose licence nobody states is not passed on, and neither is a text without a picture.
"""

import contextlib
import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eqforge.core.errors import InputError
from eqforge.core.files.checked import clipped
from eqforge.core.files.table_file import TableFile
from eqforge.core.visible import counted
from eqforge.schemas.dataset.licences import is_redistributable, spdx
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.row_licences import (
    ANNOTATION,
    FIELDS,
    ORIGINS,
    annotated,
    of_picture,
    of_record,
    origins,
    stated,
)
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.transforms.export.names import picture_references

NOT_STATED: Final = "not stated"
OTHERS: Final = "others"
_MOST_LICENCES: Final = 100
_DATASET: Final = "dataset"


@dataclass(frozen=True, kw_only=True, slots=True)
class PartOfDataset(Dataset):
    """Some rows of a table of a dataset, and the images; the other tables are left out.

    Attributes:
      whole: the dataset.
      kept: whether each row of a file is read, bool [rows], by the file's path.
    """

    whole: Dataset
    kept: dict[str, npt.NDArray[np.bool_]]

    @contextlib.contextmanager
    def open_file(self, path: str) -> Iterator[TableFile]:
        """Opens one of the manifest's files, with all its rows."""
        with self.whole.open_file(path) as opened:
            yield opened

    def check_unreplaced(self) -> None:
        """Checks that no other dataset took the place of the whole."""
        self.whole.check_unreplaced()

    def file_batches(
        self, path: str, columns: Sequence[str] | None = None, rows: int = 1_000
    ) -> Iterator[pa.RecordBatch]:
        """Yields the kept rows of one file in pieces; see Dataset.file_batches."""
        start, kept = 0, self.kept.get(path)
        for batch in self.whole.file_batches(path, columns, rows):
            if kept is not None:
                mask = kept[start : start + batch.num_rows]
                start += batch.num_rows
                batch = batch.filter(pa.array(mask))
            if batch.num_rows:
                yield batch


def redistributable(dataset: Dataset, table: str) -> tuple[Dataset, dict[str, int]]:
    """Returns a dataset of the rows that may be passed on, and how many others there are.

    Args:
      dataset: a finished one.
      table: the table whose rows are chosen.

    Returns:
      The dataset, which has no other table but `images`, and the rows left out by the licences that
      forbid it: as SPDX writes them, several joined by commas.

    Raises:
      InputError: no row is left, or a file is missing or damaged.
    """
    kept: dict[str, npt.NDArray[np.bool_]] = {}
    left_out: Counter[str] = Counter()
    columns = _columns(dataset, table)
    for file in dataset.files(table):
        found: list[bool] = []
        for batch in dataset.file_batches(file.path, columns.all, 10_000):
            for row in batch.to_pylist():
                refused = _refused(row, columns, dataset.manifest.dataset)
                found.append(not refused)
                left_out.update([refused] if refused else ())
        kept[file.path] = np.asarray(found, bool)
    told = _told(left_out)
    if not any(mask.any() for mask in kept.values()):
        rows = counted(left_out.total(), "rows")
        said = ", ".join(f"{name} ({count:,})" for name, count in told.items())
        raise InputError(
            f"{dataset.folder}: --redistributable leaves none of {rows}: no licence allows to pass "
            f"them on: {said}; --format recipe writes what others need to make them from their own "
            "sources"
        )
    files = [replace(file, rows=int(kept[file.path].sum())) for file in dataset.files(table)]
    tables = {table: files, "images": dataset.files("images")}
    manifest = replace(dataset.manifest, tables={k: v for k, v in tables.items() if v})
    part = PartOfDataset(
        folder=dataset.folder, manifest=manifest, sha256=dataset.sha256, whole=dataset, kept=kept
    )
    return part, told


@dataclass(frozen=True, kw_only=True, slots=True)
class _Columns:
    """The columns that say of a row's licences.

    Attributes:
      origins: those of the lineage of pictures.
      pictures: the keys of pictures.
      others: the row's own, its annotation, and the dataset that it comes from.
    """

    origins: Sequence[str]
    pictures: Sequence[str]
    others: Sequence[str]

    @property
    def all(self) -> list[str]:
        """All columns that are read; one, if none says anything."""
        return [*self.origins, *self.pictures, *self.others]


def _columns(dataset: Dataset, table: str) -> _Columns:
    names = dataset.columns(table)
    others = [name for name in (*FIELDS, ANNOTATION, _DATASET) if name in names]
    pictures = picture_references(dataset, table)
    lineage = [name for name in ORIGINS if name in names]
    return _Columns(
        origins=lineage,
        pictures=pictures,
        others=others or ([] if pictures or lineage else names[:1]),
    )


def _refused(row: dict[str, Any], columns: _Columns, dataset: str) -> str:
    """Returns the licences of a row that do not allow to pass it on; empty where all do."""
    said = annotated(row.get(ANNOTATION))
    known = BENCHMARKS.get(row.get(_DATASET, dataset) or dataset)
    own = [*stated(row), *of_record(said)]
    pictures = [row[name] for name in columns.pictures if row[name] is not None]
    lineage = [row[name] for name in columns.origins] or origins(said)
    count = len(pictures)
    licences: list[str | None] = []
    for number in range(max(count, len(lineage))):
        licences += of_picture(own, lineage, number, count)
    if not lineage or len(lineage) < count:
        licences += own or [known.licence if known else None]
    return ", ".join(sorted({_name(each) for each in licences if not _is_allowed(each)}))


_is_allowed = functools.lru_cache(maxsize=10_000)(is_redistributable)


@functools.lru_cache(maxsize=10_000)
def _name(licence: str | None) -> str:
    return clipped(spdx(licence) or licence) if licence else NOT_STATED


def _told(left_out: Counter[str]) -> dict[str, int]:
    """Returns the counts of the commonest licences, and those of all others as one."""
    ranked = sorted(left_out.items(), key=lambda each: (-each[1], each[0]))
    told = dict(ranked[:_MOST_LICENCES])
    if rest := sum(count for _, count in ranked[_MOST_LICENCES:]):
        told[OTHERS] = rest
    return told
