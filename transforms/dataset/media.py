"""The media store: images in a folder or bucket, named by what they hold."""

import functools
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eqforge.schemas.identity import sha256_hex
from eqforge.schemas.io import storage


@dataclass(frozen=True, slots=True)
class MediaStore:
    """A content-addressed store: `<root>/ab/abcd….jpg` holds the bytes whose SHA-256 is abcd….

    Any number of processes may write at once, and one may be killed at any moment: a file has its
    final name only when it is complete. Storing the same bytes again writes nothing. A power cut
    may leave other bytes of the right length in a file that was not synced; storing the image
    again puts that right, so whoever notes that images are stored has them synced first.

    Attributes:
      root: a local folder, or an address fsspec knows, such as gs://bucket/folder.
    """

    root: str

    def put(self, data: bytes, suffix: str) -> str:
        """Stores bytes and returns their SHA-256, by which they are found again.

        Args:
          data: an encoded image.
          suffix: the end of the file's name, such as ".jpg".
        """
        image_id = sha256_hex(data)
        filesystem, path = self._locate(image_id, suffix)
        if _holds(filesystem, path, data):
            return image_id
        storage.make_parents(filesystem, path)
        if _is_local(filesystem):
            _write_local(path, data)
        else:
            # Object stores show an object only when all of it has arrived.
            filesystem.pipe_file(path, data)
        return image_id

    def sync(self, images: Iterable[tuple[str, str]]) -> None:
        """Returns when stored images, each an id and its suffix, outlast a power cut.

        One call for many is faster than many calls: the disk then writes them all at once.

        Raises:
          FileNotFoundError: the store does not hold one of them.
        """
        filesystem, root = _filesystem(self.root)
        if not _is_local(filesystem):
            return
        paths = sorted({self.path(*image) for image in images})
        folders = sorted({os.path.dirname(path) for path in paths})
        for path in [*paths, *folders, *([root, os.path.dirname(root)] if paths else [])]:
            storage.sync(path)

    def get(self, image_id: str, suffix: str) -> bytes:
        """Returns the bytes of an image.

        Raises:
          FileNotFoundError: the store does not hold it.
        """
        filesystem, path = self._locate(image_id, suffix)
        if _is_local(filesystem):
            with open(path, "rb") as file:
                return file.read()
        data: bytes = filesystem.cat_file(path)
        return data

    def exists(self, image_id: str, suffix: str, num_bytes: int | None = None) -> bool:
        """Tells whether the store holds an image; in its full length, where that is given."""
        filesystem, path = self._locate(image_id, suffix)
        if num_bytes is not None:
            return _is_stored(filesystem, path, num_bytes)
        return os.path.isfile(path) if _is_local(filesystem) else bool(filesystem.isfile(path))

    def path(self, image_id: str, suffix: str) -> str:
        """Returns the path or address of an image, whether it is there or not."""
        filesystem, path = self._locate(image_id, suffix)
        return path if _is_local(filesystem) else str(filesystem.unstrip_protocol(path))

    def _locate(self, image_id: str, suffix: str) -> tuple[Any, str]:
        filesystem, folder = _filesystem(self.root)
        return filesystem, f"{folder}/{image_id[:2]}/{image_id}{suffix}"


@functools.cache
def _filesystem(root: str) -> tuple[Any, str]:
    """Returns the file system of a root and the root's path in it."""
    import fsspec.core

    filesystem, path = fsspec.core.url_to_fs(root)
    return filesystem, path.rstrip("/")


def _is_local(filesystem: Any) -> bool:
    return "file" in filesystem.protocol


def _is_stored(filesystem: Any, path: str, num_bytes: int) -> bool:
    """Tells whether a file is there in its full length; after a power cut it may be short."""
    try:
        if _is_local(filesystem):
            return os.path.getsize(path) == num_bytes
        return bool(filesystem.size(path) == num_bytes)
    except FileNotFoundError:
        return False


def _holds(filesystem: Any, path: str, data: bytes) -> bool:
    """Tells whether a file is there and holds these bytes; of a store's object the length says."""
    if not _is_stored(filesystem, path, len(data)):
        return False
    return not _is_local(filesystem) or Path(path).read_bytes() == data


def _write_local(path: str, data: bytes) -> None:
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
