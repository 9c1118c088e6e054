"""The command `eqforge lint`: lints files of text pairs and finished datasets."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import get_args

import tyro

from eqforge.core.console import DocumentOptions, print_document, ticked
from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.owned import check_outputs
from eqforge.core.shell import Command
from eqforge.core.visible import counted, in_lines, nearest, visible
from eqforge.generators.text.lints.lint import ERRORS, KINDS, Finding, Severity, lint_records
from eqforge.schemas.records.judgements import Erratum
from eqforge.sources.labelled_captions import (
    LabelledCaptions,
    is_dataset,
    is_training,
    label_pair,
    read_labelled_captions,
)
from eqforge.sources.text_pairs import read_text_pairs, with_hard_positives


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LintSettings:
    """Find defects in text pairs from published files, your own files, or a dataset."""

    paths: tyro.conf.Positional[tuple[Path, ...]]
    """Files or Hugging Face folders of text pairs, or eqforge datasets. Supported formats of text
    pairs are VL-CheckList, ARO, SugarCrepe, VALSE, Winoground, EqBen, SIMAT and JSON Lines."""

    hard_positives: Path | None = None
    """Second file of a published hard-positive set. Pass the first file as PATHS."""

    examples: int = 3
    """Number of findings to show per kind in the summary."""

    fail_on: Severity = "warning"
    """Exit with status 1 if any finding has at least this severity. Notes are the least severe."""

    errata: Path | None = None
    """Write an errata file that drops all records with errors. `eqforge import --errata` accepts
    the file only if you run `eqforge lint` on the imported dataset, not on its source."""

    errata_kinds: tuple[str, ...] = ERRORS
    """Kinds of findings that make --errata drop a record."""

    def __post_init__(self) -> None:
        for kind in self.errata_kinds:
            if kind not in KINDS:
                raise InputError(
                    f"--errata-kinds {kind}: unknown kind of finding"
                    f"{nearest(kind, KINDS) or '.'} The kinds are {', '.join(KINDS)}."
                )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LintReport:
    """The findings for a file or dataset folder."""

    path: str
    records: int
    findings: tuple[Finding, ...]


def lint_command(settings: LintSettings) -> int:
    from eqforge.sources.errata import write_lines

    check_outputs(settings, ("errata",))
    levels = get_args(Severity)
    fatal = levels[: levels.index(settings.fail_on) + 1]
    reports: list[LintReport] = []
    for path in settings.paths:
        read, number = ticked(_records(path, settings), None, "records", str(path)), count()
        # `number` counts the records as they pass.
        found = tuple(lint_records(record for record, _ in zip(read, number, strict=False)))
        reports.append(LintReport(path=str(path), records=next(number), findings=found))
        print(_summary(reports[-1], settings.examples))
    if settings.errata is not None:
        wrong = (
            finding
            for report in reports
            for finding in of_samples(
                (f for f in report.findings if f.kind in settings.errata_kinds), Path(report.path)
            )
        )
        dropped = write_lines(str(settings.errata), errata_of(wrong))
        print(visible(f"{settings.errata} drops {counted(dropped, 'records')}"))
        if dropped and not all(is_dataset(path) for path in settings.paths):
            print(
                "These errata use the record ids of the linted files. To get errata for "
                "`eqforge import --errata`, lint the imported dataset."
            )
    print_document(reports)
    return int(any(f.severity in fatal for report in reports for f in report.findings))


def lint_file(path: Path, settings: LintSettings) -> Iterator[Finding]:
    return lint_records(_records(path, settings))


def _records(path: Path, settings: LintSettings) -> Iterator[LabelledCaptions]:
    if settings.hard_positives is None:
        return read_labelled_captions(path)
    reworded = read_text_pairs(settings.hard_positives)
    return map(label_pair, with_hard_positives(read_text_pairs(path), reworded))


def _summary(report: LintReport, examples: int) -> str:
    lines = []
    for kind, (severity, meaning) in KINDS.items():
        found = [finding for finding in report.findings if finding.kind == kind]
        # A caption of several images has its findings once for each of them.
        repeats = Counter((finding.field, finding.detail) for finding in found)
        shown = {(finding.field, finding.detail): finding for finding in reversed(found)}
        if found:
            distinct = "" if len(repeats) == len(found) else f" ({len(repeats):,} distinct)"
            lines.append(f"  {severity:<8} {kind} {len(found):,}{distinct}: {meaning}")
        for key in list(repeats)[:examples]:
            more = f" and {counted(repeats[key] - 1, 'more records')}" if repeats[key] > 1 else ""
            twin = f", as record {shown[key].twin}" if shown[key].twin else ""
            lines.append(f"           {shown[key].record_id}{more} {key[0]}{twin}: {key[1]}")
    levels = Counter(finding.severity for finding in report.findings)
    numbers = [counted(levels[level], f"{level}s") for level in get_args(Severity)]
    total = f"{report.path}: {', '.join(numbers)} in {counted(report.records, 'records')}"
    return in_lines([*lines, total])


def errata_of(findings: Iterable[Finding]) -> Iterator[Erratum]:
    """Yield an erratum per record with findings; without a date, so that it is reproducible."""
    found: dict[str, dict[str, str]] = {}
    for finding in findings:
        found.setdefault(finding.record_id, {}).setdefault(finding.kind, finding.detail)
    who = f"eqforge lint {version('eqforge')}"
    for record_id, details in found.items():
        reason = "; ".join(f"{kind}: {details[kind]}" for kind in sorted(details))
        yield Erratum(id=record_id, action="drop", reason=reason, who=who)


def of_samples(findings: Iterable[Finding], path: Path) -> Iterator[Finding]:
    """Yield the findings of a path under the ids of their samples.

    A pair of images is linted as two records, `SAMPLE/0` and `SAMPLE/1`. A training caption is one
    record, and each of its texts a sample. Findings of a file, or of a dataset whose rows have
    other ids, stay as they are.
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
                f"{path}: eqforge cannot write an erratum for {shown(finding.record_id)}, because "
                "it is not a sample; write the erratum by hand"
            )
        yield from (replace(finding, record_id=sample_id) for sample_id in ids)


def _samples(path: Path) -> Mapping[str, list[str]] | None:
    from eqforge.schemas.dataset.reader import open_samples

    dataset = open_samples(str(path))
    if "sample_id" not in dataset.columns("samples"):
        return None
    record = "caption_id" if is_training(path) else "sample_id"
    found: dict[str, list[str]] = {}
    for row in dataset.rows("samples", list(dict.fromkeys((record, "sample_id")))):
        found.setdefault(row[record], []).append(row["sample_id"])
    return found


main = Command(
    "eqforge lint",
    LintSettings,
    lint_command,
    example="eqforge lint out/sugar-crepe --errata out/errata.jsonl",
    basics=("hard-positives", "fail-on", "errata"),
    console=DocumentOptions,
)
