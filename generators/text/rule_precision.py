"""How often the rules that edit captions are right, by kind, as hand-labelled rows have it.

`python -m tools.rule_precision` makes the table from the labels.

Of most kinds few texts were read, and of five right out of five it does not follow that all are. So
a kind begins with what is known of its family, a family with what is known of all texts of its
part, each as if `PRIOR` texts more had been read, and what was read of it is added: the mean and
interval of a beta distribution.

Source: Efron and Morris 1975, "Data analysis using Stein's estimator and its generalizations"
  (means of few are drawn towards that of all).
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PATH: Final = Path(__file__).with_name("data") / "rule_precision.tsv"
COLUMNS: Final = ("text", "kind", "read", "right")

PRIOR: Final = 10
"""What is known of a family counts for a kind as so many texts."""

Counts = Mapping[tuple[str, str], tuple[int, int]]
"""How many were read and right, by text and kind."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Precision:
    """What is known of how often texts are right: a beta distribution.

    Attributes:
      right, wrong: its parameters: how many are, with what counts as read.
    """

    right: float
    wrong: float

    @property
    def share(self) -> float:
        """The share that is right: the mean."""
        return self.right / (self.right + self.wrong)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval that holds the share with 95 %."""
        return _interval(self.right, self.wrong)

    def of_some(self, read: int, right: int) -> "Precision":
        """Return the precision of a part of these texts, of which so many were read and right."""
        known = PRIOR * self.share
        return Precision(right=known + right, wrong=PRIOR - known + read - right)


@functools.cache
def _interval(right: float, wrong: float) -> tuple[float, float]:
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    low, high = (float(betaincinv(right, wrong, end)) for end in (0.025, 0.975))
    return low, high


def family_of(kind: str) -> str:
    """Return the family of a kind: what stands before its slash."""
    return kind.partition("/")[0]


@functools.cache
def precision_of(part: str, kind: str, path: Path = PATH) -> Precision | None:
    """Return the precision of a kind, or of a family; None where nothing of its family was read.

    Args:
      part: the text that the kind is of, `hard_positive` or `hard_negative`.
      kind: how it was made; one that was not read is as any of its family.
    """
    counts, family = labelled(path), family_of(kind)
    there = by_family(counts).get((part, family))
    if there is None:
        return None
    read, right = map(sum, zip(*(n for (of, _), n in counts.items() if of == part), strict=True))
    # Jeffreys' prior of a share.
    found = Precision(right=right + 0.5, wrong=read - right + 0.5).of_some(*there)
    return found if kind == family else found.of_some(*counts.get((part, kind), (0, 0)))


def by_family(counts: Counts) -> dict[tuple[str, str], tuple[int, int]]:
    """Return how many were read and right, by text and family."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for (part, kind), (read, right) in sorted(counts.items()):
        key = part, family_of(kind)
        reads, rights = found.get(key, (0, 0))
        found[key] = reads + read, rights + right
    return found


@functools.cache
def labelled(path: Path = PATH) -> Counts:
    """Return how many texts were read and right, by text and kind, as a table has it."""
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return {(part, kind): (int(read), int(right)) for part, kind, read, right in rows}
