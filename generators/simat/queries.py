"""Queries: all one-word changes that turn a triplet into another one, and their weights.

Source: SIMAT, section 3.2, "Building transformation queries", and section 3.3.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from eqforge.sources.simat import PARTS, Part, Triplet


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A change of one word of a triplet.

    Attributes:
      part: the word that changes.
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
    """Returns each triplet's changes to another one, by part and then alphabetically."""
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
    """Returns 1 / sqrt(frequency); a score is divided by the sum of its queries' weights."""
    return 1 / math.sqrt(frequency)
