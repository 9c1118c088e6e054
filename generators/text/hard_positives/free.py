"""REPLACE for free captions: replaces a word of the lexicon, with no foil to say which.

In VL-CheckList the negative shows which word matters and in which sense. A free caption has no
negative, so only entries that keep their sense wherever the tag fits are used; `in`, `by` and
`above` are left out ("a man in a hat" is not "a man within a hat"), and so are weak synonyms.
"""

import functools
from collections.abc import Iterator

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.contexts import suits_group
from eqforge.generators.text.edits import Edit, EditedText, apply_edits
from eqforge.generators.text.lexicon import Lexicon, LexiconEntry, with_inflections
from eqforge.generators.text.perturbations.synonyms import article_edits
from eqforge.generators.text.words import find_words, is_in_fixed_expression

AMBIGUOUS = frozenset(("in", "by", "above"))
_TAGS = {"color": "JJ", "size": "JJ", "state": "JJ", "action": "VB", "spatial": "IN"}
_DIRECTIONS = ("IN", "RB", "RP", ".", ",", "CC")


def reword_caption(
    analysis: Analysis, lexicon: Lexicon
) -> Iterator[tuple[EditedText, LexiconEntry]]:
    """Yield a free caption with each of its words of the lexicon replaced, one at a time."""
    usable = _usable(lexicon)
    indices = {token.start: index for index, token in enumerate(analysis.tokens)}
    for start, end, word in find_words(analysis.text, tuple(usable)):
        entry, index = usable[word], indices.get(start)
        if index is None or not analysis.tag(index).startswith(_TAGS[entry.group]):
            continue
        if entry.group == "color" and not suits_group(analysis, index, "color"):
            continue
        if _has_other_sense(analysis, index) or is_in_fixed_expression(analysis.text, start, end):
            continue
        text = entry.replacement
        if analysis.text[start].isupper():
            text = text[0].upper() + text[1:]
        edits = (
            *article_edits(analysis.tokens, index, entry.replacement),
            Edit(start=start, end=end, replacement=text),
        )
        yield apply_edits(analysis.text, edits), entry


@functools.lru_cache(maxsize=4)
def _usable(lexicon: Lexicon) -> dict[str, LexiconEntry]:
    usable: dict[str, LexiconEntry] = {}
    for entry in with_inflections(lexicon):
        if entry.synonymy == "full" and entry.group in _TAGS and entry.word not in AMBIGUOUS:
            usable.setdefault(entry.word, entry)
    return usable


def _has_other_sense(analysis: Analysis, index: int) -> bool:
    """Say whether a verb names no action: "a nice looking tray", "a man looking old"."""
    token = analysis.tokens[index]
    before, behind = analysis.tokens[:index][-1:], analysis.tokens[index + 1 :][:1]
    if token.lemma == "look" and behind:
        return behind[0].tag not in _DIRECTIONS or behind[0].text.lower() in ("for", "like", "to")
    is_modifier = token.tag == "VBG" and bool(behind) and behind[0].tag.startswith("NN")
    return is_modifier and bool(before) and before[0].tag in ("DT", "JJ")
