"""The pictures of a dataset by their ids, read from where they lie in its Parquet files.

Datasets store pictures uncompressed, one behind the other, so a picture is a range of bytes of a
file, and nothing is shuffled, or held in memory but the index: 29 bytes a picture. Files of a
store, and those that somebody wrote otherwise, are unpacked into a temporary file first. Whatever
is read is compared with its id, which is its SHA-256.
"""

import contextlib
import hashlib
import os
import struct
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.errors import InputError, room_named
from eqforge.schemas.io import storage
from eqforge.schemas.io.checked import name_of
from eqforge.schemas.io.parquet_footer import Footer
from eqforge.schemas.io.parquet_layout import BadPages, Page
from eqforge.schemas.io.pictures import FILE_SUFFIXES
from eqforge.schemas.io.table_file import ADVICE
from eqforge.schemas.tables.datasets import table_type

_DIGITS: Final = 64
_LENGTH_BYTES: Final = 4
_OPEN_FILES: Final = 256


class Pictures:
    """Where each picture of a table lies; closed as a context.

    Args:
      dataset: the dataset.
      table: a table that holds pictures.

    Raises:
      InputError: a file is missing or damaged.
    """

    def __init__(self, dataset: Dataset, table: str = "images") -> None:
        """Reads the ids and lengths of all pictures."""
        kind = table_type(dataset.manifest.dataset, table)
        assert kind is not None
        self._dataset, self._key = dataset, kind.key[0]
        self._stack = contextlib.ExitStack()
        self._paths: list[str] = []
        self._opened: dict[int, int] = {}
        self._descriptors: dict[int, int] = {}
        self._suffixes: list[str] = []
        parts = [self._index(file.path) for file in dataset.files(table) if file.rows]
        whole = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
        empty = np.zeros(0, np.int64)
        keys, *rest = whole or [empty.astype(np.uint64), empty, empty, empty, empty]
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._starts, self._lengths, self._files, self._kinds = (each[order] for each in rest)

    def __enter__(self) -> "Pictures":
        """Returns itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Closes the files."""
        self._stack.close()
        for descriptor in self._opened.values():
            os.close(descriptor)

    def places(self, ids: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """Returns where pictures stand in the index, int64 [n]; -1 for an id that is null.

        Raises:
          InputError: the table has no such picture.
        """
        there = np.asarray(ids.is_valid())
        found = np.full(len(ids), -1, np.int64)
        keys = _keys(ids.drop_null(), self._dataset.folder)
        if len(keys):
            at = np.searchsorted(self._keys, keys)
            is_known = self._keys[np.minimum(at, len(self._keys) - 1)] == keys
            if not len(self._keys) or not is_known.all():
                lost = ids.drop_null()[int(np.argmin(is_known))].as_py()
                raise InputError(f"{self._dataset.folder}: no image {name_of(lost)}; {ADVICE}")
            found[there] = at
        return found

    def sizes(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Returns the lengths of pictures in bytes, int64 [n]; 0 for -1."""
        return np.where(places < 0, 0, self._lengths[places])

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of all pictures."""
        return tuple(sorted(self._suffixes))

    def suffixes_of(self, places: npt.NDArray[np.int64]) -> list[str]:
        """Returns the suffixes of pictures' files, such as `.jpg`; any for -1."""
        return [self._suffixes[kind] for kind in self._kinds[places].tolist()]

    def read(self, ids: Sequence[str | None], places: npt.NDArray[np.int64]) -> list[bytes | None]:
        """Returns encoded pictures; None for null.

        Args:
          ids: of the pictures.
          places: where they stand in the index, int64 [n].

        Raises:
          InputError: the bytes are others than an id says.
        """
        columns = (each[places].tolist() for each in (self._files, self._starts, self._lengths))
        found: list[bytes | None] = []
        pread, sha256 = os.pread, hashlib.sha256  # 200,000 times in an export of 100,000 pairs
        for row, (name, number, start, length) in enumerate(zip(ids, *columns, strict=True)):
            if name is None:
                found.append(None)
                continue
            data = pread(self._descriptor(number), length, start)
            same = sha256(data).hexdigest() == name
            found.append(data if same else self._neighbour(name, int(places[row])))
        return found

    def _neighbour(self, name: str, place: int) -> bytes:
        """Returns the picture that stands behind one whose id begins with the same 64 bits.

        Raises:
          InputError: there is none.
        """
        key, place = self._keys[place], place + 1
        if place < len(self._keys) and self._keys[place] == key:
            (data,) = self.read([name], np.asarray([place]))
            assert data is not None
            return data
        url = self._dataset.url(self._paths[self._files[place - 1]])
        raise InputError(f"{url}: the image {name_of(name)} has other bytes; {ADVICE}")

    def _descriptor(self, number: int) -> int:
        """Returns the descriptor of an open file."""
        if number not in self._descriptors:
            if len(self._opened) == _OPEN_FILES:
                first = next(iter(self._opened))
                os.close(self._opened.pop(first))
                del self._descriptors[first]
            with storage.open_below(self._dataset.folder, self._paths[number]) as stream:
                self._opened[number] = self._descriptors[number] = os.dup(stream.fileno())
        return self._descriptors[number]

    def _index(self, path: str) -> tuple[npt.NDArray[Any], ...]:
        """Returns keys, starts, lengths, files and kinds of suffixes of a file's pictures."""
        number = len(self._paths)
        self._paths.append(path)
        keys, lengths, kinds = [], [], []
        for group in self._dataset.groups(path, [self._key, "num_bytes", "image.path"]):
            keys.append(_keys(group.column(self._key), self._dataset.folder))
            lengths.append(group.column("num_bytes").to_numpy().astype(np.int64))
            kinds.append(self._kinds_of(group.column("image").combine_chunks().field("path")))
        starts = self._starts_in(path, lengths)
        if starts is None:
            starts, lengths = self._unpack(number, path)
        files = np.full(sum(map(len, keys)), number, np.uint32)
        return np.concatenate(keys), starts, np.concatenate(lengths), files, np.concatenate(kinds)

    def _kinds_of(self, paths: pa.Array) -> npt.NDArray[np.uint8]:
        """Returns the places of pictures' suffixes in the list of suffixes."""
        coded = pc.utf8_slice_codeunits(paths, _DIGITS).dictionary_encode()
        for suffix in coded.dictionary.to_pylist():
            if suffix not in FILE_SUFFIXES:
                raise InputError(
                    f"{self._dataset.folder}: the suffix {name_of(suffix)} of a picture is none of "
                    f"{', '.join(FILE_SUFFIXES)}; {ADVICE}"
                )
            if suffix not in self._suffixes:
                self._suffixes.append(suffix)
        codes = [self._suffixes.index(suffix) for suffix in coded.dictionary.to_pylist()]
        return np.asarray(codes, np.uint8)[coded.indices.to_numpy()]

    def _starts_in(
        self, path: str, lengths: Sequence[npt.NDArray[np.int64]]
    ) -> npt.NDArray[np.int64] | None:
        """Returns where pictures begin in a file of this machine; None if they are packed."""
        if not storage.is_local(self._dataset.folder):
            return None
        try:
            with storage.open_below(self._dataset.folder, path) as stream:
                footer = Footer(stream)
                (leaf,) = footer.leaves(["image.bytes"])
                groups = (
                    starts_of(stream.fileno(), footer.plain_pages(group, leaf), sizes)
                    for group, sizes in enumerate(lengths)
                )
                return np.concatenate(list(groups))
        except BadPages:
            return None

    def _unpack(
        self, number: int, path: str
    ) -> tuple[npt.NDArray[np.int64], list[npt.NDArray[np.int64]]]:
        """Copies a file's pictures to a temporary file; returns their starts and lengths."""
        stream = self._stack.enter_context(
            tempfile.TemporaryFile(prefix="eqforge-")  # noqa: SIM115 - closed by the stack
        )
        self._descriptors[number] = stream.fileno()
        lengths = []
        with room_named(tempfile.gettempdir()):
            for group in self._dataset.groups(path, ["image.bytes"]):
                for chunk in group.column("image").chunks:
                    found = [each["bytes"] or b"" for each in chunk.to_pylist()]
                    stream.writelines(found)
                    lengths.append(np.asarray(list(map(len, found)), np.int64))
            stream.flush()
        return _from(0, np.concatenate(lengths)), lengths


def starts_of(
    place: int, pages: Iterable[Page], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Returns where the values of a column begin in a Parquet file, int64 [n].

    A page has the length of the levels, the levels, and of each value its length in four bytes and
    its bytes.

    Args:
      place: descriptor of the file.
      pages: of the column, which hold values as they are.
      lengths: of the values in bytes, int64 [n], none of them null.

    Raises:
      BadPages: the pages do not have such values.
    """
    starts, row = [np.zeros(0, np.int64)], 0
    for page in pages:
        sizes = lengths[row : row + page.values] + _LENGTH_BYTES
        (levels,) = struct.unpack("<I", os.pread(place, _LENGTH_BYTES, page.start))
        if page.num_bytes != _LENGTH_BYTES + levels + sizes.sum() or len(sizes) != page.values:
            raise BadPages("values of other lengths")
        starts.append(_from(page.start + _LENGTH_BYTES + levels, sizes) + _LENGTH_BYTES)
        row += page.values
    if row != len(lengths):
        raise BadPages("fewer values than rows")
    return np.concatenate(starts)


def _from(first: int, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns where things begin that lie one behind the other."""
    return first + np.cumsum(sizes) - sizes


def _keys(ids: pa.Array | pa.ChunkedArray, folder: str) -> npt.NDArray[np.uint64]:
    """Returns the first 64 bits of SHA-256s in hexadecimal digits, uint64 [n].

    Raises:
      InputError: one is no SHA-256.
    """
    joined = "".join(ids.to_pylist())
    lengths = pc.min_max(pc.binary_length(ids)).as_py()
    with contextlib.suppress(ValueError):
        if set(lengths.values()) <= {_DIGITS, None}:
            digests = np.frombuffer(bytes.fromhex(joined), ">u8")
            return digests.reshape(-1, _DIGITS // 16)[:, 0].astype(np.uint64)
    raise InputError(f"{folder}: the id of a picture is no SHA-256; {ADVICE}")
