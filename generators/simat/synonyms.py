"""Detects queries that change nothing, because their two words mean the same.

SIMAT's authors relied on OSCAR to find them, since a crop that matches the source caption also
matches that of a synonym. Here the words alone decide, whatever the oracle says.
"""

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import read_lines
from eqforge.sources.simat import Part

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
    """Returns the pairs of words that mean the same.

    Args:
      path: a user's file, with words of one meaning on a line, separated by commas; None takes the
        built-in pairs of nouns and relations.

    Raises:
      InputError: the file cannot be read, or a line has fewer than two different words.
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
    """Tells whether two words mean the same: by the list, or as singular and plural objects."""
    if frozenset((one, other)) in synonyms:
        return True
    return part == "object" and (_is_plural(one, other) or _is_plural(other, one))


def _is_plural(one: str, many: str) -> bool:
    endings = (f"{one}s", f"{one}es", f"{one[:-1]}ies" if one.endswith("y") else f"{one}s")
    return many in endings
