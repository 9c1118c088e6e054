"""Reads a dataset's images by their ids, as stored or scaled and re-encoded.

Datasets store images uncompressed and contiguous, so an image is a range of bytes of a file.
Nothing is shuffled, and memory holds only the index: 85 bytes per image. Compressed files and files
of an object store are first unpacked into a temporary file. Every image read is compared with its
id, which is its SHA-256.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eqforge.core.errors import InputError, room_named
from eqforge.core.files import storage
from eqforge.core.files.checked import name_of
from eqforge.core.files.pictures import BadImage, TooManyPixels, opened, read_pixels
from eqforge.core.files.table_file import ADVICE
from eqforge.core.files.untrusted import Unreadable
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.shelf import check_suffix
from eqforge.schemas.records.frames import FrameSettings
from eqforge.transforms.dataset.media import encode_image
from eqforge.transforms.export.formats import ExportSettings

_DIGITS: Final = 64
_OPEN_FILES: Final = 256
_FORMATS: Final[Mapping[str, Literal["jpeg", "png"]]] = {
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".png": "png",
}
_SUFFIXES: Final = {"jpeg": ".jpg", "png": ".png"}

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Picture:
    """An encoded image; `image_id` is the SHA-256 of the bytes in the dataset."""

    image_id: str
    suffix: str
    data: bytes


@dataclass(frozen=True, slots=True)
class PictureColumn:
    """The images of some rows: ids (null for a row without one), suffixes and bytes."""

    ids: pa.StringArray
    suffixes: pa.StringArray
    data: pa.BinaryArray

    def __iter__(self) -> Iterator[Picture | None]:
        columns = (self.ids.to_pylist(), self.suffixes.to_pylist(), self.data)
        for name, suffix, data in zip(*columns, strict=True):
            yield None if name is None else Picture(name, suffix, data.as_py())


class Pictures:
    """An index of a table's images; use it as a context manager."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._stack = contextlib.ExitStack()
        self._paths: list[str] = []
        self._opened: dict[int, int] = {}
        self._unpacked: dict[int, int] = {}
        self._suffixes: list[str] = []
        parts = [self._index(file.path) for file in dataset.files("images") if file.rows]
        whole = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
        keys, *rest = whole or [np.zeros(0, f"S{_DIGITS}"), *[np.zeros(0, np.int64)] * 4]
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._starts, self._lengths, self._files, self._kinds = (each[order] for each in rest)

    def __enter__(self) -> "Pictures":
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        for descriptor in self._opened.values():
            os.close(descriptor)

    def __len__(self) -> int:
        return len(self._keys)

    def places(self, ids: pa.Array | pa.ChunkedArray) -> Places:
        """Return the images' positions in the index, int64 [n]; -1 for a null id."""
        found = np.full(len(ids), -1, np.int64)
        named = ids.drop_null()
        keys = self._keys_of(named)
        if len(keys):
            at = np.searchsorted(self._keys, keys)
            is_known = self._keys[np.minimum(at, len(self._keys) - 1)] == keys
            if not is_known.all():
                lost = named[int(np.argmin(is_known))].as_py()
                raise InputError(
                    f"{self._dataset.folder}: the image {name_of(lost)} is missing; {ADVICE}"
                )
            found[np.asarray(ids.is_valid())] = at
        return found

    def sizes(self, places: Places) -> Places:
        return np.where(places < 0, 0, self._lengths[places])

    @property
    def suffixes(self) -> tuple[str, ...]:
        return tuple(sorted(self._suffixes))

    def read(self, ids: pa.StringArray) -> PictureColumn:
        """Read images in the order of their bytes on disk, into one piece of memory."""
        names, places = ids.to_pylist(), self.places(ids)
        ends = np.cumsum([0, *self.sizes(places)], dtype=np.int32)
        data = pa.allocate_buffer(int(ends[-1]))
        view = memoryview(data)
        rows = np.flatnonzero(places >= 0)
        rows = rows[np.lexsort((self._starts[places[rows]], self._files[places[rows]]))]
        at = places[rows]
        columns = (rows, ends[rows], ends[rows + 1], self._files[at], self._starts[at])
        preadv, sha256 = os.preadv, hashlib.sha256  # 200,000 times in an export of 100,000 pairs
        for row, first, last, number, start in zip(*(c.tolist() for c in columns), strict=True):
            picture = view[first:last]
            preadv(self._descriptor(number), [picture], start)
            if sha256(picture).hexdigest() != names[row]:
                url = self._dataset.url(self._paths[number])
                raise InputError(
                    f"{url}: the bytes of image {name_of(names[row])} do not match its SHA-256; "
                    f"{ADVICE}"
                )
        return PictureColumn(
            ids,
            pa.array(self._suffixes, pa.string()).take(pa.array(self._kinds[places])),
            pa.BinaryArray.from_buffers(pa.binary(), len(ids), [None, pa.py_buffer(ends), data]),
        )

    def _descriptor(self, number: int) -> int:
        if number in self._unpacked:
            return self._unpacked[number]
        if number not in self._opened:
            if len(self._opened) == _OPEN_FILES:
                os.close(self._opened.pop(next(iter(self._opened))))
            with storage.open_below(self._dataset.folder, self._paths[number]) as stream:
                self._opened[number] = os.dup(stream.fileno())
        return self._opened[number]

    def _index(self, path: str) -> tuple[npt.NDArray[Any], ...]:
        """Return keys, starts, lengths, files and suffix kinds of a file's images."""
        number = len(self._paths)
        self._paths.append(path)
        keys, lengths, kinds = [], [], []
        for group in self._dataset.groups(path, ["image_id", "num_bytes", "image.path"]):
            keys.append(self._keys_of(group.column("image_id")))
            lengths.append(group.column("num_bytes").to_numpy().astype(np.int64))
            kinds.append(self._kinds_of(group.column("image").combine_chunks().field("path")))
        starts = None
        if storage.is_local(self._dataset.folder):
            with self._dataset.open_file(path) as file, contextlib.suppress(Unreadable):
                starts = file.places("image.bytes", lengths)
        if starts is None:  # a file of a store, or a packed one
            starts, lengths = self._unpack(number, path)
        files = np.full(sum(map(len, keys)), number, np.uint32)
        return np.concatenate(keys), starts, np.concatenate(lengths), files, np.concatenate(kinds)

    def _keys_of(self, ids: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bytes_]:
        is_digest = pc.match_substring_regex(ids, r"\A[0-9a-f]{64}\z")
        if pc.all(is_digest).as_py() is False:
            folder = self._dataset.folder
            raise InputError(f"{folder}: the id of an image is not a SHA-256 digest; {ADVICE}")
        return np.asarray(ids.to_pylist(), f"S{_DIGITS}")

    def _kinds_of(self, paths: pa.Array) -> npt.NDArray[np.uint8]:
        if paths.null_count:
            check_suffix(None, self._dataset.folder)
        coded = pc.utf8_slice_codeunits(paths, _DIGITS).dictionary_encode()
        for suffix in coded.dictionary.to_pylist():
            if check_suffix(suffix, self._dataset.folder) not in self._suffixes:
                self._suffixes.append(suffix)
        codes = [self._suffixes.index(suffix) for suffix in coded.dictionary.to_pylist()]
        return np.asarray(codes, np.uint8)[coded.indices.to_numpy()]

    def _unpack(self, number: int, path: str) -> tuple[Places, list[Places]]:
        """Copy a file's images to a temporary file; return their starts and lengths."""
        stream = self._stack.enter_context(
            tempfile.TemporaryFile(prefix="eqforge-")  # noqa: SIM115 - closed by the stack
        )
        self._unpacked[number] = stream.fileno()
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


class Encoder:
    """Reads images, and encodes them as the settings request."""

    def __init__(self, pictures: Pictures, settings: ExportSettings) -> None:
        self._pictures, self._settings = pictures, settings
        self._is_kept = settings.image_format == "keep" and settings.max_side is None

    @property
    def suffixes(self) -> tuple[str, ...]:
        if self._is_kept:
            return self._pictures.suffixes
        return tuple(sorted({_SUFFIXES[self._wanted(s)] for s in self._pictures.suffixes}))

    def _wanted(self, suffix: str) -> Literal["jpeg", "png"]:
        chosen = self._settings.image_format
        return _FORMATS.get(suffix, "png") if chosen == "keep" else chosen

    def count(self, columns: Iterable[pa.Array]) -> int:
        shown = np.zeros(len(self._pictures), bool)
        for ids in columns:
            places = self._pictures.places(ids)
            shown[places[places >= 0]] = True
        return int(shown.sum())

    def sizes(self, ids: pa.ChunkedArray) -> Places:
        return self._pictures.sizes(self._pictures.places(ids))

    def read(self, ids: pa.ChunkedArray) -> PictureColumn:
        """Read images by their ids, and encode each distinct one once."""
        stored = self._pictures.read(ids.combine_chunks())
        if self._is_kept:
            return stored
        names = stored.ids.to_pylist()
        distinct = dict(zip(names, stored, strict=True))
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            encoded = dict(
                zip(distinct, threads.map(self._encoded, distinct.values()), strict=True)
            )
        suffixes = [_SUFFIXES[self._wanted(each)] for each in stored.suffixes.to_pylist()]
        data = pa.array([encoded[name] for name in names], pa.binary())
        return PictureColumn(stored.ids, pa.array(suffixes, pa.string()), data)

    def _encoded(self, picture: Picture | None) -> bytes:
        if picture is None:
            return b""
        wanted, most = self._wanted(picture.suffix), self._settings.max_side
        try:
            if wanted == _FORMATS.get(picture.suffix):
                with opened(picture.data) as image:
                    if most is None or max(image.size) <= most:
                        return picture.data
            pixels = read_pixels(picture.data)
        except (BadImage, TooManyPixels) as error:
            message = f"image {name_of(picture.image_id)}: cannot be encoded again: {error}"
            raise InputError(message) from error
        settings = FrameSettings(image_format=wanted, max_side=most)
        return encode_image(pixels, settings).data
