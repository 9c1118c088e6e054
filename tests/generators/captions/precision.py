"""Prints how often hard positives and hard negatives are right, by the labels beside this file.

    python -m tests.generators.captions.precision

labels.jsonl has one row a line: the set, the row's id, a digest of its three texts, their kinds,
and what each of two readers says of the hard positive and of the hard negative. No rule was tried
on these captions before they were read. Rows of the sample `swaps` are captions whose verb phrases
are swapped, by one reader; `tools.rule_precision` counts them too.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eqforge.evaluation.statistics.shares import exact_interval

LABELS = Path(__file__).with_name("labels.jsonl")
SETS = {"coco": "COCO val", "replace": "REPLACE"}
POSITIVES = ("ok", "unidiomatic", "wrong", "ungrammatical")
NEGATIVES = ("false", "unclear", "true", "ungrammatical")


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """What two readers say of a row.

    Attributes:
      set_name: a key of SETS.
      row_id: id of the sample in the dataset.
      texts: digest of the row's three texts.
      positive_kind, negative_kind: as the dataset has them.
      positives: each reader's word for the hard positive, of POSITIVES.
      negatives: each reader's word for the hard negative, of NEGATIVES.
      near: whether the hard positive nearly says what the hard negative says, by each reader.
    """

    set_name: str
    row_id: str
    texts: str
    positive_kind: str
    negative_kind: str
    positives: tuple[str, str]
    negatives: tuple[str, str]
    near: tuple[bool, bool]

    @property
    def families(self) -> tuple[str, str]:
        """The kinds without what follows a slash."""
        return self.positive_kind.partition("/")[0], self.negative_kind.partition("/")[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """How many rows two readers find at fault.

    Attributes:
      rows: that were read.
      faults: of each reader.
      both: at fault by both.
    """

    rows: int
    faults: tuple[int, int]
    both: int

    @property
    def share(self) -> float:
        """The mean share of faults of the two."""
        return sum(self.faults) / (2 * self.rows)

    def cells(self) -> list[str]:
        """Returns rows, faults and the mean share with its interval as cells of a table."""
        low, high = exact_interval(self.share, self.rows)
        share = f"{100 * self.share:.1f}% ({100 * low:.1f} to {100 * high:.1f})"
        return [str(self.rows), *map(str, self.faults), str(self.both), share]


def read_labels() -> list[Label]:
    rows = map(json.loads, LABELS.read_text(encoding="utf-8").splitlines())
    return [
        Label(
            set_name=row["set"],
            row_id=row["id"],
            texts=row["texts"],
            positive_kind=row["positive_kind"],
            negative_kind=row["negative_kind"],
            positives=tuple(row["positive"]),
            negatives=tuple(row["negative"]),
            near=tuple(row["near"]),
        )
        for row in rows
        if row["sample"] == "after"
    ]


def positive_faults(label: Label) -> tuple[bool, bool]:
    """Returns whether the hard positive is not ok, by each reader."""
    first, second = label.positives
    return first != "ok", second != "ok"


def negative_faults(label: Label) -> tuple[bool, bool]:
    """Returns whether the hard negative is not clearly false, by each reader."""
    first, second = label.negatives
    return first != "false", second != "false"


FAULTS: dict[str, Callable[[Label], tuple[bool, bool]]] = {
    "hard positive: wrong, ungrammatical or unidiomatic": positive_faults,
    "hard positive: wrong or ungrammatical": lambda label: (
        label.positives[0] in POSITIVES[2:],
        label.positives[1] in POSITIVES[2:],
    ),
    "hard negative: not clearly false or ungrammatical": negative_faults,
    "hard positive means nearly the same as the hard negative": lambda label: label.near,
}
"""What can be wrong with a row."""


def count(labels: Iterable[Label], faults: Callable[[Label], tuple[bool, bool]]) -> Counted:
    """Returns how many rows are at fault."""
    found = [faults(label) for label in labels]
    first, second = (sum(each[reader] for each in found) for reader in range(2))
    return Counted(rows=len(found), faults=(first, second), both=sum(map(all, found)))


def agreement(labels: Sequence[Label], faults: Callable[[Label], tuple[bool, bool]]) -> float:
    """Returns the share of rows of which both readers say the same."""
    return sum(first == second for first, second in map(faults, labels)) / len(labels)


def summary(labels: Sequence[Label]) -> Iterator[str]:
    """Yields the lines of the table of all faults."""
    yield "| | | rows | A | B | both | error rate (95%) | A and B agree |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for name, title in SETS.items():
        some = [label for label in labels if label.set_name == name]
        for fault, faults in FAULTS.items():
            cells = [title, fault, *count(some, faults).cells()]
            yield f"| {' | '.join(cells)} | {100 * agreement(some, faults):.0f}% |"


def by_family(labels: Sequence[Label], place: int) -> Iterator[str]:
    """Yields the lines of a table of kinds: of hard positives at place 0, of negatives at 1."""
    faults = (positive_faults, negative_faults)[place]
    yield "| | kind | rows | A | B | both | error rate (95%) |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for name, title in SETS.items():
        of_set = [label for label in labels if label.set_name == name]
        for family, _ in Counter(label.families[place] for label in of_set).most_common():
            of_family = [label for label in of_set if label.families[place] == family]
            yield f"| {title} | `{family}` | {' | '.join(count(of_family, faults).cells())} |"


def tables() -> str:
    """Returns all tables as Markdown."""
    labels = read_labels()
    parts = (summary(labels), by_family(labels, 0), by_family(labels, 1))
    return "\n\n".join("\n".join(part) for part in parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.parse_args()
    print(tables())
    return 0


if __name__ == "__main__":
    sys.exit(main())
