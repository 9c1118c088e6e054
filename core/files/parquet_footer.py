"""The footer of an untrusted Parquet file, and the memory that decoding its columns takes.

A footer may be crafted to crash the process that reads it, and its sizes may be false. It is read
within limits, and sizes are taken from the page headers, as a decoder takes them.
"""

import functools
import struct
from collections.abc import Iterator, Sequence
from typing import IO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.core.files.parquet_layout import (
    ENCODINGS,
    BadPages,
    Chunk,
    Page,
    Pages,
    plain_pages,
    read_chunks,
    read_pages,
)

FOOTER_BYTES: Final = 512 << 10
FOOTER_SHARE: Final = 64
"""A footer may have FOOTER_BYTES or, if that is more, this part of the file: 1 / FOOTER_SHARE."""

MAX_ELEMENTS: Final = 2_000
"""The limit for any list in the footer: columns, nested ones included, and row groups.

Arrow recurses into nested columns; some thousands of levels crash the process.
"""

_MAGIC, _TAIL_BYTES = b"PAR1", 8


class Footer:
    """A footer that was read within limits.

    Attributes:
      num_bytes: the length of the file.
      metadata: what the footer says.
      schema: the columns of the file.
    """

    def __init__(self, stream: IO[bytes], encodings: frozenset[int] = ENCODINGS) -> None:
        """Reads the footer of an open file.

        Args:
          stream: the file.
          encodings: of pages that are read; see parquet_layout.

        Raises:
          BadPages, OSError, pa.ArrowException: it is damaged or beyond the limits.
        """
        self._stream, self._encodings = stream, encodings
        self.num_bytes = stream.seek(0, 2)
        self._length = _length(stream, self.num_bytes)
        opened = self.open()
        self.metadata: pq.FileMetaData = opened.metadata
        self.schema: pa.Schema = opened.schema_arrow

    def open(self, dictionaries: Sequence[str] = ()) -> pq.ParquetFile:
        """Opens the file; the texts of the columns named here stay dictionary-encoded."""
        return pq.ParquetFile(
            self._stream,
            read_dictionary=list(dictionaries),
            thrift_string_size_limit=self._length,
            thrift_container_size_limit=MAX_ELEMENTS,
        )

    def leaves(self, columns: Sequence[str] | None) -> Iterator[int]:
        """Yields the indices of the leaf columns below these columns, or of all."""
        for number in range(self.metadata.num_columns):
            path = self.metadata.schema.column(number).path
            if columns is None or any(f"{path}.".startswith(f"{name}.") for name in columns):
                yield number

    def pages(self, group: int, number: int) -> Pages:
        """Returns the totals of a leaf column's pages in a row group.

        Raises:
          BadPages, OSError: the pages are damaged or beyond the limits.
        """
        chunk = self._chunk(group, number)
        pages = read_pages(self._stream, chunk.start, chunk.stop, self._encodings)
        if pages.values != chunk.values:
            raise BadPages("a column whose pages have other values than the footer says")
        return pages

    def plain_pages(self, group: int, number: int) -> Iterator[Page]:
        """Yields the pages of a leaf column in a row group, which hold values as they are.

        Raises:
          BadPages, OSError: they do not, or are damaged.
        """
        chunk = self._chunk(group, number)
        return plain_pages(self._stream, chunk.start, chunk.stop)

    def _chunk(self, group: int, number: int) -> Chunk:
        chunk = self._chunks[group][number]
        if not chunk.start and not chunk.values:  # a group without rows may have no pages
            return Chunk(start=0, stop=0, values=0)
        if not len(_MAGIC) <= chunk.start <= chunk.stop <= self.num_bytes - self._length:
            raise BadPages("a column that stands outside of the file")
        return chunk

    @functools.cached_property
    def _chunks(self) -> list[list[Chunk]]:
        """The leaf columns of each row group."""
        self._stream.seek(self.num_bytes - self._length)
        found = read_chunks(self._stream.read(self._length - _TAIL_BYTES))
        columns = [self.metadata.num_columns] * self.metadata.num_row_groups
        if [len(chunks) for chunks in found] != columns:
            raise BadPages("a row group with other columns than the file has")
        return found


def _length(stream: IO[bytes], num_bytes: int) -> int:
    """Returns the length of the footer, its last eight bytes included."""
    if num_bytes < len(_MAGIC) + _TAIL_BYTES:
        raise BadPages("it is too short for a Parquet file")
    stream.seek(num_bytes - _TAIL_BYTES)
    (length, magic) = struct.unpack("<I4s", stream.read(_TAIL_BYTES))
    if magic != _MAGIC or length > num_bytes - len(_MAGIC) - _TAIL_BYTES:
        raise BadPages("it does not end as a Parquet file does")
    if length > max(FOOTER_BYTES, num_bytes // FOOTER_SHARE):
        raise BadPages(f"a footer of {length:,} bytes")
    return length + _TAIL_BYTES
