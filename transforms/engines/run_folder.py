"""A folder for the temporary files of a run; the next run deletes those of killed runs.

A run holds a lock on its folder, which the system releases however the run ends. A folder without a
held lock is deleted if it is this user's own and not a link.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "eqforge-run-"
_LOCK = "lock"
_outside: list[str] = []


@contextlib.contextmanager
def run_folder() -> Iterator[None]:
    """Put all temporary files of the block, and of the processes it starts, in one folder."""
    parent, variable = tempfile.gettempdir(), os.environ.get("TMPDIR")
    with private_folder(parent) as folder:
        _outside.append(parent)
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        try:
            yield
        finally:
            tempfile.tempdir = _outside.pop()
            os.environ.pop("TMPDIR")
            if variable is not None:
                os.environ["TMPDIR"] = variable


@contextlib.contextmanager
def private_folder(parent: str) -> Iterator[str]:
    """Yield a new folder private to this user; delete those of dead runs in the same parent."""
    _sweep(parent)
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
    try:
        lock = _held(Path(folder))
        try:
            yield folder
        finally:
            os.close(lock)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # a worker may be writing its last file


@contextlib.contextmanager
def outlasting() -> Iterator[None]:
    before, tempfile.tempdir = tempfile.tempdir, outside()
    try:
        yield
    finally:
        tempfile.tempdir = before


def outside() -> str:
    return _outside[0] if _outside else tempfile.gettempdir()


def _held(folder: Path) -> int:
    """Lock a new folder; the lock file gets its name only once it is locked."""
    lock = os.open(folder / "new", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "new").rename(folder / _LOCK)
    return lock


def _sweep(parent: str) -> None:
    with os.scandir(parent) as entries:
        found = [entry.path for entry in entries if entry.name.startswith(PREFIX)]
    for folder in found:
        with contextlib.suppress(OSError), _taken(folder):
            shutil.rmtree(folder)


@contextlib.contextmanager
def _taken(folder: str) -> Iterator[None]:
    """Take the lock of a folder that a dead run left, for the block.

    Raises:
      OSError: the run is alive, another is deleting the folder, or it is not this user's.
    """
    with contextlib.ExitStack() as stack:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        stack.callback(os.close, place)
        if os.fstat(place).st_uid != os.geteuid():
            raise PermissionError(folder)
        # O_NONBLOCK: a named pipe of that name must not block.
        lock = os.open(_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
        stack.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
