"""The pictures of a dataset by their ids, read from where they lie in its Parquet files.

Datasets store pictures uncompressed, one behind the other, so a picture is a range of bytes of a
file, and nothing is shuffled, or held in memory but the index: 29 bytes a picture. Files of a
store, and those that somebody wrote otherwise, are unpacked into a temporary file first. Whatever
is read is compared with its id, which is its SHA-256.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eqforge.core.errors import InputError, room_named
from eqforge.core.files import storage
from eqforge.core.files.checked import name_of
from eqforge.core.files.table_file import ADVICE
from eqforge.core.files.untrusted import Unreadable
from eqforge.schemas.dataset.picture_names import check_suffix
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.datasets import table_type

_DIGITS: Final = 64
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

    def __len__(self) -> int:
        """Returns how many pictures there are."""
        return len(self._keys)

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
            if not is_known.all():
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

    def suffixes_of(self, places: npt.NDArray[np.int64]) -> pa.StringArray:
        """Returns the suffixes of pictures' files, such as `.jpg` [n]; any for -1."""
        return pa.array(self._suffixes, pa.string()).take(pa.array(self._kinds[places]))

    def read(self, ids: pa.StringArray, places: npt.NDArray[np.int64]) -> pa.BinaryArray:
        """Returns encoded pictures, one behind the other in one piece of memory [n].

        Args:
          ids: of the pictures [n].
          places: where they stand in the index, int64 [n]; corrected where ids begin alike.

        Returns:
          Their bytes; none for null.

        Raises:
          InputError: the bytes are others than an id says.
        """
        names = ids.to_pylist()
        while True:
            ends = np.cumsum([0, *self.sizes(places)], dtype=np.int32)
            data = pa.allocate_buffer(int(ends[-1]))
            wrong = self._read_into(memoryview(data), ends, names, places)
            if not wrong:
                buffers = [None, pa.py_buffer(ends), data]
                return pa.BinaryArray.from_buffers(pa.binary(), len(ids), buffers)
            for row in wrong:
                places[row] = self._neighbour(names[row], int(places[row]))

    def _read_into(
        self,
        view: memoryview,
        ends: npt.NDArray[np.int32],
        names: Sequence[str | None],
        places: npt.NDArray[np.int64],
    ) -> list[int]:
        """Reads pictures in the order in which they lie; returns the rows whose ids do not fit."""
        rows = np.flatnonzero(places >= 0)
        rows = rows[np.lexsort((self._starts[places[rows]], self._files[places[rows]]))]
        at = places[rows]
        columns = (rows, ends[rows], ends[rows + 1], self._files[at], self._starts[at])
        wrong: list[int] = []
        preadv, sha256 = os.preadv, hashlib.sha256  # 200,000 times in an export of 100,000 pairs
        for row, first, last, number, start in zip(*(c.tolist() for c in columns), strict=True):
            picture = view[first:last]
            preadv(self._descriptor(number), [picture], start)
            if sha256(picture).hexdigest() != names[row]:
                wrong.append(row)
        return wrong

    def _neighbour(self, name: str | None, place: int) -> int:
        """Returns the place behind that of a picture whose id begins with the same 64 bits.

        Raises:
          InputError: no such picture stands there.
        """
        if place + 1 < len(self._keys) and self._keys[place + 1] == self._keys[place]:
            return place + 1
        url = self._dataset.url(self._paths[self._files[place]])
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
        """Returns the places of pictures' suffixes in the list of suffixes.

        Raises:
          InputError: a picture has no path, or one of another suffix.
        """
        if paths.null_count:
            check_suffix(None, self._dataset.folder)
        coded = pc.utf8_slice_codeunits(paths, _DIGITS).dictionary_encode()
        for suffix in coded.dictionary.to_pylist():
            if check_suffix(suffix, self._dataset.folder) not in self._suffixes:
                self._suffixes.append(suffix)
        codes = [self._suffixes.index(suffix) for suffix in coded.dictionary.to_pylist()]
        return np.asarray(codes, np.uint8)[coded.indices.to_numpy()]

    def _starts_in(
        self, path: str, lengths: Sequence[npt.NDArray[np.int64]]
    ) -> npt.NDArray[np.int64] | None:
        """Returns where pictures begin in a file of this machine; None if they are packed."""
        if not storage.is_local(self._dataset.folder):
            return None
        with self._dataset.open_file(path) as opened, contextlib.suppress(Unreadable):
            return opened.places("image.bytes", lengths)
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
        sizes = np.concatenate(lengths)
        return np.cumsum(sizes) - sizes, lengths


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
