"""The command `eqforge lint`: lints files of text pairs and finished datasets."""

import dataclasses
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import tyro

from eqforge.core.console import DocumentOptions, give
from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.shell import shell
from eqforge.core.ticker import ticked
from eqforge.core.visible import counted, in_lines, nearest, visible
from eqforge.generators.text.lints.findings import ERRORS, KINDS, Finding, Severity
from eqforge.schemas.records.errata import Erratum
from eqforge.sources.labelled_captions import is_dataset, is_training

if TYPE_CHECKING:
    from eqforge.sources.labelled_captions import LabelledCaptions


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LintSettings:
    """Find defects of text pairs, in published files, your own, or a dataset."""

    paths: tyro.conf.Positional[tuple[Path, ...]]
    """Files of text pairs (VL-CheckList, ARO, SugarCrepe, VALSE, Winoground, EqBen, JSON lines),
    SIMAT's captions.txt or transfos.csv, folders of Hugging Face's with such fields, datasets."""

    hard_positives: Path | None = None
    """The second file of a published hard-positive set, whose first is the one path given."""

    examples: int = 3
    """How many findings of a kind the summary shows."""

    fail_on: Severity = "warning"
    """The least severity that makes the exit status 1."""

    errata: Path | None = None
    """File to write that drops the records with findings of --errata-kinds, for --errata of
    `eqforge build`, `import`, `combine` and `metrics`."""

    errata_kinds: tuple[str, ...] = ERRORS
    """Which findings the file of --errata drops; by default those that are errors."""

    def __post_init__(self) -> None:
        """Check the kinds.

        Raises:
          InputError: there is no such kind of finding.
        """
        for kind in self.errata_kinds:
            if kind not in KINDS:
                raise InputError(
                    f"--errata-kinds {kind}: no such kind of finding{nearest(kind, KINDS)}; there "
                    f"are {', '.join(KINDS)}"
                )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LintReport:
    """What is wrong with a file or a dataset.

    Attributes:
      path: of the file, or the folder of the dataset.
    """

    path: str
    records: int
    findings: tuple[Finding, ...]


def lint_command(settings: LintSettings) -> int:
    """Lint the paths and prints the findings; returns 1 if one is severe enough, else 0.

    Raises:
      EqforgeError: no path is named, a path cannot be read, or a package is missing.
    """
    from eqforge.generators.text.lints.lint import lint_records

    if not settings.paths:
        raise InputError("name what to lint: one file of text pairs or one dataset at least")
    levels = get_args(Severity)
    fatal = levels[: levels.index(settings.fail_on) + 1]
    reports: list[LintReport] = []
    for path in settings.paths:
        counter = _Counter(ticked(_records(path, settings), None, "records", str(path)))
        found = tuple(lint_records(counter))
        reports.append(LintReport(path=str(path), records=counter.records, findings=found))
        print(_summary(reports[-1], settings.examples))
    if settings.errata is not None:
        _write_errata(str(settings.errata), reports, settings.errata_kinds)
    give(reports)
    return int(any(f.severity in fatal for report in reports for f in report.findings))


def _write_errata(url: str, reports: Iterable[LintReport], kinds: Collection[str]) -> None:
    """Write the errata that drop the records with findings of some kinds, and says how many."""
    from eqforge.generators.text.lints.command import errata_of, of_samples
    from eqforge.sources.errata import write_lines

    found = (
        finding
        for report in reports
        for finding in of_samples(
            (f for f in report.findings if f.kind in kinds), Path(report.path)
        )
    )
    number = write_lines(url, errata_of(found))
    print(visible(f"{url}: {counted(number, 'records')} to drop"))


def lint_file(path: Path, settings: LintSettings) -> Iterator[Finding]:
    """Yield the findings of a file of text pairs or of a dataset.

    Raises:
      EqforgeError: it cannot be read, or a package is missing.
    """
    from eqforge.generators.text.lints.lint import lint_records

    return lint_records(_records(path, settings))


class _Counter:
    """Counts the records that pass through it."""

    def __init__(self, records: "Iterator[LabelledCaptions]") -> None:
        self._source = records
        self.records = 0

    def __iter__(self) -> "Iterator[LabelledCaptions]":
        for record in self._source:
            self.records += 1
            yield record


def _records(path: Path, settings: LintSettings) -> "Iterator[LabelledCaptions]":
    from eqforge.sources.labelled_captions import label_pair, read_labelled_captions
    from eqforge.sources.text_pairs import read_text_pairs, with_hard_positives

    if settings.hard_positives is None:
        return read_labelled_captions(path)
    reworded = read_text_pairs(settings.hard_positives)
    return map(label_pair, with_hard_positives(read_text_pairs(path), reworded))


def _summary(report: LintReport, examples: int) -> str:
    """Return the findings in words, with some examples of each kind."""
    lines = []
    for kind, (severity, meaning) in KINDS.items():
        found = [finding for finding in report.findings if finding.kind == kind]
        if found:
            lines.append(f"  {severity:<8} {kind} {len(found):,}: {meaning}")
            shown = found[:examples]
            lines += (f"           {_place(f)}: {f.detail}" for f in shown)
    total = f"{report.path}: {counted(len(report.findings), 'findings')} in "
    total += counted(report.records, "records")
    return in_lines([*lines, total])


def _place(finding: Finding) -> str:
    """Return the record and the caption of a finding, and the record that has it already."""
    place = f"{finding.record_id} {finding.field}"
    return f"{place}, as record {finding.twin}" if finding.twin else place


main = shell("eqforge lint", LintSettings, lint_command, console=DocumentOptions)
"""Runs the command line; returns 1 if there are findings of at least the severity to fail on."""

if __name__ == "__main__":
    sys.exit(main())


def errata_of(findings: Iterable[Finding]) -> Iterator[Erratum]:
    """Yield an erratum for each record that has findings, with all of their kinds as the reason.

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
    """Yield the findings of a path under the ids of the samples that they are of.

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
    """Return the ids of a dataset's samples by what the lint calls them; None without ids."""
    from eqforge.schemas.dataset.reader import open_samples

    dataset = open_samples(str(path))
    if "sample_id" not in dataset.columns("samples"):
        return None
    record = "caption_id" if is_training(path) else "sample_id"
    found: dict[str, list[str]] = {}
    for row in dataset.rows("samples", list(dict.fromkeys((record, "sample_id")))):
        found.setdefault(row[record], []).append(row["sample_id"])
    return found
