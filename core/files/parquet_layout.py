"""Reads where a Parquet file's columns lie, and how much decoding their pages takes.

The sizes in a file's footer may be false; a decoder goes by the page headers. Both are structs of
Thrift's compact protocol, of which this reads the part that they use. pyarrow reads the footer too,
but describing a column whose statistics are damaged crashes the process.

Source: apache/parquet-format, `parquet.thrift` (FileMetaData, PageHeader); apache/thrift,
`doc/specs/thrift-compact-protocol.md`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, Final

MAX_HEADER_BYTES: Final = 1 << 16
MAX_PAGES: Final = 4_096
"""The most pages of a column in a row group; writers start a new page after a megabyte."""

ENCODINGS: Final = frozenset((0, 2, 3, 4, 8))
"""PLAIN, PLAIN_DICTIONARY, RLE, BIT_PACKED, RLE_DICTIONARY: the encodings of datasets.

In others, such as DELTA_BYTE_ARRAY, a value may be longer than its whole page.
"""

ANY_WRITERS: Final = ENCODINGS | {5, 9}
"""ENCODINGS and, for numbers, DELTA_BINARY_PACKED and BYTE_STREAM_SPLIT."""

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST = range(1, 10)
_STRUCT: Final = 12
_MAX_DEPTH: Final = 8
# Field ids of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_GROUPS, _COLUMNS, _META = 4, 1, 3
_NUM_VALUES, _CHUNK_BYTES, _DATA, _DICTIONARY_AT = 5, 7, 9, 11
# Field ids of PageHeader, of the header of each kind of page, and of the fields in these.
_TYPE, _UNCOMPRESSED, _COMPRESSED = 1, 2, 3
_HEADERS: Final = {0: 5, 2: 7, 3: 8}
_VALUES: Final = 1
_ENCODINGS: Final = {0: (2, 3, 4), 2: (2,), 3: (4,)}
_DATA_PAGE, _DICTIONARY = 0, 2
_PLAIN, _RLE = 0, 3


DAMAGED: Final = "a damaged footer or header of a page"


class BadPages(ValueError):
    """Pages are damaged, or of a kind that datasets do not use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pages:
    """The totals of the pages of one column in one row group.

    Attributes:
      num_bytes: of the data pages, uncompressed.
      dictionary_bytes: of the dictionary, uncompressed; no entry of it is longer.
      values: the number of values, nulls included.
    """

    num_bytes: int
    dictionary_bytes: int
    values: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """Where one column of one row group lies, and how many values it has, as the footer says.

    Attributes:
      start, stop: its bytes in the file, [start, stop).
      values: the number of values, nulls included.
    """

    start: int
    stop: int
    values: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One page, as its header says.

    Attributes:
      kind: of the page, and the encoding of its values, by Parquet's numbers.
      encoding: see `kind`.
      start: where it begins behind its header, in bytes from the file's beginning.
      stored_bytes: its length in the file.
      num_bytes: its length, uncompressed.
      values: the number of values, nulls included.
    """

    kind: int
    encoding: int
    start: int
    stored_bytes: int
    num_bytes: int
    values: int


def read_chunks(footer: bytes) -> list[list[Chunk]]:
    """Returns the columns of each row group.

    Args:
      footer: the bytes of a file's FileMetaData.

    Raises:
      BadPages: it is damaged.
    """
    groups = _Struct(footer).struct().get(_GROUPS)
    return [
        [_chunk(_fields(column, _META)) for column in _list(_fields(group).get(_COLUMNS))]
        for group in _list(groups)
    ]


def _chunk(fields: dict[int, Any]) -> Chunk:
    starts = [_number(fields, _DATA), _number({_DICTIONARY_AT: 0} | fields, _DICTIONARY_AT)]
    start = min((place for place in starts if place), default=0)
    stop = start + _number(fields, _CHUNK_BYTES)
    return Chunk(start=start, stop=stop, values=_number(fields, _NUM_VALUES))


def _list(found: Any) -> list[Any]:
    if not isinstance(found, list):
        raise BadPages(DAMAGED)
    return found


def _fields(found: Any, *places: int) -> dict[int, Any]:
    """Returns the fields of a struct, or of the one at a path of field ids in it."""
    for place in places:
        found = _fields(found).get(place)
    if not isinstance(found, dict):
        raise BadPages(DAMAGED)
    return found


def read_pages(
    stream: IO[bytes], start: int, stop: int, encodings: frozenset[int] = ENCODINGS
) -> Pages:
    """Adds up the pages at [start, stop) of a file; nothing is decompressed.

    Raises:
      BadPages: they are damaged, too many, or of an unknown kind or encoding.
    """
    size = {True: 0, False: 0}
    values = 0
    for number, page in enumerate(_pages(stream, start, stop, encodings)):
        if number == MAX_PAGES or (page.kind == _DICTIONARY and number > 0):
            raise BadPages("more pages than a column has")
        size[page.kind == _DICTIONARY] += page.num_bytes
        values += 0 if page.kind == _DICTIONARY else page.values
    return Pages(num_bytes=size[False], dictionary_bytes=size[True], values=values)


def plain_pages(stream: IO[bytes], start: int, stop: int) -> Iterator[Page]:
    """Yields the pages at [start, stop) of a file, all of which hold values as they are.

    Such a page has the levels of its values, and then the values: PLAIN, and not compressed as far
    as its header tells.

    Raises:
      BadPages: they are damaged, or of another kind.
    """
    for page in _pages(stream, start, stop, frozenset((_PLAIN, _RLE))):
        if page.kind != _DATA_PAGE or page.encoding != _PLAIN:
            raise BadPages("values that are not stored as they are")
        if page.num_bytes != page.stored_bytes:
            raise BadPages("a compressed page")
        yield page


def _pages(stream: IO[bytes], start: int, stop: int, encodings: frozenset[int]) -> Iterator[Page]:
    while start < stop:
        stream.seek(start)
        header = _Struct(stream.read(min(MAX_HEADER_BYTES, stop - start)))
        fields = header.struct()
        kind = _number(fields, _TYPE)
        if kind not in _HEADERS:
            raise BadPages(f"a page of the kind {kind}")
        page = _fields(fields, _HEADERS[kind])
        if any(_number(page, place) not in encodings for place in _ENCODINGS[kind]):
            raise BadPages("an encoding that is not read")
        body, stored = start + header.place, _number(fields, _COMPRESSED)
        start = body + stored
        yield Page(
            kind=kind,
            encoding=_number(page, _ENCODINGS[kind][0]),
            start=body,
            stored_bytes=stored,
            num_bytes=_number(fields, _UNCOMPRESSED),
            values=_number(page, _VALUES),
        )
    if start != stop:
        raise BadPages("a page that ends behind its column")


def _number(fields: dict[int, Any], place: int) -> int:
    found = fields.get(place)
    if type(found) is not int or found < 0:
        raise BadPages(DAMAGED)
    return found


class _Struct:
    """A struct of the compact protocol at the beginning of some bytes.

    Attributes:
      place: the number of bytes read so far.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self.place = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Returns the fields by their ids; types that Parquet does not use are refused.

        Raises:
          BadPages: it is damaged.
        """
        fields: dict[int, Any] = {}
        number = 0
        while (byte := self._byte()) != 0:
            number = number + (byte >> 4) if byte >> 4 else self._integer()
            if number in fields or not 0 < number < 2**15 or depth == _MAX_DEPTH:
                raise BadPages(DAMAGED)
            fields[number] = self._value(byte & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in (_I16, _I32):
            return self._integer()
        if kind == _I64:
            return self._integer(64)
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind == _LIST:
            return self._list(depth + 1)
        # The rest are names and statistics, which are skipped.
        if kind in (_BYTE, _DOUBLE, _BINARY):
            self._skip({_BYTE: 1, _DOUBLE: 8}.get(kind) or self._varint(5))
        else:
            raise BadPages(DAMAGED)
        return None

    def _list(self, depth: int) -> list[Any]:
        byte = self._byte()
        count, kind = byte >> 4, byte & 15
        count = self._varint(5) if count == 15 else count
        if depth == _MAX_DEPTH or count > len(self._data) - self.place:
            raise BadPages(DAMAGED)
        # A boolean in a list takes a whole byte.
        kind = _BYTE if kind in (_TRUE, _FALSE) else kind
        return [self._value(kind, depth) for _ in range(count)]

    def _skip(self, count: int) -> None:
        self.place += count
        if self.place > len(self._data):
            raise BadPages("a header that is cut short or too long")

    def _byte(self) -> int:
        self._skip(1)
        return self._data[self.place - 1]

    def _varint(self, most: int) -> int:
        found = 0
        for shift in range(0, 7 * most, 7):
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
        raise BadPages(DAMAGED)

    def _integer(self, bits: int = 32) -> int:
        """Reads a zigzag number; refuses more bits, which a decoder would drop."""
        found = self._varint(bits // 7 + 1)
        if found >= 2**bits:
            raise BadPages(DAMAGED)
        return (found >> 1) ^ -(found & 1)
