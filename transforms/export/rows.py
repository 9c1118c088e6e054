"""Reads the rows of a table in the order of their ids, across all its files.

Each file of a dataset has its rows in that order. They are merged a batch at a time, from temporary
copies if there are several files, so memory does not grow with the number of rows or files.
"""

import contextlib
import itertools
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from eqforge.core.errors import InputError, room_named
from eqforge.core.files import storage
from eqforge.core.files.table_file import ADVICE
from eqforge.schemas.dataset.hugging_face import WHOLE
from eqforge.schemas.dataset.profile import count_splits
from eqforge.schemas.dataset.reader import Dataset
from eqforge.transforms.export.names import split_names

SPLIT: Final = "split"
MOST_SPLITS: Final = 1_000
_BATCH_ROWS: Final = 1_000
_BATCHES_HELD: Final = 64
_ID: Final = "\0id"
"""The column of ids while rows are merged; no dataset has one of this name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """Rows of one split.

    Attributes:
      value: their value in the column `split`; None for all rows of a table without one.
      name: a name for files, which `datasets` accepts too.
      rows: number of rows, at least 1.
    """

    value: str | None
    name: str
    rows: int


def check_files(dataset: Dataset, table: str) -> None:
    for file in dataset.files(table):
        with dataset.open_file(file.path):
            found = storage.digest(dataset.url(file.path))
        if found != (file.num_bytes, file.sha256):
            raise InputError(
                f"{dataset.url(file.path)}: its SHA-256 is {found[1]}, but the manifest says "
                f"{file.sha256}; {ADVICE}"
            )


def splits_of(dataset: Dataset, table: str) -> tuple[Split, ...]:
    if SPLIT not in dataset.columns(table):
        rows = dataset.manifest.num_rows(table)
        return (Split(value=None, name=WHOLE, rows=rows),) if rows else ()
    found = count_splits(dataset, table)
    if len(found) > MOST_SPLITS:
        raise InputError(
            f"{dataset.folder}: the rows of {table!r} have {len(found):,} splits, but an export "
            f"can have at most {MOST_SPLITS:,}"
        )
    names = split_names(found)
    return tuple(Split(value=each, name=names[each], rows=found[each]) for each in found)


def valued_schema(dataset: Dataset, table: str, kept: Collection[str]) -> pa.Schema:
    """Drop columns, and fields of columns, that are null in every row.

    Loaders such as torch's `default_collate` reject null.

    Args:
      kept: columns that stay even if they are null.
    """
    schema = dataset.schema(table)
    valued: set[str] = set()
    left = [field.name for field in schema if field.name not in kept]
    for file in dataset.files(table) if left else ():
        for batch in dataset.file_batches(file.path, left):
            for name in left:
                _note_values(batch.column(name), name, valued)
    fields = (
        each if each.name in kept else _with_values(each, each.name, valued) for each in schema
    )
    return pa.schema(filter(None, fields), schema.metadata)


def _note_values(column: pa.Array, path: str, valued: set[str]) -> None:
    if column.null_count < len(column):
        valued.add(path)
        if pa.types.is_struct(column.type):
            for field, part in zip(column.type, column.flatten(), strict=True):
                _note_values(part, f"{path}.{field.name}", valued)


def _with_values(field: pa.Field, path: str, valued: set[str]) -> pa.Field | None:
    if path not in valued or not pa.types.is_struct(field.type):
        return field if path in valued else None
    parts = (_with_values(part, f"{path}.{part.name}", valued) for part in field.type)
    return field.with_type(pa.struct(list(filter(None, parts))))


class SplitRows:
    """The rows of a split, without images, read once from start to end."""

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables, self._place = tables, 0
        self._held: list[pa.Table] = []

    def take(self, start: int, count: int) -> pa.Table:
        """Return rows from `start`, which must not decrease; skipped rows are dropped."""
        rows = sum(each.num_rows for each in self._held)
        while self._place + rows < start + count:
            self._held.append(next(self._tables))
            rows += self._held[-1].num_rows
            if self._place + rows <= start:
                self._place, self._held, rows = self._place + rows, [], 0
        whole = pa.concat_tables(self._held)
        found = whole.slice(start - self._place, count)
        self._held, self._place = [whole.slice(start - self._place + count)], start + count
        return found


def merged(dataset: Dataset, table: str, key: tuple[str, ...], split: Split) -> Iterator[pa.Table]:
    files = [file.path for file in dataset.files(table) if file.rows]
    rows = min(_BATCH_ROWS, max(16, _BATCH_ROWS * _BATCHES_HELD // max(1, len(files))))
    batches = [_own(dataset, path, key, split, rows) for path in files]
    with contextlib.ExitStack() as stack:
        if len(files) > 1:
            batches = [_set_aside(each, stack) for each in batches]
        heads = {each: first for each in batches if (first := next(each, None)) is not None}
        while heads:
            # Rows up to the lowest of the last ids can be sorted now.
            last = min(batch.column(_ID)[-1].as_py() for batch in heads.values())
            slices = []
            for each, batch in list(heads.items()):
                count = pc.sum(pc.less_equal(batch.column(_ID), last)).as_py()
                slices.append(batch.slice(0, count))
                if count < batch.num_rows:
                    heads[each] = batch.slice(count)
                elif (following := next(each, None)) is not None:
                    heads[each] = following
                else:
                    del heads[each]
            pieces = pa.concat_tables(pa.Table.from_batches([each]) for each in slices)
            if len(slices) > 1:
                pieces = pieces.take(pc.sort_indices(pieces, [(_ID, "ascending")]))
            yield pieces.drop_columns(_ID)


def _own(
    dataset: Dataset, path: str, key: tuple[str, ...], split: Split, rows: int
) -> Iterator[pa.RecordBatch]:
    seen: str | None = None
    for batch in dataset.file_batches(path, None, rows):
        ids = pc.binary_join_element_wise(*map(batch.column, key), " ")
        is_sorted = pc.all(pc.less(ids[:-1], ids[1:])).as_py() is not False
        if not is_sorted or (seen is not None and seen >= ids[0].as_py()):
            raise InputError(
                f"{dataset.url(path)}: its rows are not sorted by id, so the file was changed "
                f"after eqforge wrote it; {ADVICE}"
            )
        seen = ids[-1].as_py()
        found = batch.append_column(_ID, ids)
        if split.value is not None:
            found = found.filter(pc.equal(batch.column(SPLIT), split.value))
        if found.num_rows:
            yield found


def _set_aside(
    batches: Iterator[pa.RecordBatch], stack: contextlib.ExitStack
) -> Iterator[pa.RecordBatch]:
    """Copy the batches of a file to a temporary file, and read them back one by one.

    A Parquet reader holds a whole row group, so merging many files directly would hold one of each.
    """
    first = next(batches, None)
    if first is None:
        return iter(())
    stream = stack.enter_context(
        tempfile.TemporaryFile(prefix="eqforge-")  # noqa: SIM115 - closed by the stack
    )
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        room_named(tempfile.gettempdir()),
        pa.ipc.new_stream(stream, first.schema, options=options) as writer,
    ):
        for batch in itertools.chain([first], batches):
            writer.write_batch(batch)
    stream.seek(0)
    return iter(stack.enter_context(pa.ipc.open_stream(stream)))
