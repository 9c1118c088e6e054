"""Replaces a finished dataset by a new one; the old one stays complete until then.

The new dataset is built completely in the folder `_next` inside the old one's folder. Then:

1. `dataset.json` is replaced by the new manifest, with paths below `_next`. This is the switch:
   before it the folder holds the old dataset, after it the new one.
2. The tables are moved into `data`, one by one; the manifest names no files there now.
3. `dataset.json` is replaced by the new manifest with its final paths, and `_next` is deleted.

At any time the manifest names files that exist, are complete, and come from one build. The only
requirement is atomic replacement of single files, which disks and object stores provide.
`complete_replacement` resumes where a killed run stopped.
"""

import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

from eqforge.core.errors import BuildError
from eqforge.core.files import disk, storage
from eqforge.schemas.dataset.manifest import (
    FILE_NAME,
    NEXT,
    DataFile,
    Manifest,
    load_manifest,
    moving,
    to_json,
    with_final_paths,
)
from eqforge.schemas.tables.datasets import TABLE_NAMES

# The old dataset may have had tables that this one lacks.
_SHARD = re.compile(rf"({'|'.join(sorted(TABLE_NAMES))})-\d{{5}}-of-\d{{5}}\.parquet")


def publish(output: str) -> None:
    manifest = load_manifest(storage.join(output, NEXT))
    check_files(manifest, storage.join(output, NEXT))
    storage.write_bytes(storage.join(output, FILE_NAME), to_json(moving(manifest)))
    complete_replacement(output)


def complete_replacement(output: str) -> None:
    """Resume an interrupted `publish`; do nothing if the folder's dataset is in place."""
    found = load_manifest(output)
    manifest = with_final_paths(found)
    if manifest == found:
        return
    from eqforge.schemas.dataset.documents import DOCUMENTS, SUMS, in_folder

    texts = {}
    for name in (*DOCUMENTS, SUMS):
        url = storage.join(output, NEXT, name)
        if storage.exists(url):  # an earlier version may have written fewer
            texts[name] = storage.read_bytes(url).decode()
    for name, text in texts.items():
        moved = in_folder(text, NEXT)
        storage.write_bytes(storage.join(output, name), moved.encode())
    for file in _files(manifest):
        copy_file(storage.join(output, NEXT, file.path), storage.join(output, file.path))
    remove_strays(output, _files(manifest))
    check_files(manifest, output)
    for name, text in texts.items():
        storage.write_bytes(storage.join(output, name), text.encode())
    storage.write_bytes(storage.join(output, FILE_NAME), to_json(manifest))
    storage.delete_folder(storage.join(output, NEXT))


def _files(manifest: Manifest) -> list[DataFile]:
    return [file for files in manifest.tables.values() for file in files]


def is_complete(manifest: Manifest, output: str) -> bool:
    return next(_missing(manifest, output), None) is None


def check_files(manifest: Manifest, output: str) -> None:
    """Check that every file is still where it was written: the folder may have been removed."""
    for path in _missing(manifest, output):
        raise BuildError(
            f"{storage.join(output, path)} no longer exists, because another program changed the "
            "output folder during the run; run the same build again"
        )


def _missing(manifest: Manifest, output: str) -> Iterator[str]:
    folders = {file.path.rpartition("/")[0] for file in _files(manifest)}
    sizes = {folder: storage.file_sizes(storage.join(output, folder)) for folder in folders}
    for file in _files(manifest):
        folder, _, name = file.path.rpartition("/")
        if sizes[folder].get(name) != file.num_bytes:
            yield file.path


def remove_strays(output: str, files: Iterable[DataFile]) -> None:
    """Delete what older runs left in the data folder: other shard counts, half-written files.

    Syncs the folder, as a power cut could otherwise restore the deleted files.
    """
    ours, data = {file.path.removeprefix("data/") for file in files}, storage.join(output, "data")
    for name in storage.list_files(data):
        if name not in ours and (storage.TEMPORARY.fullmatch(name) or _SHARD.fullmatch(name)):
            storage.delete(storage.join(data, name))
    if storage.is_local(data) and storage.exists(data):
        disk.sync(storage.locate(data)[1])


def copy_file(source: str, target: str) -> None:
    """Give a file a second name, replacing any file of that name atomically.

    On a disk it is a hard link if possible, which is safe as files never change in place. An object
    store makes a real copy.
    """
    system, path = storage.locate(target)
    if storage.is_local(target):
        _link(Path(storage.locate(source)[1]), Path(path))
    else:
        storage.make_parents(system, path)
        system.cp_file(storage.locate(source)[1], path)


def _link(source: Path, target: Path) -> None:
    if target.exists() and source.samefile(target):
        return  # renaming one hard link to another does nothing
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{storage.TEMPORARY_PREFIX}{uuid.uuid4().hex}")
    try:
        os.link(source, temporary)
        os.replace(temporary, target)
    except OSError:  # a disk without hard links, such as a memory card
        with open(source, "rb") as old, storage.open_atomic(str(target)) as new:
            shutil.copyfileobj(old, new)
    finally:
        temporary.unlink(missing_ok=True)
