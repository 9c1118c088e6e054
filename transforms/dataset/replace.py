"""Puts a dataset in the place of a finished one, which stays complete until the new one is.

The new dataset is built whole in the folder `_next` beside the old one's tables. Then, in order:

1. `dataset.json` is replaced by the new manifest with paths below `_next`. This is the moment:
   before it the folder holds the old dataset, after it the new one.
2. The tables get their places in `data`, one by one; the manifest names none of these now.
3. `dataset.json` is replaced by the new manifest with its own paths, and `_next` is deleted.

At every moment the manifest names files that are there, whole, and of one build. No step needs more
than that one file is replaced whole, which disks and object stores do. `settle` goes on where a
killed run stopped.
"""

import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from eqforge.schemas.dataset.card import in_folder
from eqforge.schemas.dataset.manifest import (
    FILE_NAME,
    NEXT,
    DataFile,
    Manifest,
    load_manifest,
    moving,
    settled,
    to_json,
)
from eqforge.schemas.errors import BuildError
from eqforge.schemas.io import storage
from eqforge.schemas.tables.datasets import TABLE_NAMES

CARD = "README.md"
# What was replaced may have had tables that this dataset has not.
_SHARD = re.compile(rf"({'|'.join(sorted(TABLE_NAMES))})-\d{{5}}-of-\d{{5}}\.parquet")


def publish(output: str) -> None:
    """Puts the complete dataset below `_next` in the place of the one in a folder.

    Raises:
      BuildError: a file of it is not there.
    """
    manifest = load_manifest(storage.join(output, NEXT))
    check_files(manifest, storage.join(output, NEXT))
    storage.write_bytes(storage.join(output, FILE_NAME), to_json(moving(manifest)))
    settle(output)


def settle(output: str) -> None:
    """Ends what `publish` began; does nothing where a folder's dataset is in its place.

    Raises:
      BuildError: a file of the dataset is not there.
    """
    found = load_manifest(output)
    manifest, card = settled(found), storage.join(output, CARD)
    if manifest == found:
        return
    text = storage.read_bytes(storage.join(output, NEXT, CARD)).decode()
    storage.write_bytes(card, in_folder(text, NEXT).encode())
    for file in _files(manifest):
        copy_file(storage.join(output, NEXT, file.path), storage.join(output, file.path))
    remove_strays(output, _files(manifest))
    check_files(manifest, output)
    storage.write_bytes(card, text.encode())
    storage.write_bytes(storage.join(output, FILE_NAME), to_json(manifest))
    storage.delete_folder(storage.join(output, NEXT))


def _files(manifest: Manifest) -> list[DataFile]:
    return [file for files in manifest.tables.values() for file in files]


def is_complete(manifest: Manifest, output: str) -> bool:
    """Tells whether every file of a dataset is there in its full length."""
    return next(_missing(manifest, output), None) is None


def check_files(manifest: Manifest, output: str) -> None:
    """Checks that every file is still where it was written: the folder may have been taken away.

    Raises:
      BuildError: one is not there, or not in its full length.
    """
    for path in _missing(manifest, output):
        raise BuildError(
            f"{storage.join(output, path)} was written and is there no more: the output "
            "folder was changed during the run; run the same build again"
        )


def _missing(manifest: Manifest, output: str) -> Iterator[str]:
    """Yields the files that are not there, or not in their full length."""
    folders = {file.path.rpartition("/")[0] for file in _files(manifest)}
    there = {folder: storage.file_sizes(storage.join(output, folder)) for folder in folders}
    for file in _files(manifest):
        folder, _, name = file.path.rpartition("/")
        if there[folder].get(name) != file.num_bytes:
            yield file.path


def remove_strays(output: str, files: Iterable[DataFile]) -> None:
    """Deletes what older runs left in the data folder: other shard counts, half-written files.

    Returns when a power cut changes no name in it any more: what was deleted could come back.
    """
    ours, data = {file.path.removeprefix("data/") for file in files}, storage.join(output, "data")
    for name in storage.list_files(data):
        is_half = name.startswith(storage.TEMPORARY_PREFIX)
        if name not in ours and (is_half or _SHARD.fullmatch(name)):
            storage.delete(storage.join(data, name))
    if storage.is_local(data) and storage.exists(data):
        storage.sync(storage.locate(data)[1])


def copy_file(source: str, target: str) -> None:
    """Gives a file a second name, which may have been another file's; no reader sees a part.

    On a disk both names are of one file, where the disk can do so; what is written never changes
    under its name. A store copies it within itself.
    """
    system, path = storage.locate(target)
    if storage.is_local(target):
        _link(Path(storage.locate(source)[1]), Path(path))
    else:
        storage.make_parents(system, path)
        system.cp_file(storage.locate(source)[1], path)


def _link(source: Path, target: Path) -> None:
    if target.exists() and source.samefile(target):
        return  # to rename a name of a file to another of its names does nothing
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{storage.TEMPORARY_PREFIX}{uuid.uuid4().hex}")
    try:
        os.link(source, temporary)
        os.replace(temporary, target)
    except OSError:  # a disk without such names, as of a memory card
        with open(source, "rb") as old, storage.open_atomic(str(target)) as new:
            shutil.copyfileobj(old, new)
    finally:
        temporary.unlink(missing_ok=True)
