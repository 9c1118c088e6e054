"""Word triplets as captions, such as "A man sitting on a chair", and define synonyms.

The published captions were written by hand. If a template reads badly, the user can replace the
caption in a file. The published wording keeps the names of relations if it can ("a bear laying in a
wall"); the other one says what annotators meant ("a bear lying against a wall").

Source: SIMAT, section 3.2, "Writing captions for OSCAR".
"""

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import read_lines
from eqforge.generators.text.edits import article_for
from eqforge.sources.simat import Part, Triplet

# Objects that take no article, or the definite one.
_BARE = frozenset(
    {
        "people", "food", "water", "snow", "mud", "hay", "straw", "wood", "dirt", "sand", "tennis",
        "baseball", "soccer", "luggage", "fruit", "bread", "concrete", "traffic", "outside",
    }
)  # fmt: skip
_DEFINITE = frozenset(
    {"ground", "floor", "grass", "beach", "street", "sidewalk", "ocean", "sea", "air", "shade"}
)
# Things one lies on (annotated as "laying in"), and plays on or in (annotated as "playing with").
_SURFACES = frozenset(
    {
        "beach", "bench", "board", "car", "carpet", "chair", "computer", "couch", "counter",
        "cushion", "desk", "floor", "ground", "keyboard", "laptop", "log", "mat", "motorcycle",
        "pillow", "road", "rock", "rocks", "rug", "sand", "seat", "shelf", "sidewalk", "skateboard",
        "sofa", "street", "surfboard", "table", "tile", "towel", "tv", "window sill",
    }
)  # fmt: skip
_ON = frozenset({"beach", "court", "ground", "sand", "sidewalk", "street", "tennis court"})
_IN = frozenset({"dirt", "field", "grass", "mud", "park", "snow", "water", "yard"})
_INSIDE = frozenset(
    {
        "bag", "bathtub", "boat", "bowl", "box", "bucket", "car", "crate", "dirt", "feeder",
        "field", "grass", "hay", "kitchen", "mud", "park", "sand", "sink", "snow", "straw",
        "suitcase", "tree", "truck", "tub", "water", "yard",
    }
)  # fmt: skip
_PATHS = frozenset(
    {"beach", "grass", "path", "road", "sand", "sidewalk", "street", "tennis court", "track"}
)
_DESKS = frozenset({"computer", "counter", "desk", "laptop", "table"})
_PEOPLE = frozenset({"boy", "girl", "man", "people", "woman"})


def write_caption(triplet: Triplet, *, published: bool = False) -> str:
    subject = _with_article(triplet.subject)
    relation = _published(triplet) if published else _meant(triplet)
    if triplet.object == "outside":
        verb = relation.partition(" ")[0]
        return f"{_capital(subject)} {verb} outside."
    if triplet.object == triplet.subject and triplet.object not in _BARE:
        return f"{_capital(subject)} {relation} another {triplet.object}."
    return f"{_capital(subject)} {relation} {_with_article(triplet.object)}."


def _meant(triplet: Triplet) -> str:
    """Return a relation in the words for its object: "lying on" a couch, "waiting for" a bus."""
    thing = triplet.object
    match triplet.relation:
        case "laying in":
            return f"lying {_where(thing)}"
        case "sitting on a" if thing in _DESKS and triplet.subject in _PEOPLE:
            return "sitting at"
        case "sitting on a" if thing in ("grass", "sand") or triplet.subject == "bird":
            return "sitting in" if thing in ("bowl", "feeder", "tree") else "sitting on"
        case "sitting on a":
            return f"sitting {_where(thing)}"
        case "leaning on" if thing == "wall":
            return "leaning against"
        case "running in" if thing in _PATHS:
            return "running on"
        case "waiting at" if thing in {"bus", "plane", "taxi", "train"}:
            return "waiting for"
        case "eating from" if thing in {"bottle", "cup", "glass", "toilet"}:
            return "drinking from"
        case "eating from" if thing == "water":
            return "drinking"
        case "eating from" if thing in {"grass", "hay", "leaf", "leaves", "straw"}:
            return "eating"
        case "jumping on" if thing in ("fence", "pole", "poles"):
            return "jumping over"
        case "playing with" if thing in ("carpet", "computer", "floor", "laptop"):
            return "playing on"
        case "playing with" if thing in ("wave", "waves"):
            return "playing in"
        case _:
            return _published(triplet)


def _where(thing: str) -> str:
    if thing == "wall":
        return "against"
    return "in" if thing in _INSIDE else "on"


def _published(triplet: Triplet) -> str:
    match triplet.relation:
        case "laying in" if triplet.object in _SURFACES:
            return "laying on"
        case "playing with" if triplet.object in _ON:
            return "playing on"
        case "playing with" if triplet.object in _IN:
            return "playing in"
        case relation:
            return relation.removesuffix(" a")


def _with_article(name: str) -> str:
    words = name.split()
    if name in _DEFINITE:
        return f"the {name}"
    is_plural = words[-1].endswith("s") and not words[-1].endswith(("ss", "us"))
    if name in _BARE or is_plural:
        return name
    return f"{article_for(words[0]) or 'a'} {name}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


Synonyms = frozenset[frozenset[str]]

# Words of the published triplets that an image cannot tell apart.
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
    """Read synonyms: a user's file with words of one meaning per line, or the built-in ones."""
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
            raise InputError(f"{Path(path).name}: line {number}: expected two or more words")
        yield words


def are_synonyms(part: Part, one: str, other: str, synonyms: Synonyms) -> bool:
    """Return True if two words mean the same: by the list, or as singular and plural objects."""
    if frozenset((one, other)) in synonyms:
        return True
    return part == "object" and (_is_plural(one, other) or _is_plural(other, one))


def _is_plural(one: str, many: str) -> bool:
    endings = (f"{one}s", f"{one}es", f"{one[:-1]}ies" if one.endswith("y") else f"{one}s")
    return many in endings
