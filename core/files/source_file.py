"""Files named in a dataset's lineage: the bytes hashed are the bytes read.

A file may be replaced, or grow, while it is read, as in a download in progress. A source is opened
once, and its digest and its content come from the same descriptor. Its size, times and inode show
whether the file was written to meanwhile. Compressed annotation files are unpacked while read.
"""

import contextlib
import errno
import gzip
import hashlib
import io
import os
import stat
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, Final, NamedTuple

from eqforge.core.errors import EqforgeError, InputError
from eqforge.core.files import storage
from eqforge.core.files.untrusted import FREE_BYTES, MAX_EXPANSION

# Linux stamps files with the time of its last tick, at most 10 ms ago, so two writes within one
# tick have the same time.
_TICK_S = 0.02
_PIECE_BYTES = 1 << 20
LFS_POINTER = b"version https://git-lfs.github.com/spec/"


class SourceChanged(EqforgeError):
    """A file was written to, or replaced, while it was read."""


class FileState(NamedTuple):
    """State that differs if a file was changed, even if its modification time was set back."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> "FileState":
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file open for unbuffered reading, with its state when it was opened."""

    stream: io.FileIO
    state: FileState

    def digest(self, alive: Callable[[], None] = lambda: None) -> str:
        """Return the SHA-256 of the content and rewind; call `alive` after each megabyte."""
        sha256 = hashlib.sha256()
        self.stream.seek(0)
        while piece := self.stream.read(_PIECE_BYTES):
            sha256.update(piece)
            alive()
        self.stream.seek(0)
        return sha256.hexdigest()

    def is_changed(self) -> bool:
        return FileState.of(os.fstat(self.stream.fileno())) != self.state

    def check_unchanged(self) -> None:
        if self.is_changed():
            raise SourceChanged("the file changed while it was read")


def open_plain(path: str | Path) -> io.FileIO:
    """Open a plain file, or a link to one; reject pipes and devices, which may never end."""
    # Without O_NONBLOCK, opening a pipe that nobody writes to would block.
    stream = io.FileIO(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.ENXIO, "it is not a regular file", str(path))
    return stream


class BoundedReader(io.BufferedReader):
    """Reads a file; asking for more bytes than it has allocates no memory for them."""

    def __init__(self, stream: io.RawIOBase, num_bytes: int) -> None:
        super().__init__(stream, _PIECE_BYTES)
        self._most = num_bytes

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(size if size is None else min(size, self._most))


@contextlib.contextmanager
def open_source(path: str | Path) -> Iterator[SourceFile]:
    """Open a file so that any later write to it changes its state.

    If the file was changed just now, wait for the next tick of the clock.
    """
    with open_plain(path) as stream:
        found = os.fstat(stream.fileno())
        if abs(time.time_ns() - found.st_ctime_ns) < _TICK_S * 1e9:
            time.sleep(_TICK_S)
            found = os.fstat(stream.fileno())
        yield SourceFile(stream, FileState.of(found))


def read_source(path: str | Path) -> bytes:
    """Return the content of a file at one instant; raise SourceChanged if it changed meanwhile."""
    with open_source(path) as source:
        data = source.stream.readall()
        source.check_unchanged()
        return data


_seen: ContextVar[dict[str, str] | None] = ContextVar("seen", default=None)


@contextlib.contextmanager
def one_content() -> Iterator[None]:
    """Ensure that every input file has the same content each time it is opened in the block.

    Otherwise `open_input`, `read_input` and `digest_input` raise InputError.
    """
    token = _seen.set({})
    try:
        yield
    finally:
        _seen.reset(token)


def _note(url: str, sha256: str) -> None:
    seen = _seen.get()
    if seen is not None and seen.setdefault(url, sha256) != sha256:
        raise _changed(url)


def _changed(path: str | Path) -> InputError:
    return InputError(
        f"{path} changed while it was read; run the command again when the file is complete"
    )


class _Digesting(io.RawIOBase):
    """Reads a file once from start to end, and computes its SHA-256."""

    def __init__(self, stream: io.FileIO) -> None:
        self._stream, self.sha256 = stream, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._stream.readinto(buffer)
        self.sha256.update(memoryview(buffer)[:count])
        return count

    def readall(self) -> bytes:
        data = self._stream.readall()
        self.sha256.update(data)
        return data


@contextlib.contextmanager
def open_input(path: str | Path) -> Iterator[BinaryIO]:
    """Open an annotation file, or the content of a `.gz` or `.zip`; the manifest has its digest.

    It is read to its end even if the block does not. If it changed meanwhile, that is reported
    instead of the error that the block raised.

    Raises:
      OSError: it cannot be read.
      InputError: it changed while it was read, or since it was last opened (see `one_content`), or
        Git LFS has not fetched it.
    """
    if str(path).lower().endswith((".gz", ".zip")):
        with open_seekable(path) as packed, unpacked(packed, path) as content:
            yield content
        return
    with open_source(path) as source:
        _check_fetched(source, path)
        digesting = _Digesting(source.stream)
        reader = BoundedReader(digesting, source.state.size)
        try:
            yield reader
            while reader.read(_PIECE_BYTES):
                pass
            source.check_unchanged()
        except SourceChanged as error:
            raise _changed(path) from error
        except EqforgeError as error:
            if source.is_changed():
                raise _changed(path) from error
            raise
        _note(str(path), digesting.sha256.hexdigest())


@contextlib.contextmanager
def open_seekable(path: str | Path) -> Iterator[BinaryIO]:
    """Open an annotation file that is read in any order; see `open_input`."""
    with open_source(path) as source:
        _check_fetched(source, path)
        _note(str(path), source.digest())
        try:
            yield BoundedReader(source.stream, source.state.size)
        finally:
            if source.is_changed():
                raise _changed(path)


def _check_fetched(source: SourceFile, path: str | Path) -> None:
    if os.pread(source.stream.fileno(), len(LFS_POINTER), 0) == LFS_POINTER:
        raise InputError(
            f"{path} is a Git LFS pointer, not the file itself; fetch the file with `git lfs pull`"
        )


@contextlib.contextmanager
def open_text(path: str | Path, **how: Any) -> Iterator[io.TextIOWrapper]:
    """Open an annotation file as text; see `open_input`, and `io.TextIOWrapper` for `how`."""
    with open_input(path) as stream:
        text = io.TextIOWrapper(stream, **how)
        yield text
        text.detach()


def read_input(url: str | Path) -> bytes:
    """Return the content of an annotation file, a path or URL; see `open_input`."""
    if storage.is_local(str(url)):
        with open_input(storage.locate(str(url))[1]) as stream:
            return stream.read()
    data = storage.read_bytes(str(url))
    _note(str(url), hashlib.sha256(data).hexdigest())
    return data


def digest_input(url: str | Path) -> str:
    if storage.is_local(str(url)):
        with open_source(url) as source:
            sha256 = source.digest()
    else:
        sha256 = storage.digest(str(url))[1]
    _note(str(url), sha256)
    return sha256


@contextlib.contextmanager
def unchanged(paths: Iterable[str | Path]) -> Iterator[None]:
    """Check that files, and files in folders, do not change during the block.

    For libraries that open files by name. Paths that do not exist on this machine are ignored.
    """
    places = [Path(path) for path in paths]
    before = {path: _states(path) for path in places}
    yield
    for path, states in before.items():
        if _states(path) != states:
            raise _changed(path)


def _states(path: Path) -> dict[Path, FileState]:
    found: dict[Path, FileState] = {}
    for file in path.rglob("*") if path.is_dir() else [path]:
        if file.is_file():
            with open_source(file) as source:
                found[file] = source.state
    return found


ENDINGS: Final = (".gz", ".zip")
_ADVICE: Final = "unpack it, and pass the file or folder inside"


def inner_name(path: Path) -> str:
    """Return the name of the table in a packed file: `t.csv` for `t.csv.gz`."""
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
                f"{self._path} unpacks to more than {self._most:,} bytes, the limit for a file "
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
        raise InputError(f"{path} contains {len(names):,} files; expected one table; {_ADVICE}")
    return names[0]


@contextlib.contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
        raise InputError(
            f"{path}: cannot be unpacked: {error}. Unpack it yourself, and pass the file or "
            "folder inside."
        ) from error
