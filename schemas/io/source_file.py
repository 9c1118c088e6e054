"""Files that are named in a dataset's lineage: what is digested is what is read.

A file may be swapped, or grow, while it is worked on: a download in progress does both. A source is
opened once, and its digest and its content come from the same descriptor; whether the file was
written to in the meantime is told by its size, its times and its inode.
"""

import contextlib
import errno
import hashlib
import io
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from eqforge.schemas.errors import EqforgeError, InputError
from eqforge.schemas.io import storage

# Linux stamps files with the time of its last tick, at most 10 ms ago: two writes within one tick
# cannot be told apart.
_TICK_S = 0.02
_PIECE_BYTES = 1 << 20


class SourceChanged(EqforgeError):
    """A file was written to, or replaced, while it was read."""


class FileState(NamedTuple):
    """What differs where a file was changed, even if its time of change was set back.

    Attributes:
      size: in bytes.
      mtime_ns, ctime_ns: when content and entry were last changed, in nanoseconds.
      inode: its number.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> "FileState":
        """Returns the state that the system tells of."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that is open for reading.

    Attributes:
      stream: its bytes, unbuffered.
      state: of the file when it was opened.
    """

    stream: io.FileIO
    state: FileState

    def digest(self, alive: Callable[[], None] = lambda: None) -> str:
        """Returns the SHA-256 of the content; leaves the stream at its start.

        Args:
          alive: called for each megabyte.
        """
        sha256 = hashlib.sha256()
        self.stream.seek(0)
        while piece := self.stream.read(_PIECE_BYTES):
            sha256.update(piece)
            alive()
        self.stream.seek(0)
        return sha256.hexdigest()

    def is_changed(self) -> bool:
        """Tells whether the file was written to, renamed or deleted since it was opened."""
        return FileState.of(os.fstat(self.stream.fileno())) != self.state

    def check_unchanged(self) -> None:
        """Checks that all that was read since the file was opened is of one content.

        Raises:
          SourceChanged: it may not be.
        """
        if self.is_changed():
            raise SourceChanged("the file changed while it was read")


def open_plain(path: str | Path) -> io.FileIO:
    """Opens a plain file, or a link to one: pipes may never end, and devices do not.

    Raises:
      OSError: it cannot be opened, or is none.
    """
    # Without O_NONBLOCK a pipe that nobody writes to would be waited for.
    stream = io.FileIO(path, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.ENXIO, "it is no plain file", str(path))
    return stream


class BoundedReader(io.BufferedReader):
    """Reads a file by pieces; one that is announced longer than the file takes no memory.

    Args:
      stream: the file.
      num_bytes: its length.
    """

    def __init__(self, stream: io.RawIOBase, num_bytes: int) -> None:
        super().__init__(stream, _PIECE_BYTES)
        self._most = num_bytes

    def read(self, size: int | None = -1, /) -> bytes:
        """Returns at most so many bytes; all that is left for none or a number below zero."""
        return super().read(size if size is None else min(size, self._most))


@contextlib.contextmanager
def open_source(path: str | Path) -> Iterator[SourceFile]:
    """Opens a file; what was written to it up to a moment ago cannot be mistaken for no change.

    Raises:
      OSError: it cannot be opened, or is no plain file.
    """
    with open_plain(path) as stream:
        found = os.fstat(stream.fileno())
        if abs(time.time_ns() - found.st_ctime_ns) < _TICK_S * 1e9:
            time.sleep(_TICK_S)
            found = os.fstat(stream.fileno())
        yield SourceFile(stream, FileState.of(found))


def read_source(path: str | Path) -> bytes:
    """Returns the content of a file, all of it of one moment.

    Raises:
      OSError: it cannot be read.
      SourceChanged: it changed while it was read.
    """
    with open_source(path) as source:
        data = source.stream.readall()
        source.check_unchanged()
        return data


_seen: ContextVar[dict[str, str] | None] = ContextVar("seen", default=None)


@contextlib.contextmanager
def one_content() -> Iterator[None]:
    """Has every input file of one content within the body, however often it is opened there.

    `open_input`, `read_input` and `digest_input` raise InputError where it is not.
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
        f"{path}: the file changed while it was read; run the command again when it is complete"
    )


class _Digesting(io.RawIOBase):
    """Reads a file once from its start to its end, and takes the SHA-256 of what passes."""

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
    """Opens a file of annotations, whose digest stands in the manifest.

    It is read to its end, whether the body does so or not. Where it changed meanwhile, that is the
    error, whatever the body found wrong with it.

    Raises:
      OSError: it cannot be read.
      InputError: it changed while it was read, or has another content than when it was last opened;
        see `one_content`.
    """
    with open_source(path) as source:
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
def open_text(path: str | Path, **how: Any) -> Iterator[io.TextIOWrapper]:
    """Opens a text file of annotations; see `open_input`, and `open` for the arguments."""
    with open_input(path) as stream:
        text = io.TextIOWrapper(stream, **how)
        yield text
        text.detach()


def read_input(url: str | Path) -> bytes:
    """Returns the content of a file of annotations, a path or URL; see `open_input`."""
    if storage.is_local(str(url)):
        with open_input(storage.locate(str(url))[1]) as stream:
            return stream.read()
    data = storage.read_bytes(str(url))
    _note(str(url), hashlib.sha256(data).hexdigest())
    return data


def digest_input(url: str | Path) -> str:
    """Returns the SHA-256 of a file of annotations, a path or URL; see `open_input`."""
    if storage.is_local(str(url)):
        with open_source(url) as source:
            sha256 = source.digest()
    else:
        sha256 = storage.digest(str(url))[1]
    _note(str(url), sha256)
    return sha256


@contextlib.contextmanager
def unchanged(paths: Iterable[str | Path]) -> Iterator[None]:
    """Checks that files, and those in folders, are after the body what they were before it.

    For libraries that open files by their names. What is no path of this machine is passed over.

    Raises:
      InputError: one of them is not.
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
