"""Output folders: where they may lie, which files eqforge wrote, and what a rerun deletes."""

import contextlib
import dataclasses
import fcntl
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.core.files import disk, storage
from eqforge.core.files.checked import clipped
from eqforge.core.visible import counted

_OUTPUTS: Final = ("output", "report", "sheet")
_MANIFESTS: Final = ("dataset.json", "scores.json", "answers.json")
_PARTS: Final = frozenset((*_MANIFESTS, "data", "_work", "_next", "README.md", "croissant.json"))


def check_outputs(settings: Any, names: Collection[str] = _OUTPUTS) -> None:
    """Reject outputs on this machine that lie in a part of a finished dataset or of scores."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            check_outputs(value, names)
        elif value and field.name in names and "://" not in str(value):
            place = Path(value).resolve()  # without links
            for part in (each for each in (place, *place.parents) if each.name in _PARTS):
                if any((part.parent / name).is_file() for name in _MANIFESTS):
                    raise InputError(
                        f"--{field.name} {value}: lies in a part of the dataset or the scores in "
                        f"{part.parent}; name another place"
                    )


def remove_half_written(folder: str) -> None:
    """Delete the files that killed writers left in a folder and below it; follow no links."""
    for path in files_below(folder, hidden=True) if storage.is_local(folder) else ():
        if storage.TEMPORARY.fullmatch(os.path.basename(path)):
            with contextlib.suppress(OSError), open(storage.join(folder, path), "rb+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while it is written
                os.unlink(file.name)


def check_owned(folder: str, paths: Collection[str], listed: Collection[tuple[str, str]]) -> None:
    """Reject files of a folder that are links, or not listed with the digest that they have."""
    others = [path for path in paths if (path, _digest(folder, path)) not in listed]
    if others:
        names = ", ".join(map(clipped, others[:5]))
        raise InputError(
            f"--output {folder}: holds {counted(len(others), 'files')} that eqforge did not write, "
            f"or that changed since: {names}; move them away, or name another folder"
        )


def delete_files(folder: str, paths: Collection[str]) -> None:
    """Delete files of a folder that keeps a note, and the folders that are empty then."""
    for url in (storage.join(folder, path) for path in paths):
        storage.delete(url)
        with contextlib.suppress(OSError):  # it holds other files, or is in a store
            os.removedirs(os.path.dirname(url))


def files_below(folder: str, hidden: bool = False) -> list[str]:
    """Return the sorted paths of files below a folder, and of links, which are not followed."""
    system, root = storage.locate(folder)
    if storage.is_local(folder):
        found = []
        for at, folders, names in os.walk(root):
            links = [name for name in folders if os.path.islink(os.path.join(at, name))]
            found += [os.path.join(at, name) for name in (*names, *links)]
    else:
        found = system.find(root)
    paths = sorted(path[len(root) :].strip("/") for path in found)
    return [path for path in paths if hidden or not f"/{path}".count("/.")]


def _digest(folder: str, path: str) -> str | None:
    with contextlib.suppress(OSError, InputError), storage.open_below(folder, path) as stream:
        return disk.digest_stream(stream)[1]
    return None
