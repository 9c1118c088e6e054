"""Turns findings into errata that drop the records at fault."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.generators.text.lints.findings import KINDS, Finding
from eqforge.schemas.records.errata import Erratum
from eqforge.sources.labelled_captions import is_dataset, is_training


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


def of_samples(findings: Iterable[Finding], path: Path) -> Iterator[Finding]:
    """Yields the findings of a path under the ids of the samples that they are of.

    A pair of images is linted as two records, `SAMPLE/0` and `SAMPLE/1`, and a training caption as
    one, whose texts are a sample each. Findings of a file, or of a dataset whose rows have other
    ids, stay as they are.

    Raises:
      InputError: a finding is of no sample of the dataset.
    """
    samples = _samples(path) if is_dataset(path) else None
    for finding in findings:
        if samples is None:
            yield finding
            continue
        pair = finding.record_id.rpartition("/")[0]
        ids = samples.get(finding.record_id) or samples.get(pair)
        if not ids:
            raise InputError(
                f"{path}: {shown(finding.record_id)} has findings and is no sample; write its "
                "errata by hand"
            )
        yield from (replace(finding, record_id=sample_id) for sample_id in ids)


def _samples(path: Path) -> Mapping[str, list[str]] | None:
    """Returns the ids of a dataset's samples by what the lint calls them; None without ids."""
    from eqforge.schemas.dataset.reader import open_samples

    dataset = open_samples(str(path))
    if "sample_id" not in dataset.columns("samples"):
        return None
    record = "caption_id" if is_training(path) else "sample_id"
    found: dict[str, list[str]] = {}
    for row in dataset.rows("samples", list(dict.fromkeys((record, "sample_id")))):
        found.setdefault(row[record], []).append(row["sample_id"])
    return found
