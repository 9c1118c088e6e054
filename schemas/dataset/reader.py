"""Open a finished dataset: its manifest and its tables, without Beam.

A dataset may be untrusted, so all reads of its tables go through here: only plain files below its
folder, with the length and number of rows in the manifest, within the limits of `table_file`, and
with the table's columns. Only `eqforge verify` compares digests.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any

import msgspec
import pyarrow as pa

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.table_file import ADVICE, TableFile, check_columns, open_table_file
from eqforge.core.identity import sha256_hex
from eqforge.schemas.dataset.manifest import (
    FILE_NAME,
    DataFile,
    Manifest,
    read_manifest,
    with_final_paths,
)
from eqforge.schemas.tables.benchmark_rows import COMBINED
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.columns import is_of_type, lacks_values
from eqforge.schemas.tables.datasets import known_columns, table_type
from eqforge.schemas.tables.description import TableType

_NO_COLUMNS = pa.schema([])


@dataclass(frozen=True, kw_only=True, slots=True)
class Dataset:
    """A finished dataset: its folder or URL and its manifest.

    Attributes:
      sha256: of the manifest's file; empty without one.
      changed: faults of files whose bytes are known to differ from the manifest, by path; these
        files are not read.
    """

    folder: str
    manifest: Manifest
    sha256: str = ""
    changed: Mapping[str, str] = dataclass_field(default_factory=dict)

    @property
    def remedy(self) -> str:
        if self.manifest.dataset in COMBINED:
            return "combine datasets that contain their images"
        verb = "import" if self.manifest.dataset in BENCHMARKS else "build"
        return f"{verb} it with --images FOLDER"

    def url(self, path: str) -> str:
        return storage.join(self.folder, path)

    def files(self, table: str) -> list[DataFile]:
        return self.manifest.tables.get(table, [])

    def schema(self, table: str) -> pa.Schema:
        """Return the columns of a table; none if it is missing or has no rows."""
        file = next((file for file in self.files(table) if file.rows), None)
        if file is None:
            return _NO_COLUMNS
        with self.open_file(file.path) as opened:
            return opened.schema

    def columns(self, table: str) -> list[str]:
        return list(self.schema(table).names)

    def check_samples(self) -> None:
        """Check that there are samples; a table without rows has no identifying columns."""
        if not self.manifest.num_rows("samples"):
            raise InputError(
                f"{self.folder}: the dataset has no samples. To see why, run eqforge inspect"
            )

    def batches(
        self, table: str, columns: Sequence[str] | None = None, rows: int = 1_000
    ) -> Iterator[pa.RecordBatch]:
        """Yield a table in pieces, file by file in the manifest's order; see file_batches."""
        for file in self.files(table):
            yield from self.file_batches(file.path, columns, rows)

    def file_batches(
        self, path: str, columns: Sequence[str] | None = None, rows: int = 1_000
    ) -> Iterator[pa.RecordBatch]:
        """Yield one file in pieces of up to `rows` rows, each from one row group."""
        with self._unreplaced(), self.open_file(path) as opened:
            doubtful = self._check_columns(opened, path, columns)
            for group in range(opened.num_groups):
                for batch in opened.batches(group, columns, rows):
                    self._check_nulls(batch, doubtful, path)
                    yield batch

    def groups(
        self, path: str, columns: Sequence[str], numbers: Sequence[int] | None = None
    ) -> Iterator[pa.Table]:
        with self._unreplaced(), self.open_file(path) as opened:
            doubtful = self._check_columns(opened, path, columns)
            for number in range(opened.num_groups) if numbers is None else numbers:
                table = opened.group(number, columns)
                self._check_nulls(table, doubtful, path)
                yield table

    @contextlib.contextmanager
    def _unreplaced(self) -> Iterator[None]:
        """Check after the block, even if it raised, that no other dataset replaced this one.

        A generator that is left early checks nothing, as nobody would see the error.
        """
        try:
            yield
        except GeneratorExit:
            raise
        except BaseException:
            self.check_unreplaced()
            raise
        self.check_unreplaced()

    def check_unreplaced(self) -> None:
        """Check that what was read belongs to the dataset that was opened.

        A rebuilt dataset first gets its new manifest, then its new files, and last the manifest
        with their final paths.
        """
        url = self.url(FILE_NAME)
        try:
            data = storage.read_bytes(url)
            if sha256_hex(data) == self.sha256 and self.manifest == with_final_paths(self.manifest):
                return
            now = msgspec.json.decode(data, type=Manifest)
        except (FileNotFoundError, msgspec.DecodeError):
            return  # whoever deleted or changed it did not build it again
        if now != self.manifest:
            raise InputError(
                f"{self.folder}: the dataset was rebuilt while eqforge read it; run the command "
                "again"
            )

    def fingerprint(self, path: str) -> str:
        """Return the row fingerprint stored in a file; empty without one."""
        with self.open_file(path) as opened:
            fingerprint = (opened.schema.metadata or {}).get(b"fingerprint", b"")
        return fingerprint.decode("utf-8", "replace")

    def rows(self, table: str, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        kind = table_type(self.manifest.dataset, table)
        batch_rows = 100 if kind is not None and kind.holds_pictures else 1_000
        for batch in self.batches(table, columns, batch_rows):
            yield from batch.to_pylist()

    @contextlib.contextmanager
    def open_file(self, path: str) -> Iterator[TableFile]:
        if path in self.changed:
            raise InputError(f"{path} was not read, because {self.changed[path]}")
        _, file = self._listed(path)
        with open_table_file(self.folder, path) as opened:
            found, expected = (opened.num_bytes, opened.num_rows), (file.num_bytes, file.rows)
            for unit, count, listed in zip(("bytes", "rows"), found, expected, strict=True):
                if count != listed:
                    raise InputError(
                        f"{self.url(path)} has {count:,} {unit}, but the manifest says "
                        f"{listed:,}; {ADVICE}"
                    )
            yield opened

    def _listed(self, path: str) -> tuple[str, DataFile]:
        tables = self.manifest.tables.items()
        return next((name, file) for name, files in tables for file in files if file.path == path)

    def _check_columns(
        self, opened: TableFile, path: str, columns: Sequence[str] | None
    ) -> list[pa.Field]:
        """Check the types of columns; return columns that may hold nulls but must not."""
        url, (table, _) = self.url(path), self._listed(path)
        check_columns(opened.schema, columns or (), url)
        named = opened.schema.names if columns is None else (c.split(".")[0] for c in columns)
        doubtful = []
        for name in dict.fromkeys(named):
            found = opened.schema.field(name)
            known = known_columns(self.manifest.dataset, table, name)
            fitting = [other for other in known if is_of_type(found.type, other.type)]
            if known and not fitting:
                raise InputError(
                    f"{url}: the column {name!r} has the type {str(found.type)[:80]}; expected "
                    f"{str(known[0].type)[:80]}; {ADVICE}"
                )
            if fitting and not any(found.equals(other) for other in fitting):
                doubtful.append(max(fitting, key=lambda other: other.nullable))
        return doubtful

    def _check_nulls(
        self, batch: pa.RecordBatch | pa.Table, doubtful: Sequence[pa.Field], path: str
    ) -> None:
        for field in doubtful:
            column = batch.column(field.name)
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            if any(lacks_values(chunk, field) for chunk in chunks):
                raise InputError(
                    f"{self.url(path)}: a row has no value in the column {field.name!r}; {ADVICE}"
                )


def open_dataset(folder: str) -> Dataset:
    manifest, sha256 = read_manifest(folder)
    return Dataset(folder=folder.rstrip("/") or "/", manifest=manifest, sha256=sha256)


def open_samples(folder: str, name: str = "") -> Dataset:
    """Open a finished dataset, or a folder that holds only files of samples.

    Args:
      name: dataset whose columns the files must have; without it any columns are accepted.
    """
    names = storage.list_files(storage.join(folder, "data"))
    paths = [f"data/{n}" for n in names if n.startswith("samples-") and n.endswith(".parquet")]
    if not paths or FILE_NAME in storage.list_names(folder):
        return open_dataset(folder)
    files = []
    for path in paths:
        with open_table_file(folder, path) as opened:
            rows, size = opened.num_rows, opened.num_bytes
        files.append(DataFile(path=path, rows=rows, num_bytes=size, sha256=""))
    about: dict[str, Any] = {"config": {}, "inputs": [], "versions": {}, "stages": {}}
    manifest = Manifest(dataset=name, mode="", tables={"samples": files}, **about)
    return Dataset(folder=folder.rstrip("/") or "/", manifest=manifest)


def read_file_batches(
    url: str, columns: Sequence[str] | None = None, rows: int = 1_000, advice: str = ADVICE
) -> Iterator[pa.RecordBatch]:
    """Yield a Parquet file outside any dataset in pieces, each from one row group."""
    folder, _, name = url.rpartition("/")
    with open_table_file(folder or ".", name, advice) as opened:
        check_columns(opened.schema, columns or (), url)
        for group in range(opened.num_groups):
            yield from opened.batches(group, columns, rows)


def read_records(dataset: Dataset, path: str, kind: TableType) -> Iterator[Any]:
    """Yield the records of a file; image bytes are not read.

    Raises:
      InputError: the file is missing or damaged.
      msgspec.ValidationError: a row does not fit the table's record.
    """
    for batch in dataset.file_batches(path, columns_of(kind)):
        yield from records_of(batch, kind)


def columns_of(kind: TableType) -> list[str]:
    renamed = {"image": "image.path"} if kind.holds_pictures else {}
    return [renamed.get(name, name) for name in kind.schema.names]


def records_of(batch: pa.RecordBatch, kind: TableType) -> Iterator[Any]:
    for row in batch.to_pylist():
        if kind.holds_pictures:
            row["suffix"] = row.pop("image")["path"].removeprefix(row[kind.key[0]])
        yield msgspec.convert(row, kind.record)
