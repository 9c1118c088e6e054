"""Estimate the precision of the rules that edit captions, by kind, from hand-labelled rows.

`python -m tools.rule_precision` makes the table from the labels.

For most kinds few texts were read, and five right out of five do not prove that all are right. So
the estimate of a kind starts from its family's precision, which counts as `PRIOR` texts, and adds
the texts that were read. A family starts from its part's precision in the same way. The mean and
the interval come from a beta distribution.

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
"""Number of texts for which the precision of a family counts in a kind."""

Counts = Mapping[tuple[str, str], tuple[int, int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Precision:
    """A beta distribution of the share of texts that are right."""

    right: float
    wrong: float

    @property
    def share(self) -> float:
        return self.right / (self.right + self.wrong)

    @property
    def interval(self) -> tuple[float, float]:
        return _interval(self.right, self.wrong)

    def of_some(self, read: int, right: int) -> "Precision":
        known = PRIOR * self.share
        return Precision(right=known + right, wrong=PRIOR - known + read - right)


@functools.cache
def _interval(right: float, wrong: float) -> tuple[float, float]:
    from scipy.special import betaincinv  # type: ignore[import-untyped]

    low, high = (float(betaincinv(right, wrong, end)) for end in (0.025, 0.975))
    return low, high


def family_of(kind: str) -> str:
    return kind.partition("/")[0]


@functools.cache
def precision_of(part: str, kind: str, path: Path = PATH) -> Precision | None:
    """Return the precision of a kind or family of a part; None if nothing of its family was read.

    The part is `hard_positive` or `hard_negative`. An unread kind has the precision of its family.
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
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for (part, kind), (read, right) in sorted(counts.items()):
        key = part, family_of(kind)
        reads, rights = found.get(key, (0, 0))
        found[key] = reads + read, rights + right
    return found


@functools.cache
def labelled(path: Path = PATH) -> Counts:
    _, *lines = path.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return {(part, kind): (int(read), int(right)) for part, kind, read, right in rows}
