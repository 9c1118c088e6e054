"""The command `eqforge lint`: lints files of text pairs and finished datasets."""

import collections
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import tyro

from eqforge.generators.text.lints.findings import KINDS, Finding, Severity
from eqforge.schemas.errors import InputError
from eqforge.schemas.shell import shell
from eqforge.schemas.visible import in_lines, json_text

if TYPE_CHECKING:
    from eqforge.schemas.sources.labelled_captions import LabelledCaptions


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class LintSettings:
    """What to lint, and how to say it."""

    paths: tyro.conf.Positional[tuple[Path, ...]]
    """Files of text pairs (VL-CheckList, ARO, SugarCrepe, Winoground, JSON lines) or datasets."""

    hard_positives: Path | None = None
    """The second file of a published hard-positive set, whose first is the one path given."""

    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print one JSON object per finding instead of a summary."""

    examples: int = 3
    """How many findings of a kind the summary shows."""

    fail_on: Severity = "warning"
    """The least severity that makes the exit status 1."""


def lint_command(settings: LintSettings) -> int:
    """Lints the paths and prints the findings; returns 1 if one is severe enough, else 0.

    Raises:
      EqforgeError: no path is named, a path cannot be read, or a package is missing.
    """
    from eqforge.generators.text.lints.lint import lint_records

    if not settings.paths:
        raise InputError("name what to lint: one file of text pairs or one dataset at least")
    levels = get_args(Severity)
    fatal = levels[: levels.index(settings.fail_on) + 1]
    failed = False
    for path in settings.paths:
        counter = _Counter(_records(path, settings))
        shown: dict[str, list[Finding]] = collections.defaultdict(list)
        counts: collections.Counter[str] = collections.Counter()
        for finding in lint_records(counter):
            failed |= finding.severity in fatal
            counts[finding.kind] += 1
            if settings.json:
                print(_as_json(path, finding))
            elif len(shown[finding.kind]) < settings.examples:
                shown[finding.kind].append(finding)
        if not settings.json:
            print(_summary(path, counter.records, counts, shown))
    return int(failed)


def lint_file(path: Path, settings: LintSettings) -> Iterator[Finding]:
    """Yields the findings of a file of text pairs or of a dataset.

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
    from eqforge.schemas.sources.labelled_captions import label_pair, read_labelled_captions
    from eqforge.schemas.sources.text_pairs import read_text_pairs, with_hard_positives

    if settings.hard_positives is None:
        return read_labelled_captions(path)
    reworded = read_text_pairs(settings.hard_positives)
    return map(label_pair, with_hard_positives(read_text_pairs(path), reworded))


def _as_json(path: Path, finding: Finding) -> str:
    row = {"file": str(path), "severity": finding.severity, **dataclasses.asdict(finding)}
    return json_text(row)


def _summary(
    path: Path, records: int, counts: dict[str, int], shown: dict[str, list[Finding]]
) -> str:
    total = sum(counts.values())
    lines = [f"{path}: {total:,} findings in {records:,} records"]
    for kind, (severity, meaning) in KINDS.items():
        if counts[kind]:
            lines.append(f"  {severity:<8} {kind} {counts[kind]:,}: {meaning}")
            lines += (f"           {f.record_id} {f.field}: {f.detail}" for f in shown[kind])
    return in_lines(lines)


main = shell("eqforge lint", LintSettings, lint_command, description=__doc__)
"""Runs the command line; returns 1 if there are findings of at least the severity to fail on."""

if __name__ == "__main__":
    sys.exit(main())
