"""Finds a file that an annotation names inside the folder for its kind, and nowhere else."""

import errno
import os
import socket
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eqforge.schemas.errors import BuildError
from eqforge.schemas.io import storage


@dataclass(frozen=True, kw_only=True, slots=True)
class MissingFile:
    """A file that is missing or refused.

    Attributes:
      reason: `file_missing`, or `outside_root` for a name that leads out of the folder.
      detail: what was found, for a human reader.
    """

    reason: str
    detail: str


def find_file(
    root: str, name: str, suffixes: Sequence[str] = (), follow_links: bool = False
) -> str | MissingFile:
    """Returns the path of a file, or why there is none.

    Args:
      root: the folder, or its URL in a store.
      name: an id or file name, possibly with folders before it, relative to `root`.
      suffixes: endings that the name may lack. The name as it is comes first, then with each of
        them as given and in upper case, so that the choice is the same on every machine.
      follow_links: whether a symbolic link may lead out of the folder; stores have none.

    Returns:
      A path or URL below `root`, or a MissingFile. A name that leads out of it or into a cycle of
      links is refused, and so is a link that leads out of it, unless `follow_links` is set. Links
      that stay inside the folder are always followed.

    Raises:
      BuildError: there is no such folder; on one of several hosts it may not be mounted.
      InputError: no package for URLs of that kind is installed.
    """
    store = "://" in root
    climbs = os.path.isabs(name) or "\0" in name or ".." in name.split("/")
    if climbs or (store and "::" in name):  # which leads to another store
        return MissingFile(reason="outside_root", detail=f"{name!r} leads out of the folder")
    missing = MissingFile(reason="file_missing", detail="no file of that name")
    if not os.path.basename(name):
        return missing
    if store:
        urls = (storage.join(root, candidate) for candidate in _candidates(name, suffixes))
        return next(filter(storage.is_file, urls), missing)
    for candidate in _candidates(name, suffixes):
        found = _check(root, candidate, follow_links)
        if found is not None:
            return found
    if not os.path.isdir(root):
        raise BuildError(
            f"{root}: no such folder on {socket.gethostname()}; every host needs it, under the "
            "same path"
        )
    return missing


def _candidates(name: str, suffixes: Sequence[str]) -> Iterator[str]:
    yield name
    for suffix in suffixes:
        yield name + suffix
        yield name + suffix.upper()


def _check(root: str, name: str, follow_links: bool) -> str | MissingFile | None:
    """Returns the path of a file below the root, why it is refused, or None if there is none."""
    path = os.path.join(root, name)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            detail = f"the links of {name!r} go round in a circle"
            return MissingFile(reason="outside_root", detail=detail)
        return None
    folder, real = os.path.realpath(root), os.path.realpath(path)
    if not follow_links and not _is_below(folder, real):
        detail = f"the link {_link_out(folder, name)!r} leads out of the folder; "
        return MissingFile(reason="outside_root", detail=f"{detail}--follow-links allows that")
    return path if stat.S_ISREG(mode) else None


def _is_below(folder: str, real: str) -> bool:
    return os.path.commonpath([folder, real]) == folder


def _link_out(folder: str, name: str) -> str:
    """Returns the shortest beginning of a name that leads out of the folder by a link."""
    parts = name.split("/")
    begins = ("/".join(parts[: n + 1]) for n in range(len(parts)))
    outside = (
        begin
        for begin in begins
        if not _is_below(folder, os.path.realpath(os.path.join(folder, begin)))
    )
    return next(outside, name)
