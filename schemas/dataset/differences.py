"""Differences between two datasets: compared records and manifests."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eqforge.schemas.dataset.manifest import Manifest


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedRecord:
    """A record whose values differ between the two datasets.

    Attributes:
      columns: values in A and B, by column.
    """

    key: str
    columns: dict[str, tuple[Any, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class TableDifference:
    """Differences in a table.

    Attributes:
      added: number of records found only in B.
      removed: number of records found only in A.
      changed, equal: number of records in both datasets with different (`changed`) or equal
        (`equal`) values.
      columns: number of changed records, by column.
      only_in_a, only_in_b: columns missing from the other table.
      types: columns whose types differ, with the types in A and B.
      added_examples, removed_examples: keys of some added or removed records.
      changed_examples: some changed records.
    """

    added: int
    removed: int
    changed: int
    equal: int
    columns: dict[str, int] = field(default_factory=dict)
    only_in_a: tuple[str, ...] = ()
    only_in_b: tuple[str, ...] = ()
    types: dict[str, tuple[str, str]] = field(default_factory=dict)
    added_examples: tuple[str, ...] = ()
    removed_examples: tuple[str, ...] = ()
    changed_examples: tuple[ChangedRecord, ...] = ()

    @property
    def is_none(self) -> bool:
        columns = (self.only_in_a, self.only_in_b, self.types)
        return not (self.added or self.removed or self.changed or any(columns))


def compare_manifests(a: "Manifest", b: "Manifest") -> dict[str, tuple[Any, Any]]:
    """Return the differences of two manifests, as (A's, B's) by place.

    Files, which depend on the order and the number of rows, are left out.
    """
    facts_a, facts_b = dict(_facts(a)), dict(_facts(b))
    names = dict.fromkeys((*facts_a, *facts_b))
    return {
        name: (facts_a.get(name), facts_b.get(name))
        for name in names
        if facts_a.get(name) != facts_b.get(name)
    }


def _facts(manifest: "Manifest") -> Iterator[tuple[str, Any]]:
    yield from (("dataset", manifest.dataset), ("mode", manifest.mode))
    yield from _flat("config", manifest.config)
    inputs: dict[str, list[str]] = {}
    for file in manifest.inputs:
        inputs.setdefault(file.name, []).append(file.sha256)
    yield from _flat("inputs", {name: " ".join(sorted(found)) for name, found in inputs.items()})
    yield from _flat("versions", manifest.versions)
    for stage, counts in manifest.stages.items():
        yield from _flat(f"stages.{stage}", asdict(counts))
    yield "warnings", sorted(manifest.warnings)


def _flat(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _flat(f"{place}.{name}", inner)
    else:
        yield place, value
