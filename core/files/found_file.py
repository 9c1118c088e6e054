"""A file that an annotation names, opened and read the same way on a disk or in a store.

A stored file is copied to this machine once, for as long as it is open.
"""

import contextlib
import fcntl
import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from eqforge.core.errors import room_named
from eqforge.core.files import storage
from eqforge.core.files.disk import cache_folder
from eqforge.core.files.objects import FetchFailed, State, fetch, read_part, stat, state_of
from eqforge.core.files.source_file import FileState, SourceFile, open_source, read_source

CACHE_GB = 20.0


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenFile:
    """A file open for reading.

    Attributes:
        copied: opens it on this machine; the copy of a stored file ends with the block.
    """

    state: FileState | State
    copied: Callable[[], contextlib.AbstractContextManager[SourceFile]]
    is_changed: Callable[[], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundFile:
    """A file of a local folder, a store or a shard.

    Attributes:
      name: its path below the folder of its kind.
      place: its path or URL, or that of its shard.
      listed: its state, or its shard's, when the store was listed; None on a disk.
      start: offset in its shard in bytes; None outside shards.
      size: its length in its shard.
      cache_gb: limit for all copies together.
    """

    name: str
    place: str
    listed: State | None = None
    start: int | None = None
    size: int = 0
    cache_gb: float = CACHE_GB

    def state(self) -> list[int | str]:
        """Return values that change with the content, without opening the file."""
        if self.listed is None:
            return [*FileState.of(os.stat(self.place))]
        return [*self._own(self.listed)]

    def _own(self, state: State) -> State:
        return state if self.start is None else (*state, str(self.start), str(self.size))

    def digest(self) -> str:
        if self.listed is None:
            return storage.digest(self.place)[1]
        sha256, info = hashlib.sha256(), self._stat()
        read_part(self.place, self.start or 0, self._size(info), sha256.update)
        return sha256.hexdigest()

    def read(self) -> bytes:
        """Return the content; raise SourceChanged if it changed, or FetchFailed."""
        if self.listed is None:
            return read_source(self.place)
        info = self._stat()
        with self._copy(info) as copy:
            data = copy.read()
        if state_of(self._stat()) != state_of(info):
            raise FetchFailed("source_changed", "the file changed while it was read")
        return data

    @contextlib.contextmanager
    def opened(self) -> Iterator[OpenFile]:
        if self.listed is None:
            with open_source(self.place) as source:
                here = contextlib.nullcontext(source)
                yield OpenFile(
                    state=source.state, copied=lambda: here, is_changed=source.is_changed
                )
            return
        info = self._stat()
        yield OpenFile(
            state=self._own(state_of(info)),
            copied=partial(self._opened_copy, info),
            is_changed=lambda: state_of(self._stat()) != state_of(info),
        )

    @contextlib.contextmanager
    def _opened_copy(self, info: dict[str, Any]) -> Iterator[SourceFile]:
        with self._copy(info) as copy, open_source(copy.name) as source:
            yield source

    @contextlib.contextmanager
    def _copy(self, info: dict[str, Any]) -> Iterator[IO[bytes]]:
        size, limit = self._size(info), round(self.cache_gb * 1e9)
        if size > limit:
            detail = f"it has {size:,} bytes, more than --cache-gb {self.cache_gb:g} allows"
            raise FetchFailed("too_large_to_copy", detail)
        with room_for(size, os.path.splitext(self.name)[1], limit) as copy:
            if self.start is None:
                fetch(self.place, info, copy)
            else:
                read_part(self.place, self.start, size, copy.write)
            copy.flush()
            copy.seek(0)
            yield copy

    def _size(self, info: dict[str, Any]) -> int:
        return info["size"] if self.start is None else self.size

    def _stat(self) -> dict[str, Any]:
        info = stat(self.place)
        if self.start is not None and state_of(info) != self.listed:
            raise FetchFailed("source_changed", "its shard changed after eqforge listed it")
        return info


_LOCK = "lock"


def copies_folder() -> Path:
    return cache_folder() / "copies"


@contextlib.contextmanager
def room_for(num_bytes: int, suffix: str, limit: int) -> Iterator[IO[bytes]]:
    """Open an empty temporary file once the copies leave room for its `num_bytes`.

    Args:
        limit: bytes of all copies together.
    """
    folder = copies_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{uuid.uuid4().hex}{suffix}"
    while (copy := _reserved(folder, path, num_bytes, limit)) is None:
        time.sleep(0.1)
    with copy, room_named(str(path)):
        try:
            yield copy
        finally:
            path.unlink(missing_ok=True)


def _reserved(folder: Path, path: Path, num_bytes: int, limit: int) -> IO[bytes] | None:
    with open(folder / _LOCK, "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        copies = (each for each in folder.iterdir() if each.name != _LOCK)
        if sum(map(_held, copies)) + num_bytes > limit:
            return None
        copy = open(path, "xb+")  # noqa: SIM115 - the caller closes it
        fcntl.flock(copy, fcntl.LOCK_EX)
        copy.truncate(num_bytes)
        return copy


def _held(path: Path) -> int:
    """Return the bytes of a copy; delete a copy that nobody has locked, and return 0."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as copy:
        try:
            fcntl.flock(copy, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.fstat(copy.fileno()).st_size
        path.unlink(missing_ok=True)
    return 0
