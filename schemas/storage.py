"""Files of a dataset on a local disk or an object store, written whole or not at all."""

import contextlib
import hashlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from eqforge.schemas.errors import InputError

TEMPORARY_PREFIX = ".tmp-"


def join(root: str, *parts: str) -> str:
    """Returns a path or URL below a root."""
    return "/".join([root.rstrip("/"), *parts])


def locate(url: str) -> tuple[Any, str]:
    """Returns the file system of a path or URL, and the path on it.

    Raises:
      InputError: nothing is installed for URLs of that kind.
    """
    try:
        return fsspec.core.url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise InputError(f"{url}: {error}") from error


def is_local(url: str) -> bool:
    """Tells whether a path or URL lies on a disk of this machine."""
    return isinstance(locate(url)[0], LocalFileSystem)


def exists(url: str) -> bool:
    """Tells whether a file or folder is there."""
    system, path = locate(url)
    return system.exists(path)


def read_bytes(url: str) -> bytes:
    """Returns a whole file.

    Raises:
      FileNotFoundError: it is not there.
    """
    system, path = locate(url)
    return system.cat_file(path)


def digest(url: str) -> tuple[int, str]:
    """Returns the length of a file and its SHA-256, read in small pieces."""
    system, path = locate(url)
    with system.open(path, "rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        return stream.tell(), sha256


def write_bytes(url: str, data: bytes) -> None:
    """Writes a whole file; a reader sees the old content or the new, never a part."""
    with open_atomic(url) as stream:
        stream.write(data)


@contextlib.contextmanager
def open_atomic(url: str) -> Iterator[IO[bytes]]:
    """Opens a file for writing that appears under its name only when it is complete.

    On a disk the bytes go to a temporary name in the same folder and are renamed; an object store
    shows an object only once it is closed. After an exception nothing appears.
    """
    system, path = locate(url)
    if not isinstance(system, LocalFileSystem):
        with system.transaction, system.open(path, "wb") as stream:
            yield stream
        return
    folder = Path(path).parent
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
    try:
        with open(temporary, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def list_files(url: str) -> list[str]:
    """Returns the names of the files directly in a folder, sorted; none where it is missing."""
    system, path = locate(url)
    if not system.isdir(path):
        return []
    found = system.ls(path, detail=True)
    return sorted(entry["name"].rsplit("/", 1)[-1] for entry in found if entry["type"] == "file")


def list_names(url: str) -> list[str]:
    """Returns the names of the files and folders directly in a folder; none where it is missing."""
    system, path = locate(url)
    if not system.isdir(path):
        return []
    return sorted(
        {entry["name"].rstrip("/").rsplit("/", 1)[-1] for entry in system.ls(path, detail=True)}
    )


def delete(url: str) -> None:
    """Deletes a file; it is no error that it is not there."""
    system, path = locate(url)
    with contextlib.suppress(FileNotFoundError):
        system.rm_file(path)
