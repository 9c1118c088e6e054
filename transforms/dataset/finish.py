"""Writes a dataset: its tables, then the manifest that marks it as complete."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from eqforge.core.files import storage
from eqforge.schemas.dataset.manifest import (
    FILE_NAME,
    NEXT,
    WORK,
    Certificate,
    Manifest,
    load_manifest,
    to_json,
)
from eqforge.schemas.records.books import Stage
from eqforge.transforms.dataset.balance import balanced_manifest
from eqforge.transforms.dataset.census import keep_census
from eqforge.transforms.dataset.replace import (
    check_files,
    is_complete,
    publish,
    remove_strays,
)
from eqforge.transforms.dataset.table import Table, WrittenShard

if TYPE_CHECKING:
    from eqforge.schemas.dataset.reader import Dataset


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetTarget:
    """Where a dataset goes, and what is known about it before its rows are.

    Attributes:
      output: the dataset's folder or URL.
      header: the manifest without books and files.
      stages: the stages in order; the last one's kept candidates are the samples.
      tables: the tables, among them `samples` and `rejects`.
      max_error_rate: the share of a stage's candidates in [0, 1] that may fail with an exception.
      replaces: whether a finished dataset is there, to be kept until this one is complete.
      commands: the command lines that make the dataset again; empty if they are not known.
      left: ids of the samples that people decided on and did not drop.
      certify: measures what the manifest certifies on the written tables; None for nothing.
    """

    output: str
    header: Manifest
    stages: tuple[Stage, ...]
    tables: tuple[Table, ...]
    max_error_rate: float
    replaces: bool = False
    commands: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    certify: "Callable[[Dataset], Certificate] | None" = None

    @property
    def place(self) -> str:
        """The folder in which the dataset is written."""
        return storage.join(self.output, NEXT) if self.replaces else self.output


def finish_dataset(
    target: DatasetTarget, shards: list[WrittenShard], entered: dict[str, tuple[int, int]]
) -> str:
    """Checks the books, removes files of older runs, and writes the card and the manifest.

    If there is a finished dataset, this one replaces it as the last step. The function is
    idempotent: an engine may repeat it.

    Returns:
      The URL of the manifest.

    Raises:
      BuildError: the books do not balance, too many records failed with an exception, or a file
        is missing.
    """
    manifest = balanced_manifest(target, shards, entered)
    url = storage.join(target.output, FILE_NAME)
    if target.replaces and _is_in_place(manifest, target.output):
        return url
    remove_strays(target.place, (shard.file for shard in shards))
    check_files(manifest, target.place)
    manifest = _certified(target, manifest)
    _describe(target, manifest)
    check_files(manifest, target.place)  # the folder may have been moved away meanwhile
    keep_census(target.output, manifest)
    storage.write_bytes(storage.join(target.place, FILE_NAME), to_json(manifest))
    if target.replaces:
        publish(target.output)
    delete_parts(target.output)
    return url


def _is_in_place(manifest: Manifest, output: str) -> bool:
    """Tells whether a dataset has already replaced another, and is not waiting beside it."""
    if is_complete(manifest, storage.join(output, NEXT)):
        return False
    is_there = storage.exists(storage.join(output, FILE_NAME))
    if not is_there or not is_complete(manifest, output):
        return False
    return replace(load_manifest(output), certificate=manifest.certificate) == manifest


def _certified(target: DatasetTarget, manifest: Manifest) -> Manifest:
    """Returns the manifest with what is certified of the written tables."""
    from eqforge.schemas.dataset.reader import Dataset

    if target.certify is None:
        return manifest
    written = Dataset(folder=target.place, manifest=manifest)
    return replace(manifest, certificate=target.certify(written))


def _describe(target: DatasetTarget, manifest: Manifest) -> None:
    """Writes the documents of a dataset whose tables are written."""
    from eqforge.schemas.dataset.documents import write_documents
    from eqforge.schemas.dataset.profile import Profile, read_facts
    from eqforge.schemas.dataset.reader import Dataset

    manifest = msgspec.json.decode(to_json(manifest), type=Manifest)  # as others will read it
    facts = read_facts(Dataset(folder=target.place, manifest=manifest))
    profile = Profile(
        manifest=manifest, facts=facts, stages=target.stages, commands=target.commands
    )
    write_documents(profile, target.place)


def delete_parts(output: str) -> None:
    """Deletes the part files of sorted runs, which no other run can use."""
    storage.delete_folder(parts_of(output))


def parts_of(output: str) -> str:
    """Returns the folder of part files."""
    return storage.join(output, WORK, "parts")
