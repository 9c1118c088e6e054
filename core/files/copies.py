"""Copies of files from stores, on a disk of this machine, together no larger than a limit.

All processes of a user share one folder. A copy has its full length from its first moment, and its
owner holds a lock on it, which the system releases however the owner ends; whoever makes the next
copy deletes those that nobody holds. Who finds no room waits: every owner has one copy at a time,
so room comes.
"""

import contextlib
import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from eqforge.core.errors import room_named
from eqforge.core.files.cache import cache_folder

WAIT_S = 0.1
_LOCK = "lock"


def copies_folder() -> Path:
    """Returns the folder of the copies."""
    return cache_folder() / "copies"


@contextlib.contextmanager
def room_for(num_bytes: int, suffix: str, limit: int) -> Iterator[IO[bytes]]:
    """Opens an empty file that exists during the block, once there is room for it.

    Args:
      num_bytes: its final length, at most `limit`.
      suffix: how its name ends.
      limit: how many bytes all copies take together.
    """
    folder = copies_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{uuid.uuid4().hex}{suffix}"
    while (copy := _reserved(folder, path, num_bytes, limit)) is None:
        time.sleep(WAIT_S)
    with copy, room_named(str(path)):
        try:
            yield copy
        finally:
            path.unlink(missing_ok=True)


def _reserved(folder: Path, path: Path, num_bytes: int, limit: int) -> IO[bytes] | None:
    """Returns a new file of a length, held; None if there is no room."""
    with open(folder / _LOCK, "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if sum(map(_held, _copies(folder))) + num_bytes > limit:
            return None
        copy = open(path, "xb+")  # noqa: SIM115 - the caller closes it
        fcntl.flock(copy, fcntl.LOCK_EX)
        copy.truncate(num_bytes)
        return copy


def _copies(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if path.name != _LOCK)


def _held(path: Path) -> int:
    """Returns the bytes of a copy; deletes one that nobody holds, which has none."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as copy:
        try:
            fcntl.flock(copy, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.fstat(copy.fileno()).st_size
        path.unlink(missing_ok=True)
    return 0
