"""Queries: all one-word changes that turn a triplet into another one, and their weights.

Source: SIMAT, section 3.2, "Building transformation queries", and section 3.3.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import read_lines
from eqforge.sources.simat import PARTS, Part, Triplet


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A change of one word of a triplet."""

    part: Part
    source: Triplet
    target: Triplet

    @property
    def words(self) -> tuple[str, str]:
        return self.source.word(self.part), self.target.word(self.part)


def changes_of(triplets: Iterable[Triplet]) -> dict[Triplet, tuple[Change, ...]]:
    """Return each triplet's changes to another one, by part and then alphabetically."""
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
    """Return 1 / sqrt(frequency); a score is divided by the sum of its queries' weights."""
    return 1 / math.sqrt(frequency)


Synonyms = frozenset[frozenset[str]]

# Words of the published triplets that a picture cannot tell apart.
_GROUPS = (
    ("couch", "sofa"),
    ("bike", "bicycle"),
    ("motorcycle", "motorbike"),
    ("tv", "television"),
    ("computer", "laptop"),
    ("cell phone", "phone", "cellphone"),
    ("surfboard", "board"),
    ("skateboard", "board"),
    ("snowboard", "board"),
    ("suitcase", "luggage"),
    ("rug", "carpet"),
    ("chair", "seat"),
    ("beach", "sand"),
    ("ground", "dirt"),
    ("field", "grass"),
    ("street", "road"),
    ("window sill", "windowsill", "sill"),
    ("railing", "rail"),
    ("laying in", "sleeping on"),
)


def load_synonyms(path: str | Path | None = None) -> Synonyms:
    """Return the pairs of words that mean the same.

    Args:
      path: a user's file, with words of one meaning on a line, separated by commas; None takes the
        built-in pairs of nouns and relations.
    """
    groups = _GROUPS if path is None else tuple(_read(path))
    return frozenset(frozenset(pair) for group in groups for pair in combinations(group, 2))


def _read(path: str | Path) -> Iterable[tuple[str, ...]]:
    for number, line in read_lines(path):
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{Path(path).name}: line {number}: not UTF-8: {error}") from error
        words = tuple(word for part in text.split(",") if (word := part.strip()))
        if len(set(words)) < 2:
            raise InputError(f"{Path(path).name}: line {number}: expected two words or more")
        yield words


def are_synonyms(part: Part, one: str, other: str, synonyms: Synonyms) -> bool:
    """Return True if two words mean the same: by the list, or as singular and plural objects."""
    if frozenset((one, other)) in synonyms:
        return True
    return part == "object" and (_is_plural(one, other) or _is_plural(other, one))


def _is_plural(one: str, many: str) -> bool:
    endings = (f"{one}s", f"{one}es", f"{one[:-1]}ies" if one.endswith("y") else f"{one}s")
    return many in endings
