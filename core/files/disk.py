"""Files and folders on a disk of this machine: opened without links, and safe from power cuts.

And where eqforge keeps its downloads, for all runs of a user.
"""

import errno
import os
import stat
from pathlib import Path

from eqforge.core.errors import InputError


def make_folder(folder: Path, synced: bool = True) -> None:
    """Make a folder on this machine and its parents; synced, they survive a power cut."""
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
    """Return a file descriptor of a plain file below a folder; see storage.open_below."""
    place = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for number, name in enumerate(names, start=1):
            kind = os.O_NONBLOCK if number == len(names) else os.O_DIRECTORY
            above, place = place, os.open(name, os.O_RDONLY | os.O_NOFOLLOW | kind, dir_fd=place)
            os.close(above)
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise InputError(f"{url}: is no plain file")
    except OSError as error:
        os.close(place)
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise InputError(f"{url}: is no plain file, or a link leads to it") from error
        raise OSError(error.errno, error.strerror, url) from error
    except InputError:
        os.close(place)
        raise
    return place


def cache_folder() -> Path:
    """Return $EQFORGE_CACHE, else `eqforge` in the user's cache folder."""
    if own := os.environ.get("EQFORGE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eqforge"
