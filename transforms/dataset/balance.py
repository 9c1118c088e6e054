"""The manifest of a dataset whose tables are written: its files, and its books, which balance."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from eqforge.core.errors import BuildError
from eqforge.schemas.dataset.manifest import Manifest, StageBooks, close_books
from eqforge.schemas.records.books import is_failure
from eqforge.transforms.dataset.errata import with_known_errata
from eqforge.transforms.dataset.table import UNCHANGED, WrittenShard

if TYPE_CHECKING:
    from eqforge.transforms.dataset.finish import DatasetTarget


def balanced_manifest(
    target: "DatasetTarget", shards: list[WrittenShard], entered: dict[str, tuple[int, int]]
) -> Manifest:
    """Returns the manifest of what was written.

    Args:
      target: where the dataset goes.
      shards: the files of all tables.
      entered: candidates and kept ones of each stage.

    Raises:
      BuildError: the books do not balance, or too many records failed with an exception.
    """
    reasons = _count_tags(shards, "rejects")
    stages = close_books([stage.name for stage in target.stages], entered, reasons)
    manifest = _with_tables(target, shards, stages, _count_tags(shards, "findings"))
    manifest = with_known_errata(manifest, target.place, target.left)
    _check_books(manifest, set(reasons) | set(entered), target)
    return manifest


def _with_tables(
    target: "DatasetTarget",
    shards: list[WrittenShard],
    stages: dict[str, StageBooks],
    findings: Mapping[str, Mapping[str, int]],
) -> Manifest:
    tables = {
        name: sorted(
            (shard.file for shard in shards if shard.table == name), key=lambda file: file.path
        )
        for name in (table.name for table in target.tables)
    }
    header = target.header
    return Manifest(
        dataset=header.dataset,
        mode=header.mode,
        config=header.config,
        inputs=header.inputs,
        versions=header.versions,
        stages=stages,
        tables=tables,
        warnings=header.warnings,
        errata=header.errata,
        parts=header.parts,
        findings={name: dict(counts) for name, counts in findings.items()},
        unchanged=_unchanged(target, shards),
    )


def _count_tags(shards: list[WrittenShard], table: str) -> dict[str, Counter[str]]:
    """Returns the number of rows of a table with each tag, by its two parts, sorted."""
    counted: dict[str, Counter[str]] = {}
    for shard in shards:
        for first, second, count in shard.counts if shard.table == table else ():
            counted.setdefault(first, Counter())[second] += count
    return {
        first: Counter(dict(sorted(counts.items()))) for first, counts in sorted(counted.items())
    }


def _unchanged(target: "DatasetTarget", shards: list[WrittenShard]) -> int | None:
    """Returns the number of samples whose words did not change; None where all did."""
    samples = [table for table in target.tables if table.name == "samples"]
    if not any("words_changed" in table.schema.names for table in samples):
        return None
    return _count_tags(shards, "samples").get(UNCHANGED, Counter()).total()


def _check_books(manifest: Manifest, seen: set[str], target: "DatasetTarget") -> None:
    """Checks that every candidate of every stage is accounted for.

    Raises:
      BuildError: one is not, or more than the allowed share of a stage failed with an exception.
    """
    if strange := sorted(seen - {stage.name for stage in target.stages}):
        raise BuildError(f"the books name stages nobody declared: {', '.join(strange)}")
    for stage in target.stages:
        books = manifest.stages[stage.name]
        if not books.is_balanced():
            raise BuildError(
                f"the books of the stage {stage.name!r} do not balance: "
                f"{books.candidates} candidates, {books.kept} kept, {books.rejected} rejected"
            )
        unknown = [reason for reason in books.reasons if not stage.may_give(reason)]
        if unknown:
            raise BuildError(
                f"the stage {stage.name!r} gave the undocumented reason {unknown[0]!r}"
            )
        failed = sum(n for reason, n in books.reasons.items() if is_failure(reason))
        if failed > target.max_error_rate * books.candidates:
            raise BuildError(
                f"{failed} of {books.candidates} candidates of the stage {stage.name!r} failed "
                "with an exception or could not be downloaded, more than --max-error-rate "
                f"{target.max_error_rate}; the rejects in {target.output}/data say which and why"
            )
    kept = manifest.stages[target.stages[-1].name].kept
    if kept != manifest.num_rows("samples"):
        raise BuildError(f"{kept} candidates were kept, but {manifest.num_rows('samples')} written")
