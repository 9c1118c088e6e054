"""Files and folders on a local disk, opened without links, synced and digested; the cache."""

import errno
import hashlib
import io
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from eqforge.core.errors import InputError

_PIECE_BYTES = 16 << 20


def make_folder(folder: Path, synced: bool = True) -> None:
    """Make a folder and its parents; if synced, they survive a power cut."""
    if not folder.is_dir():
        make_folder(folder.parent, synced)
        try:
            folder.mkdir(exist_ok=True)
        except FileExistsError:
            error = errno.ENOTDIR
            raise NotADirectoryError(error, os.strerror(error), str(folder)) from None
        if synced:
            sync(folder.parent)


def sync(path: str | Path) -> None:
    """Flush a file's bytes, or the entries of a folder, to the disk."""
    place = os.open(path, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def open_plain(root: str, names: list[str], url: str) -> int:
    """Return a file descriptor of a plain file below a folder; see `storage.open_below`."""
    place = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for number, name in enumerate(names, start=1):
            kind = os.O_NONBLOCK if number == len(names) else os.O_DIRECTORY
            above, place = place, os.open(name, os.O_RDONLY | os.O_NOFOLLOW | kind, dir_fd=place)
            os.close(above)
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise InputError(f"{url} is not a regular file")
    except (OSError, InputError) as error:
        os.close(place)
        if isinstance(error, InputError):
            raise
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise InputError(
                f"{url} is not a regular file, or its path contains a symbolic link"
            ) from error
        raise OSError(error.errno, error.strerror, url) from error
    return place


def cache_folder() -> Path:
    """Return $EQFORGE_CACHE, else `eqforge` in the user's cache folder."""
    if folder := os.environ.get("EQFORGE_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eqforge"


def digest_stream(stream: Any) -> tuple[int, str]:
    sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    stream.seek(0, os.SEEK_END)  # files in memory are digested without being read through
    return stream.tell(), sha256


class RangeStream(io.RawIOBase):
    """A seekable stream of bytes that `read(start, count)` returns, as of an object of a store."""

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read, self._size, self._place = read, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        self._place = max(0, offset + (0, self._place, self._size)[whence])
        return self._place

    def readinto(self, buffer: Any, /) -> int:
        count = max(0, min(len(buffer), self._size - self._place))
        data = self._read(self._place, count)
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def readall(self) -> bytes:
        return b"".join(iter(lambda: self.read(_PIECE_BYTES) or b"", b""))


class DigestingStream(io.RawIOBase):
    """Write to `stream`, which stays open, and compute the SHA-256 of the bytes."""

    INLINE_BYTES = 64 << 10
    """Smaller writes are digested faster than another thread wakes up."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._size, self._sha256 = stream, 0, hashlib.sha256()
        self._thread = ThreadPoolExecutor(1)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Write bytes; another thread digests them meanwhile, without a copy."""
        piece = memoryview(data)
        if piece.nbytes < self.INLINE_BYTES:
            self._sha256.update(piece)
            self._stream.write(piece)
        else:
            digested = self._thread.submit(self._sha256.update, piece)
            try:
                self._stream.write(piece)
            finally:
                digested.result()  # whoever called may use the memory again
        self._size += piece.nbytes
        return piece.nbytes

    def tell(self) -> int:
        return self._size

    def digest(self) -> tuple[int, str]:
        self._thread.shutdown()
        return self._size, self._sha256.hexdigest()
