"""Captions that say what they show: "this is a view of a street", "this is the back of a bus"."""

from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import word_at
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.rewordings.introduced import is_single_phrase
from eqforge.generators.text.rewordings.places import has_plain_spacing
from eqforge.generators.text.rewordings.records import Rewording

SHOWN: Final = (
    "Quirk et al. 1985, A Comprehensive Grammar of the English Language, ch. 6: 'this' points at "
    "what is before the reader's eyes, as a caption does that is a noun phrase alone."
)
"""Why both rules keep what is said."""

_PICTURES = frozenset(
    (
        *("close", "close-up", "closeup", "collage", "drawing", "illustration", "image"),
        *("painting", "photo", "photograph", "picture", "portrait", "scene", "screenshot"),
        *("selfie", "shot", "sketch", "up", "view"),
    )
)
_SIDES = frozenset(
    (
        *("back", "bottom", "corner", "edge", "end", "entrance", "front", "inside", "interior"),
        *("outside", "rear", "reflection", "side", "storefront", "tail", "top", "underside"),
    )
)
_ARTICLES = ("a", "an", "the")
_SHOWN_ALL = ("complete", "of", "with", "showing", "from", "that", "through", "in", "at")


def add_this_is(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    """Yields "this is a view of a street" for "a view of a street".

    Args:
      rule: name of the rule.
      analysis: the caption's analysis.
    """
    if not (is_single_phrase(analysis, 0, _ARTICLES) and has_plain_spacing(analysis, 0, 2)):
        return
    last = analysis.noun_phrases[0][1]
    head = analysis.tokens[last - 1]
    if head.text.lower() == "close" and word_at(analysis, last) in ("up", "-"):
        head, last = analysis.tokens[last], last + 1
    is_picture = head.text.lower() in _PICTURES and word_at(analysis, last) in _SHOWN_ALL
    is_side = head.text.lower() in _SIDES and word_at(analysis, last) == "of"
    if not (is_picture or is_side):
        return
    first = analysis.tokens[0]
    this = "this" if first.text[0].islower() else "This"
    words = f"{this} is {first.text[0].lower()}"
    edit = Edit(start=first.start, end=first.start + 1, replacement=words)
    yield Rewording(rule=rule, edits=(edit,))


def drop_this_is(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    """Yields "a view of a street" for "this is a view of a street".

    Args:
      rule: name of the rule.
      analysis: the caption's analysis.
    """
    opening = [word_at(analysis, index) for index in range(2)]
    if opening != ["this", "is"] or not is_single_phrase(analysis, 2, _ARTICLES):
        return
    this, first = analysis.tokens[0], analysis.tokens[2]
    if has_plain_spacing(analysis, 0, 4) and first.text[0].islower():
        letter = first.text[0] if this.text[0].islower() else first.text[0].upper()
        edit = Edit(start=this.start, end=first.start + 1, replacement=letter)
        yield Rewording(rule=rule, edits=(edit,))
