"""Gives a format its rows in order, with their images, and complete output files."""

import contextlib
import dataclasses
import functools
import hashlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from eqforge.core.console import Ticker
from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.disk import DigestingStream
from eqforge.schemas.dataset.manifest import FILE_PATH, DataFile
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.datasets import table_type
from eqforge.transforms.export.formats import ExportSettings
from eqforge.transforms.export.names import key_of, picture_columns
from eqforge.transforms.export.note import NOTES, Ledger
from eqforge.transforms.export.pictures import Encoder, Picture, PictureColumn, Pictures
from eqforge.transforms.export.rows import (
    Split,
    SplitRows,
    check_files,
    merged,
    splits_of,
    valued_schema,
)

PIECE_ROWS: Final = 5_000
PIECE_BYTES: Final = 32 << 20
_BUFFER_BYTES: Final = 1 << 20
_PATH: Final = re.compile(FILE_PATH)
_PATH_CHARS: Final = 300


class ExportStream(io.BufferedWriter):
    """A file that is being written."""

    rows: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """A row with its images.

    Attributes:
      key: a file name, safe on every disk; distinct for distinct ids.
      pictures: by image column, `image_0` for `image_0_id`; None if the id is null.
    """

    id: str
    key: str
    row: dict[str, Any]
    pictures: dict[str, Picture | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """Some rows with all their images in memory: at most PIECE_BYTES, or one row."""

    rows: pa.Table
    pictures: dict[str, PictureColumn]


class Part:
    """The rows of one file, in the order of their ids: `rows` of its split, from `start`."""

    def __init__(self, export: "Export", split: Split, number: int, rows: SplitRows) -> None:
        self._export, self._split_rows = export, rows
        size = export.settings.rows_per_file
        self.split, self.number, self.count = split, number, -(-split.rows // size)
        self.start = number * size
        self.rows = min(size, split.rows - self.start)

    @property
    def name(self) -> str:
        """Return the file's name, as Hugging Face names shards: `test-00000-of-00002`."""
        return f"{self.split.name}-{self.number:05d}-of-{self.count:05d}"

    def tables(self) -> Iterator[pa.Table]:
        for start in range(self.start, self.start + self.rows, PIECE_ROWS):
            count = min(PIECE_ROWS, self.start + self.rows - start)
            rows, schema = self._split_rows.take(start, count), self._export.schema
            yield rows if rows.schema == schema else rows.select(schema.names).cast(schema)
            self._export.tick(count)
            # This thread's memory pool would keep for itself what another thread frees.
            pa.default_memory_pool().release_unused()

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows with their images; the cuts depend on the rows alone."""
        for rows in self.tables():
            yield from self._export.joined(rows)

    def records(self) -> Iterator[Record]:
        for piece in self.pieces():
            yield from self._export.records(piece)


class Export:
    """A dataset that is being written in another format.

    Attributes:
      keys: the columns that identify a row.
      schema: the columns of the rows, without images.
      pictures: the image column for each column of keys into `images`; empty without images.
    """

    def __init__(self, dataset: Dataset, settings: ExportSettings, ledger: Ledger) -> None:
        table = settings.table
        kind = table_type(dataset.manifest.dataset, table)
        assert kind is not None
        check_files(dataset, table)
        self.dataset, self.settings, self.keys = dataset, settings, kind.key
        self.splits, self.schema = splits_of(dataset, table), dataset.schema(table)
        self.pictures, self.folder = picture_columns(dataset, table), ledger.folder
        self._ledger, self._done, self._stack = ledger, 0, contextlib.ExitStack()
        total = dataset.manifest.num_rows(table)
        self._ticker = Ticker(total, "rows", task=f"exporting {dataset.manifest.dataset}")

    def leave_out_empty(self) -> None:
        kept = (*self.keys, *self.pictures)
        self.schema = valued_schema(self.dataset, self.settings.table, kept)

    def close(self) -> None:
        self._ticker.close()
        self._stack.close()

    @property
    def left_out(self) -> dict[str, int]:
        """Number of rows left out, by the licences that forbid redistribution."""
        return self._ledger.note().left_out

    @functools.cached_property
    def _encoder(self) -> Encoder:
        return Encoder(self._stack.enter_context(Pictures(self.dataset)), self.settings)

    def of_table(self, table: str) -> "Export":
        """Return the export of a different table into the same folder; close it separately."""
        settings = dataclasses.replace(self.settings, table=table)
        return Export(self.dataset, settings, self._ledger)

    @property
    def suffixes(self) -> tuple[str, ...]:
        return self._encoder.suffixes if self.pictures else ()

    def count_pictures(self) -> int:
        if not self.pictures:
            return 0
        batches = self.dataset.batches(self.settings.table, [*self.pictures], 50_000)
        return self._encoder.count(column for batch in batches for column in batch.columns)

    def parts(self, split: Split) -> Iterator[Part]:
        """Yield the parts of a split, each of at most `rows_per_file` rows; use them in turn."""
        rows = SplitRows(merged(self.dataset, self.settings.table, self.keys, split))
        for number in range(-(-split.rows // self.settings.rows_per_file)):
            yield Part(self, split, number, rows)

    def all_parts(self) -> Iterator[Part]:
        for split in self.splits:
            yield from self.parts(split)

    def records_of(self, split: Split) -> Iterator[Record]:
        for part in self.parts(split):
            yield from part.records()

    def joined(self, rows: pa.Table) -> Iterator[Piece]:
        if not self.pictures:
            yield Piece(rows=rows, pictures={})
            return
        encoder = self._encoder
        sizes = sum(encoder.sizes(rows.column(name)) for name in self.pictures)
        for start, stop in _cuts(np.asarray(sizes)):
            chunk = rows.slice(start, stop - start)
            yield Piece(
                rows=chunk,
                pictures={
                    to: encoder.read(chunk.column(name)) for name, to in self.pictures.items()
                },
            )

    def records(self, piece: Piece) -> Iterator[Record]:
        names = list(piece.pictures)
        columns = zip(*piece.pictures.values(), strict=True) if names else iter(())
        for row in piece.rows.to_pylist():
            found = dict(zip(names, next(columns, ()), strict=True))
            name = " ".join(row[key] for key in self.keys)
            yield Record(id=name, key=key_of(name), row=row, pictures=found)

    def has(self, path: str) -> bool:
        return path in self._ledger.done

    def done(self, path: str) -> DataFile:
        return self._ledger.done[path]

    @property
    def files(self) -> list[DataFile]:
        return sorted(self._ledger.done.values(), key=lambda file: file.path)

    @contextlib.contextmanager
    def file(self, path: str, *, rows: int = 0) -> Iterator[ExportStream]:
        """Open a file, which appears under its name when the block ends.

        Args:
          path: below the folder, of names that are safe everywhere; see `names`.
        """
        url = self._url(path)
        if path.casefold() in self._ledger.opened:
            raise InputError(f"{url}: two exported files would have this name")
        self._ledger.opened.add(path.casefold())
        with storage.open_atomic(url) as stream:
            digesting = DigestingStream(stream)
            buffered = ExportStream(digesting, _BUFFER_BYTES)
            buffered.rows = rows
            yield buffered
            buffered.flush()
            num_bytes, sha256 = digesting.digest()
        self._ledger.add(
            DataFile(path=path, rows=buffered.rows, num_bytes=num_bytes, sha256=sha256)
        )

    def put(self, path: str, data: bytes) -> None:
        """Write a small file, such as an image, unless it exists; see `file`.

        A power cut before the export is finished may corrupt it; resuming detects that.
        """
        if not self.has(path):
            storage.write_bytes(self._url(path), data, synced=False)
            sha256 = hashlib.sha256(data).hexdigest()
            self._ledger.add(DataFile(path=path, rows=0, num_bytes=len(data), sha256=sha256))

    def tick(self, rows: int) -> None:
        self._done += rows
        self._ticker.show(self._done)

    def _url(self, path: str) -> str:
        assert _PATH.fullmatch(path), path
        url = storage.join(self.folder, path)
        if len(path) > _PATH_CHARS:
            raise InputError(f"{url}: the name has more than {_PATH_CHARS} characters")
        if path.casefold() in NOTES:
            raise InputError(f"{url}: this name is reserved for the export note")
        return url


def _cuts(sizes: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that have at most PIECE_BYTES together, or are one row."""
    start = total = 0
    for row, size in enumerate(sizes.tolist()):
        if row > start and total + size > PIECE_BYTES:
            yield start, row
            start, total = row, 0
        total += size
    if start < len(sizes):
        yield start, len(sizes)
