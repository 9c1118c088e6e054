"""Prints how often the findings of each rule of lint are true, by the labels beside this file.

    python -m tests.generators.lints.precision DATA

labels.jsonl has one label a line: the set and the record, the rule and the field, a digest of the
detail, whether who read the captions found the finding true, and why. Rules were changed
after looking at those of the sample "tuning" alone; precision is that of the sample "judging".
DATA is the folder that EQFORGE_TEST_DATA names for the tests. With --counts it prints counts.json
instead: how many findings each rule has in each set.
"""

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eqforge.evaluation.statistics.shares import exact_interval
from eqforge.generators.text.lints.lint import KINDS, Finding
from tests.generators.lints.published_sets import findings_of

LABELS = Path(__file__).with_name("labels.jsonl")
COUNTS = Path(__file__).with_name("counts.json")

Key = tuple[str, str, str, str, str]
Found = Mapping[str, Sequence[Finding]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """What its reader says of a finding.

    Attributes:
      key: set, record, rule, field and digest of the detail.
      sample: "tuning" or "judging".
      verdict: whether the finding is true.
    """

    key: Key
    sample: str
    verdict: bool

    @property
    def rule(self) -> str:
        return self.key[2]


def read_labels() -> list[Label]:
    rows = map(json.loads, LABELS.read_text(encoding="utf-8").splitlines())
    names = ("set", "id", "rule", "field", "detail")
    return [
        Label(key=tuple(r[n] for n in names), sample=r["sample"], verdict=r["verdict"])
        for r in rows
    ]


def key_of(name: str, finding: Finding) -> Key:
    """Returns the key of a finding in the set of a name."""
    digest = hashlib.sha256(finding.detail.encode()).hexdigest()[:8]
    return name, finding.record_id, finding.kind, finding.field, digest


def judged(found: Found, sample: str) -> dict[str, Counter[bool]]:
    """Returns how many labelled findings of each rule are true and false, of those there are."""
    there = {key_of(name, finding) for name, findings in found.items() for finding in findings}
    verdicts: dict[str, Counter[bool]] = {rule: Counter() for rule in KINDS}
    for label in read_labels():
        if label.sample == sample and label.key in there:
            verdicts[label.rule][label.verdict] += 1
    return verdicts


def table(found: Found) -> Iterator[str]:
    kinds = Counter(finding.kind for findings in found.values() for finding in findings)
    tuning, judging = judged(found, "tuning"), judged(found, "judging")
    yield "| rule | | found | read | judged | true | at least |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for rule, (severity, _) in KINDS.items():
        if not kinds[rule]:
            continue
        true, trials = judging[rule][True], judging[rule].total()
        least = exact_interval(true / trials, trials)[0] if trials else 0.0
        cells = [f"{kinds[rule]:,}", trials + tuning[rule].total(), trials, true, f"{least:.2f}"]
        yield f"| `{rule}` | {severity} | {' | '.join(map(str, cells))} |"


def counts(found: Found) -> dict[str, dict[str, int]]:
    """Returns how many findings each rule has in each set."""
    return {
        name: dict(sorted(Counter(finding.kind for finding in findings).items()))
        for name, findings in sorted(found.items())
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder of real data")
    parser.add_argument("--counts", action="store_true", help="print findings by set and rule")
    options = parser.parse_args()
    found = findings_of(options.data)
    print(json.dumps(counts(found), indent=1) if options.counts else "\n".join(table(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
