"""Turns findings into errata that drop the records at fault."""

from collections.abc import Iterable, Iterator
from importlib.metadata import version

from eqforge.generators.text.lints.findings import KINDS, Finding
from eqforge.schemas.records.errata import Erratum


def errata_of(findings: Iterable[Finding]) -> Iterator[Erratum]:
    """Yields an erratum for each record that has findings, with all of their kinds as the reason.

    No day stands in it: the same findings give the same errata on any.
    """
    found: dict[str, set[str]] = {}
    for finding in findings:
        found.setdefault(finding.record_id, set()).add(finding.kind)
    who = f"eqforge lint {version('eqforge')}"
    for record_id, kinds in found.items():
        reason = "; ".join(f"{kind}: {KINDS[kind][1]}" for kind in sorted(kinds))
        yield Erratum(id=record_id, action="drop", reason=reason, who=who)
