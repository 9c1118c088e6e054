"""Opens a finished dataset: its manifest and its tables, without Beam."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.schemas import storage
from eqforge.schemas.errors import InputError
from eqforge.schemas.manifest import FILE_NAME, Manifest, load_manifest, settled


@dataclass(frozen=True, kw_only=True, slots=True)
class Dataset:
    """A finished dataset: its folder or URL and its manifest."""

    folder: str
    manifest: Manifest

    def url(self, path: str) -> str:
        """Returns the URL of one of the dataset's files."""
        return storage.join(self.folder, path)

    def batches(
        self, table: str, columns: Sequence[str] | None = None, rows: int = 1_000
    ) -> Iterator[pa.RecordBatch]:
        """Yields a table in pieces, file by file in the manifest's order.

        Raises:
          InputError: a file is missing or damaged.
        """
        for file in self.manifest.tables[table]:
            yield from self.file_batches(file.path, columns, rows)

    def file_batches(
        self, path: str, columns: Sequence[str] | None = None, rows: int = 1_000
    ) -> Iterator[pa.RecordBatch]:
        """Yields one file in pieces; see batches."""
        try:
            yield from read_file_batches(self.url(path), columns, rows)
        finally:
            self.check_unreplaced()

    def check_unreplaced(self) -> None:
        """Checks that what was read is of the dataset that was opened.

        A dataset that is built again first gets its new manifest, and then its new files.

        Raises:
          InputError: another dataset has taken its place.
        """
        url = self.url(FILE_NAME)
        try:
            now = msgspec.json.decode(storage.read_bytes(url), type=Manifest)
        except (FileNotFoundError, msgspec.DecodeError):
            return  # whoever deleted or changed it did not build it again
        if settled(now) != settled(self.manifest):
            raise InputError(f"{self.folder}: was built again while it was read; read it again")

    def fingerprint(self, path: str) -> str:
        """Returns what a file says its rows were when it was written.

        Raises:
          InputError: the file is missing or damaged.
        """
        system, place = storage.locate(self.url(path))
        try:
            with system.open(place, "rb") as stream:
                metadata = pq.read_schema(stream).metadata or {}
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{self.url(path)}: cannot be read: {error}") from error
        return metadata.get(b"fingerprint", b"").decode()

    def rows(self, table: str, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yields the rows of a table as dicts."""
        batch_rows = 100 if table in ("images", "masks") else 1_000
        for batch in self.batches(table, columns, batch_rows):
            yield from batch.to_pylist()


def open_dataset(folder: str) -> Dataset:
    """Opens a finished dataset.

    Raises:
      InputError: the folder holds none.
    """
    return Dataset(folder=folder.rstrip("/"), manifest=load_manifest(folder))


def sample_files(folder: Path) -> list[Path]:
    """Returns the files of the samples of a dataset on a disk, finished or not; none of others.

    Where a kill stopped a dataset on the way into its place, only its manifest tells them.
    """
    try:
        files = load_manifest(str(folder)).tables.get("samples", [])
    except InputError:
        return sorted(folder.glob("data/samples-*.parquet"))
    return [folder / file.path for file in files]


def read_file_batches(
    url: str,
    columns: Sequence[str] | None = None,
    rows: int = 1_000,
    advice: str = "eqforge verify looks for all damage",
) -> Iterator[pa.RecordBatch]:
    """Yields one Parquet file in pieces of at most `rows` rows, each from one row group.

    Args:
      url: of the file.
      columns: their names; None for all.
      rows: how many there are in a piece at most.
      advice: what to do where the file cannot be read.

    Raises:
      InputError: the file is missing or damaged.
    """
    system, place = storage.locate(url)
    try:
        with system.open(place, "rb") as stream, pq.ParquetFile(stream) as parquet:
            # A reader of several row groups holds the bytes of all that it has read.
            for group in range(parquet.num_row_groups):
                yield from parquet.iter_batches(rows, row_groups=[group], columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{url}: cannot be read: {error}; {advice}") from error
