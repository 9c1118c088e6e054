"""How often the rules that edit captions are right, by kind, as hand-labelled rows have it.

`python -m tools.rule_precision` makes the table from the labels.
"""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PATH: Final = Path(__file__).with_name("data") / "rule_precision.tsv"
COLUMNS: Final = ("text", "kind", "read", "right")

ENOUGH: Final = 30
"""A kind of which fewer were read counts with the others of its family alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Precision:
    """How many texts of a kind or family were read, and how many of them are right.

    Attributes:
      read: how many were read.
      right: how many of them every reader found right.
    """

    read: int
    right: int

    @property
    def share(self) -> float:
        """The share that is right."""
        return self.right / self.read

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of 95 % of the share."""
        return _wilson(self.right, self.read)


@functools.cache
def _wilson(right: int, read: int) -> tuple[float, float]:
    from scipy.stats import binomtest  # type: ignore[import-untyped]

    ends = binomtest(right, read).proportion_ci(confidence_level=0.95, method="wilson")
    return float(ends.low), float(ends.high)


def family_of(kind: str) -> str:
    """Returns the family of a kind: what stands before its slash."""
    return kind.partition("/")[0]


def precision_of(part: str, kind: str) -> Precision | None:
    """Returns the precision of a kind, or of its family; None where neither was read.

    Args:
      part: the text that the kind is of, `hard_positive` or `hard_negative`.
      kind: how it was made.
    """
    known = precisions()
    return known.get((part, kind)) or known.get((part, family_of(kind)))


@functools.cache
def precisions(path: Path = PATH) -> dict[tuple[str, str], Precision]:
    """Returns the precisions of a table, by text and kind or family."""
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return {
        (part, kind): Precision(read=int(read), right=int(right))
        for part, kind, read, right in rows
    }
