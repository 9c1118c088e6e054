"""Pairs of phrases of which either can stand for the other: "each other" and "one another".

Left out, because only one of the two follows from the other: "a couple of" and "two" (it may be
three), "on top of" and "on" (a picture on a wall), "in the middle of" and "in the center of".
"""

import functools
import re
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import word_at
from eqforge.generators.text.perturbations.synonyms import article_edits, match_case
from eqforge.generators.text.rewordings.phrasings.nouns import NOUNS
from eqforge.generators.text.rewordings.phrasings.pairs import Pair
from eqforge.generators.text.rewordings.phrasings.prepositions import PREPOSITIONS
from eqforge.generators.text.rewordings.phrasings.pronouns import EACH_OTHER, SOMEONE
from eqforge.generators.text.rewordings.phrasings.quantities import QUANTITIES
from eqforge.generators.text.rewordings.phrasings.states import STATES
from eqforge.generators.text.rewordings.places import has_plain_spacing, replacement
from eqforge.generators.text.rewordings.records import Rewording, Rule

_PAIRS: Final = (EACH_OTHER, *PREPOSITIONS, *STATES, SOMEONE, *QUANTITIES, *NOUNS)


def _find(rule: str, pair: Pair, phrase: str, analysis: Analysis) -> Iterator[Rewording]:
    if not _pattern(phrase).search(analysis.text):
        return
    other = pair.other if phrase == pair.one else pair.one
    size = len(phrase.split())
    for first in range(len(analysis.tokens) - size + 1):
        last = first + size
        words = " ".join(word_at(analysis, index) for index in range(first, last))
        ending = "s" if pair.has_plural and words == f"{phrase}s" else ""
        if words != phrase + ending or _is_part(analysis, first, other):
            continue
        if not (has_plain_spacing(analysis, first, last) and pair.fits(analysis, first, last)):
            continue
        if any(token.text[0].isupper() for token in analysis.tokens[first + 1 : last]):
            continue
        cased = match_case(other + ending, analysis.tokens[first].text)
        if analysis.tokens[first].text == "A":
            cased = other[0].upper() + other[1:]
        edit = replacement(analysis, first, last, cased)
        yield Rewording(rule=rule, edits=(*article_edits(analysis.tokens, first, other), edit))


@functools.cache
def _pattern(phrase: str) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, phrase.split())), re.IGNORECASE)


def _is_part(analysis: Analysis, first: int, other: str) -> bool:
    """Tells whether the phrase is the start of the other: "inside" of "inside of"."""
    longer = other.split()
    return len(longer) > 1 and longer == [
        word_at(analysis, index) for index in range(first, first + len(longer))
    ]


def _rules() -> Iterator[Rule]:
    for pair in _PAIRS:
        for phrase, other in ((pair.one, pair.other), (pair.other, pair.one)):
            name = _name(phrase, other)
            yield Rule(
                name=name,
                reverse=_name(other, phrase),
                ground=pair.ground,
                find=functools.partial(_find, name, pair, phrase),
            )


def _name(phrase: str, other: str) -> str:
    return f"{phrase}_as_{other}".replace(" ", "_")


PHRASINGS: Final = tuple(_rules())
