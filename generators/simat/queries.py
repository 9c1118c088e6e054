"""Queries: every change of one word of a triplet that gives another triplet, and their weights.

Source: SIMAT, section 3.2, "Building transformation queries", and section 3.3.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from eqforge.schemas.sources.simat import PARTS, Part, Triplet


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One word of a triplet exchanged.

    Attributes:
      part: which word.
      source, target: the triplet before and after.
    """

    part: Part
    source: Triplet
    target: Triplet

    @property
    def words(self) -> tuple[str, str]:
        """The word before and after."""
        return self.source.word(self.part), self.target.word(self.part)


def changes_of(triplets: Iterable[Triplet]) -> dict[Triplet, tuple[Change, ...]]:
    """Returns the changes of each triplet to another one, by part and then by the alphabet."""
    known = tuple(triplets)
    groups: defaultdict[tuple[Part, Triplet], list[Triplet]] = defaultdict(list)
    for triplet in known:
        for part in PARTS:
            groups[part, triplet.changed(part, "")].append(triplet)
    return {
        triplet: tuple(
            Change(part=part, source=triplet, target=target)
            for part in PARTS
            for target in sorted(groups[part, triplet.changed(part, "")])
            if target != triplet
        )
        for triplet in known
    }


def weight_of(frequency: int) -> float:
    """Returns 1 / sqrt(frequency); a score divides by the sum of its queries' weights."""
    return 1 / math.sqrt(frequency)
