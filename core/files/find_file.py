"""Find a file that an annotation names, inside the folder for its kind and nowhere else."""

import errno
import os
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from eqforge.core.errors import BuildError


@dataclass(frozen=True, kw_only=True, slots=True)
class MissingFile:
    """A missing or rejected file.

    Attributes:
        reason: `file_missing`, or `outside_root` for a name that leads out of the folder.
    """

    reason: str
    detail: str


MISSING = MissingFile(reason="file_missing", detail="no file of that name")


def find_file(
    root: str, name: str, suffixes: Sequence[str] = (), follow_links: bool = False
) -> str | MissingFile:
    """Return the path of a file below `root`, or why there is none.

    Names and links that lead out of the folder, and cycles of links, are rejected.

    Args:
        suffixes: tried after the bare name, as given and then in upper case, so that the choice is
            the same on every machine.
        follow_links: allow symbolic links that lead out of the folder.
    """
    if (rejected := reject_name(name)) is not None:
        return rejected
    return _first(root, list(candidates(name, suffixes)), follow_links, stat.S_ISREG)


def find_folder(
    root: str, name: str, suffixes: Sequence[str] = (), follow_links: bool = False
) -> str | MissingFile:
    """Return the path of a folder, or why there is none; see `find_file`.

    The name without a suffix is tried last.
    """
    if (rejected := reject_name(name)) is not None:
        return rejected
    return _first(root, list(folder_candidates(name, suffixes)), follow_links, stat.S_ISDIR)


def _first(
    root: str, names: Sequence[str], follow_links: bool, is_kind: Callable[[int], bool]
) -> str | MissingFile:
    for name in names:
        found = _check(root, name, follow_links, is_kind)
        if found is not None:
            return found
    if not os.path.isdir(root):
        raise BuildError(
            f"{root}: no such folder on {socket.gethostname()}; every host needs this folder "
            "at the same path"
        )
    for begin in (begin for name in names for begin in _beginnings(name)):
        path = os.path.join(root, begin)
        if os.path.islink(path) and not os.path.exists(path):
            return replace(MISSING, detail=f"the link {begin!r} is broken")
    return MISSING


def reject_name(name: str) -> MissingFile | None:
    """Return why a name cannot be that of a file below a folder; None if it can."""
    if os.path.isabs(name):
        detail = f"{name!r} is an absolute path; expected a path relative to the folder"
        return MissingFile(reason="outside_root", detail=detail)
    if "\0" in name or ".." in name.split("/"):
        return MissingFile(reason="outside_root", detail=f"{name!r} leads out of the folder")
    return None if os.path.basename(name) else MISSING


def candidates(name: str, suffixes: Sequence[str]) -> Iterator[str]:
    yield name
    for suffix in suffixes:
        yield name + suffix
        yield name + suffix.upper()


def folder_candidates(name: str, suffixes: Sequence[str]) -> Iterator[str]:
    yield from candidates(name, suffixes)
    stem, ending = os.path.splitext(name)
    if ending.lower() in suffixes:
        yield stem


def _check(
    root: str, name: str, follow_links: bool, is_kind: Callable[[int], bool]
) -> str | MissingFile | None:
    """Return the path of a file below the root, why it is rejected, or None if there is none."""
    path = os.path.join(root, name)
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            detail = f"the links of {name!r} form a loop"
            return MissingFile(reason="outside_root", detail=detail)
        return None
    folder, real = os.path.realpath(root), os.path.realpath(path)
    if not follow_links and not _is_below(folder, real):
        outside = (
            begin
            for begin in _beginnings(name)
            if not _is_below(folder, os.path.realpath(os.path.join(folder, begin)))
        )
        detail = f"the link {next(outside, name)!r} leads out of the folder; "
        return MissingFile(reason="outside_root", detail=f"{detail}--follow-links allows that")
    return path if is_kind(mode) else None


def _is_below(folder: str, real: str) -> bool:
    return os.path.commonpath([folder, real]) == folder


def _beginnings(name: str) -> Iterator[str]:
    """Yield `a`, `a/b` and `a/b/c` of `a/b/c`."""
    parts = name.split("/")
    return ("/".join(parts[: n + 1]) for n in range(len(parts)))
