"""REPLACE for free captions: replaces a word of the lexicon, with no foil to say which.

In VL-CheckList the negative shows which word matters and in which sense. A free caption has no
negative, so only entries that keep their sense wherever the tag fits are used; `in`, `by` and
`above` are left out ("a man in a hat" is not "a man within a hat"), and so are weak synonyms.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Edit, EditedText, apply_edits
from eqforge.generators.text.fixed_expressions import is_in_fixed_expression
from eqforge.generators.text.inflection import with_inflections
from eqforge.generators.text.lexicon import Lexicon, LexiconEntry
from eqforge.generators.text.perturbations.synonyms import article_edits
from eqforge.generators.text.words import find_words

AMBIGUOUS = frozenset(("in", "by", "above"))
_TAGS = {"color": "JJ", "size": "JJ", "state": "JJ", "action": "VB", "spatial": "IN"}
_DIRECTIONS = ("IN", "RB", "RP", ".", ",", "CC")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewording:
    """A caption with one word replaced."""

    edited: EditedText
    entry: LexiconEntry


def reword_caption(analysis: Analysis, lexicon: Lexicon) -> Iterator[Rewording]:
    """Yield a free caption with each of its words of the lexicon replaced, one at a time.

    Args:
      lexicon: words and replacements; entries of the groups color, size, state, action and
        spatial are used where the word's tag fits.
    """
    for start, end, entry in _places(analysis, lexicon):
        edits = _edits(analysis, start, end, entry)
        yield Rewording(edited=apply_edits(analysis.text, edits), entry=entry)


@functools.lru_cache(maxsize=4)
def _usable(lexicon: Lexicon) -> dict[str, LexiconEntry]:
    """Return the entries that keep their sense in any caption, by word."""
    usable: dict[str, LexiconEntry] = {}
    for entry in with_inflections(lexicon):
        if entry.synonymy == "full" and entry.group in _TAGS and entry.word not in AMBIGUOUS:
            usable.setdefault(entry.word, entry)
    return usable


def _places(analysis: Analysis, lexicon: Lexicon) -> list[tuple[int, int, LexiconEntry]]:
    usable = _usable(lexicon)
    first = {token.start: index for index, token in enumerate(analysis.tokens)}
    return [
        (start, end, usable[word])
        for start, end, word in find_words(analysis.text, tuple(usable))
        if start in first
        and analysis.tokens[first[start]].tag.startswith(_TAGS[usable[word].group])
        and not _has_other_sense(analysis, first[start])
        and not is_in_fixed_expression(analysis.text, start, end)
    ]


def _has_other_sense(analysis: Analysis, index: int) -> bool:
    """Say whether a verb names no action: "a nice looking tray", "a man looking old"."""
    token = analysis.tokens[index]
    before, behind = analysis.tokens[:index][-1:], analysis.tokens[index + 1 :][:1]
    if token.lemma == "look" and behind:
        return behind[0].tag not in _DIRECTIONS or behind[0].text.lower() in ("for", "like", "to")
    is_modifier = token.tag == "VBG" and bool(behind) and behind[0].tag.startswith("NN")
    return is_modifier and bool(before) and before[0].tag in ("DT", "JJ")


def _edits(analysis: Analysis, start: int, end: int, entry: LexiconEntry) -> tuple[Edit, ...]:
    """Return the edit, after that of an article before it if it has to agree."""
    text = entry.replacement
    if analysis.text[start].isupper():
        text = text[0].upper() + text[1:]
    edit = Edit(start=start, end=end, replacement=text)
    index = next(i for i, token in enumerate(analysis.tokens) if token.start == start)
    return (*article_edits(analysis.tokens, index, entry.replacement), edit)
