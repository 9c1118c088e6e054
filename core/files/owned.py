"""Output folders: where they may lie, which files eqforge wrote, and what a rerun deletes.

A command deletes or replaces a file of an earlier run only if a note in the folder lists the file
with its current digest. Hidden files are never touched.
"""

import contextlib
import dataclasses
import fcntl
import os
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import disk, storage
from eqforge.core.files.checked import clipped
from eqforge.core.identity import sha256_hex
from eqforge.core.visible import counted

LISTING: Final = "eqforge-files.jsonl"
_MANIFESTS: Final = ("dataset.json", "scores.json", "answers.json")
_PARTS: Final = frozenset((*_MANIFESTS, "data", "_work", "_next", "README.md", "croissant.json"))
_NAMED: Final = 5

Listed = Collection[tuple[str, str]]
"""Paths below a folder, with SHA-256."""


def check_outputs(settings: Any, names: Collection[str] = ("output", "report", "sheet")) -> None:
    """Reject outputs that would change a part of a finished dataset or of scores.

    Outputs elsewhere in a dataset's folder are allowed. Links are resolved first; URLs of stores
    are not checked. Partial files left by killed writers are deleted.
    """
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            check_outputs(value, names)
        elif value and field.name in names and "://" not in str(value):
            place = Path(value).resolve()
            for part in (each for each in (place, *place.parents) if each.name in _PARTS):
                if any((part.parent / name).is_file() for name in _MANIFESTS):
                    raise InputError(
                        f"--{field.name} {value} is inside the dataset or the scores in "
                        f"{part.parent}; choose a different path"
                    )
            with contextlib.suppress(OSError):
                remove_half_written(str(place.parent), os.listdir(place.parent))


def remove_half_written(folder: str, paths: Collection[str] | None = None) -> None:
    if storage.is_local(folder):
        for path in files_below(folder, hidden=True) if paths is None else paths:
            if storage.TEMPORARY.fullmatch(os.path.basename(path)):
                with contextlib.suppress(OSError), open(storage.join(folder, path), "rb+") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while it is written
                    os.unlink(file.name)


def check_owned(folder: str, paths: Collection[str], listed: Listed, option: str) -> None:
    """Reject files of a folder that are links, or not listed with their current digest."""
    strays = [path for path in paths if (path, _digest(folder, path)) not in listed]
    if strays:
        names = ", ".join(map(clipped, strays[:_NAMED]))
        more = f" and {len(strays) - _NAMED:,} more" if len(strays) > _NAMED else ""
        raise InputError(
            f"{option} {folder} contains {counted(len(strays), 'unknown or changed files')}: "
            f"{names}{more}. Move every such file, or choose a different folder."
        )


def delete_files(folder: str, paths: Collection[str]) -> None:
    for url in (storage.join(folder, path) for path in paths):
        storage.delete(url)
        with contextlib.suppress(OSError):  # it holds other files, or is in a store
            os.removedirs(os.path.dirname(url))


def write_files(folder: str, files: Mapping[str, bytes]) -> None:
    """Write a few files into a folder that may hold others; replace only listed files."""
    listing = Listing(folder)
    listing.files |= {(name, sha256_hex(data)) for name, data in files.items()}
    existing = [name for name in files if storage.exists(storage.join(folder, name))]
    check_owned(folder, existing, listing.files, "--output")
    listing.save()  # first: a run that is killed before the last file can be repeated
    for name, data in files.items():
        storage.write_bytes(storage.join(folder, name), data)


class Listing:
    """The files that eqforge wrote in a folder; each is listed before it appears."""

    def __init__(self, folder: str) -> None:
        self.folder, self._url, self._lock = folder, storage.join(folder, LISTING), threading.Lock()
        self.files: set[tuple[str, str]] = set()
        missing = contextlib.suppress(FileNotFoundError, NotADirectoryError)
        with missing, storage.open_below(folder, LISTING) as stream:
            for line in stream:
                with contextlib.suppress(msgspec.DecodeError):  # a kill may cut the last line
                    self.files.add(msgspec.json.decode(line, type=tuple[str, str]))

    def write(self, path: str, data: bytes) -> None:
        """Write a file of a local folder; thread-safe."""
        file = path, sha256_hex(data)
        with self._lock, open(self._url, "ab") as stream:
            stream.write(_line(file))
            self.files.add(file)
        storage.write_bytes(storage.join(self.folder, path), data, synced=False)

    def save(self) -> None:
        storage.write_bytes(self._url, b"".join(map(_line, sorted(self.files))))


def _line(file: tuple[str, str]) -> bytes:
    return msgspec.json.encode(file) + b"\n"


def files_below(folder: str, hidden: bool = False) -> list[str]:
    system, root = storage.locate(folder)
    if storage.is_local(folder):
        found = []
        for at, folders, names in os.walk(root):
            links = [name for name in folders if os.path.islink(os.path.join(at, name))]
            found += [os.path.join(at, name) for name in (*names, *links)]
    else:
        system.invalidate_cache()
        found = system.find(root)
    paths = sorted(path[len(root) :].strip("/") for path in found)
    return [path for path in paths if hidden or not f"/{path}".count("/.")]


def _digest(folder: str, path: str) -> str | None:
    with contextlib.suppress(OSError, InputError), storage.open_below(folder, path) as stream:
        return disk.digest_stream(stream)[1]
    return None
