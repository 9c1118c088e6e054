"""Read tables packed as `.gz` or `.zip`, up to a multiple of the file's size."""

import contextlib
import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from eqforge.core.errors import InputError
from eqforge.core.files.untrusted import FREE_BYTES, MAX_EXPANSION

ENDINGS: Final = (".gz", ".zip")
_ADVICE: Final = "unpack it, and pass the file or folder inside"


def inner_name(path: Path) -> str:
    """Return the name of the table in a packed file: `t.csv` for `t.csv.gz`.

    Raises:
        InputError: a zip holds several files, or is damaged.
    """
    if path.suffix.lower() == ".zip" and path.is_file():
        with _readable(path), zipfile.ZipFile(path) as archive:
            return PurePosixPath(_only_file(archive, path)).name
    return path.stem if path.suffix.lower() == ".gz" else path.name


@contextlib.contextmanager
def unpacked(stream: IO[bytes], path: str | Path) -> Iterator[io.BufferedReader]:
    """Open the content of a packed file; raise InputError if it is damaged or too large."""
    most = MAX_EXPANSION * stream.seek(0, io.SEEK_END) + FREE_BYTES
    stream.seek(0)
    with contextlib.ExitStack() as stack, _readable(path):
        if str(path).lower().endswith(".gz"):
            content: Any = stack.enter_context(gzip.GzipFile(fileobj=stream))
        else:
            archive = stack.enter_context(zipfile.ZipFile(stream))
            content = stack.enter_context(archive.open(_only_file(archive, path)))
        yield io.BufferedReader(_Limited(content, path, most), 1 << 20)


class _Limited(io.RawIOBase):
    """A stream of at most `most` bytes; more raise an InputError."""

    def __init__(self, content: Any, path: str | Path, most: int) -> None:
        self._content, self._path, self._left, self._most = content, path, most, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data: bytes = self._content.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise InputError(
                f"{self._path}: unpacks to more than {self._most:,} bytes, the limit for a file "
                f"of its size; {_ADVICE}"
            )
        buffer[: len(data)] = data
        return len(data)


def _only_file(archive: zipfile.ZipFile, path: str | Path) -> str:
    names = [
        name
        for name in archive.namelist()
        if not name.endswith("/") and not name.startswith("__MACOSX/")  # which the Finder adds
    ]
    if len(names) != 1:
        raise InputError(f"{path}: contains {len(names):,} files; expected one table; {_ADVICE}")
    return names[0]


@contextlib.contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
        raise InputError(f"{path}: cannot be unpacked: {error}; {_ADVICE}") from error
