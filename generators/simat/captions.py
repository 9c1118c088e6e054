"""Writes a triplet as a sentence, such as "A man sitting on a chair".

The published captions were written by hand. Where a template reads badly, the user can replace the
caption in a file.

Source: SIMAT, section 3.2, "Writing captions for OSCAR".
"""

from eqforge.generators.text.articles import article_for
from eqforge.schemas.sources.simat import Triplet

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
# What one lies on (annotated as "laying in"), and plays on or in (annotated as "playing with").
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


def write_caption(triplet: Triplet) -> str:
    """Returns a triplet as a sentence.

    Raises:
      MissingExtra: inflect, which tells "a" from "an", is not installed.
    """
    subject = _with_article(triplet.subject)
    relation = _relation(triplet)
    if triplet.object == "outside":
        verb = relation.partition(" ")[0]
        return f"{_capital(subject)} {verb} outside."
    if triplet.object == triplet.subject and triplet.object not in _BARE:
        return f"{_capital(subject)} {relation} another {triplet.object}."
    return f"{_capital(subject)} {relation} {_with_article(triplet.object)}."


def _relation(triplet: Triplet) -> str:
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
