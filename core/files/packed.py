"""Reads tables that are packed as `.gz` or `.zip`, up to a multiple of the file's size."""

import contextlib
import gzip
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from eqforge.core.errors import InputError
from eqforge.core.files.untrusted import FREE_BYTES, MAX_EXPANSION

ENDINGS: Final = (".gz", ".zip")
_ADVICE: Final = "unpack it, and name the file or the folder"


def inner_name(path: Path) -> str:
    """Return the name of the table in a packed file, such as `t.csv` of `t.csv.gz`; else its own.

    Raises:
      InputError: a zip holds several files, or is damaged.
    """
    if path.suffix.lower() == ".gz":
        return path.stem
    if path.suffix.lower() != ".zip" or not path.is_file():
        return path.name
    with path.open("rb") as stream, _opened_zip(stream, path) as archive:
        return PurePosixPath(_only_file(archive, path)).name


@contextlib.contextmanager
def unpacked(stream: IO[bytes], path: str | Path) -> Iterator[io.BufferedReader]:
    """Open what is in a packed file."""
    most = MAX_EXPANSION * stream.seek(0, io.SEEK_END) + FREE_BYTES
    stream.seek(0)
    with contextlib.ExitStack() as stack:
        if str(path).lower().endswith(".gz"):
            content: IO[bytes] | gzip.GzipFile = stack.enter_context(gzip.GzipFile(fileobj=stream))
        else:
            archive = stack.enter_context(_opened_zip(stream, path))
            with _readable(path):
                content = stack.enter_context(archive.open(_only_file(archive, path)))
        yield io.BufferedReader(_Limited(content, path, most), 1 << 20)


class _Limited(io.RawIOBase):
    """What is in a packed file; an InputError where it is damaged or more than `most` bytes."""

    def __init__(self, content: IO[bytes] | gzip.GzipFile, path: str | Path, most: int) -> None:
        self._content, self._path, self._most, self._place = content, path, most, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _readable(self._path):
            data = self._content.read(len(buffer))
        self._place += len(data)
        if self._place > self._most:
            raise InputError(
                f"{self._path}: unpacks to more than {self._most:,} bytes, {MAX_EXPANSION} times "
                f"its size and {FREE_BYTES:,}; {_ADVICE}"
            )
        buffer[: len(data)] = data
        return len(data)


@contextlib.contextmanager
def _opened_zip(stream: IO[bytes], path: str | Path) -> Iterator[zipfile.ZipFile]:
    with _readable(path):
        archive = zipfile.ZipFile(stream)
    with archive:
        yield archive


def _only_file(archive: zipfile.ZipFile, path: str | Path) -> str:
    names = [
        name
        for name in archive.namelist()
        if not name.endswith("/") and not PurePosixPath(name).name.startswith((".", "__"))
        if not name.startswith("__MACOSX/")  # which the Finder adds
    ]
    if len(names) != 1:
        raise InputError(f"{path}: holds {len(names):,} files, expected one table; {_ADVICE}")
    return names[0]


@contextlib.contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # a damaged or encrypted file can make unpackers raise anything
        raise InputError(f"{path}: cannot be unpacked: {error}; {_ADVICE}") from error
