"""Writes a dataset: its tables, then the manifest that marks it as complete."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from eqforge.core.errors import BuildError
from eqforge.core.files import storage
from eqforge.schemas.dataset.manifest import (
    FILE_NAME,
    NEXT,
    WORK,
    Certificate,
    Manifest,
    count_stages,
    load_manifest,
    to_json,
)
from eqforge.schemas.records.stages import Stage, is_failure
from eqforge.transforms.dataset.census import keep_census
from eqforge.transforms.dataset.errata import with_known_errata
from eqforge.transforms.dataset.replace import check_files, is_complete, publish, remove_strays
from eqforge.transforms.dataset.tables import UNCHANGED, Table, WrittenShard

if TYPE_CHECKING:
    from eqforge.schemas.dataset.reader import Dataset


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetTarget:
    """A dataset's destination, and the facts that are known before its rows exist.

    Attributes:
      header: the manifest without counts and files.
      stages: in order; the last one's kept candidates are the samples.
      max_error_rate: the share of a stage's candidates in [0, 1] that may fail with an exception.
      replaces: whether a finished dataset exists, to be kept until this one is complete.
      commands: command lines that reproduce the dataset; empty if unknown.
      left: ids of the samples that reviewers judged and did not drop.
      certify: measures the manifest's certificate on the written tables.
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
        return storage.join(self.output, NEXT) if self.replaces else self.output


def finish_dataset(
    target: DatasetTarget, shards: list[WrittenShard], entered: dict[str, tuple[int, int]]
) -> str:
    """Check the counts, remove files of older runs, write card and manifest; return its URL.

    Replacing an existing dataset is the last step. The function is idempotent, so that an engine
    may repeat it.
    """
    manifest = balanced_manifest(target, shards, entered)
    url = storage.join(target.output, FILE_NAME)
    if target.replaces and _is_in_place(manifest, target.output):
        return url
    remove_strays(target.place, (shard.file for shard in shards))
    check_files(manifest, target.place)
    if target.certify is not None:
        from eqforge.schemas.dataset.reader import Dataset

        written = Dataset(folder=target.place, manifest=manifest)
        manifest = replace(manifest, certificate=target.certify(written))
    _describe(target, manifest)
    check_files(manifest, target.place)  # the folder may have been moved away meanwhile
    keep_census(target.output, manifest)
    storage.write_bytes(storage.join(target.place, FILE_NAME), to_json(manifest))
    if target.replaces:
        publish(target.output)
    delete_parts(target.output)
    return url


def _is_in_place(manifest: Manifest, output: str) -> bool:
    """Return True if a dataset has already replaced the old one, and is not waiting in `_next`."""
    if is_complete(manifest, storage.join(output, NEXT)):
        return False
    is_there = storage.exists(storage.join(output, FILE_NAME))
    if not is_there or not is_complete(manifest, output):
        return False
    return replace(load_manifest(output), certificate=manifest.certificate) == manifest


def _describe(target: DatasetTarget, manifest: Manifest) -> None:
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
    storage.delete_folder(parts_of(output))


def parts_of(output: str) -> str:
    return storage.join(output, WORK, "parts")


def balanced_manifest(
    target: DatasetTarget, shards: list[WrittenShard], entered: dict[str, tuple[int, int]]
) -> Manifest:
    """Return the manifest of the written shards.

    Args:
      entered: (candidates, kept) of each stage.
    """
    reasons = _count_tags(shards, "rejects")
    tables = {
        table.name: sorted(
            (shard.file for shard in shards if shard.table == table.name),
            key=lambda file: file.path,
        )
        for table in target.tables
    }
    samples = [table for table in target.tables if table.name == "samples"]
    unchanged = None  # where the words of all samples change by construction
    if any("words_changed" in table.schema.names for table in samples):
        unchanged = _count_tags(shards, "samples").get(UNCHANGED, Counter()).total()
    manifest = replace(
        target.header,
        stages=count_stages([stage.name for stage in target.stages], entered, reasons),
        tables=tables,
        findings={name: dict(n) for name, n in _count_tags(shards, "findings").items()},
        unchanged=unchanged,
    )
    manifest = with_known_errata(manifest, target.place, target.left)
    _check_counts(manifest, set(reasons) | set(entered), target)
    return manifest


def _count_tags(shards: list[WrittenShard], table: str) -> dict[str, Counter[str]]:
    counted: dict[str, Counter[str]] = {}
    for shard in shards:
        for first, second, count in shard.counts if shard.table == table else ():
            counted.setdefault(first, Counter())[second] += count
    return {
        first: Counter(dict(sorted(counts.items()))) for first, counts in sorted(counted.items())
    }


def _check_counts(manifest: Manifest, seen: set[str], target: DatasetTarget) -> None:
    if strange := sorted(seen - {stage.name for stage in target.stages}):
        raise BuildError(f"the counts contain unknown stages: {', '.join(strange)}")
    for stage in target.stages:
        counts = manifest.stages[stage.name]
        if not counts.is_balanced():
            raise BuildError(
                f"the counts of the stage {stage.name!r} do not add up: "
                f"{counts.candidates} candidates, {counts.kept} kept, {counts.rejected} rejected"
            )
        unknown = [reason for reason in counts.reasons if not stage.may_reject_for(reason)]
        if unknown:
            raise BuildError(
                f"the stage {stage.name!r} used the undocumented reason {unknown[0]!r}"
            )
        failed = sum(n for reason, n in counts.reasons.items() if is_failure(reason))
        if failed > target.max_error_rate * counts.candidates:
            raise BuildError(
                f"the stage {stage.name!r} failed for {failed} of {counts.candidates} candidates, "
                f"more than --max-error-rate {target.max_error_rate} allows; for the reasons, see "
                f"the rejects in {target.output}/data"
            )
    kept = manifest.stages[target.stages[-1].name].kept
    if kept != manifest.num_rows("samples"):
        raise BuildError(
            f"{kept} candidates were kept, but {manifest.num_rows('samples')} samples were written"
        )
