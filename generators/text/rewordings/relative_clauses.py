"""Relative clauses: "a man riding a wave" and "a man who is riding a wave".

A participle behind a noun is a relative clause without its pronoun and "be". It is spelt out, or
shortened, right behind a noun phrase that it clearly describes: one that opens the caption or
follows "there is", the only living being so far, or what "topped with" and the like are said of.
"""

import functools
import re
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import tag_at, word_at
from eqforge.generators.text.rewordings.nominals import Nominal, nominals
from eqforge.generators.text.rewordings.participles import (
    CONTENTS,
    describes,
    has_second_participle,
    may_describe,
)
from eqforge.generators.text.rewordings.places import deletion, has_plain_spacing, insertion
from eqforge.generators.text.rewordings.records import Rewording, Rule

_GROUND = (
    "Huddleston and Pullum 2002, The Cambridge Grammar of the English Language, ch. 14: "
    "participial modifiers have the meaning of relative clauses with 'be'."
)
_HAS_CLAUSE = re.compile(r"(?i)\b(?:that|which|who) (?:is|are)\b")
_JOINING = frozenset(("and", "or", "but", ","))
_FINITE = ("VBZ", "VBP", "VBD", "MD")
_TIES = frozenset(("having", "of", "with", "holding", "carrying", "eating"))


def _add(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    for noun, before in _readable(analysis):
        here = noun.last
        if (
            not _HAS_CLAUSE.search(analysis.text)
            and _is_described(analysis, noun, before, here)
            and has_plain_spacing(analysis, here - 1, here + 1)
            and not _goes_on(analysis, here)
        ):
            words = " ".join(_clause(noun))
            yield Rewording(rule=rule, edits=(insertion(analysis, here, words),))


def _drop(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    for noun, before in _readable(analysis):
        here = noun.last
        words = (word_at(analysis, here), word_at(analysis, here + 1))
        if (
            words == _clause(noun)
            and _is_described(analysis, noun, before, here + 2)
            and has_plain_spacing(analysis, here - 1, here + 3)
            and not _goes_on(analysis, here + 2)
        ):
            yield Rewording(rule=rule, edits=(deletion(analysis, here, here + 2),))


def _readable(analysis: Analysis) -> Iterator[tuple[Nominal, list[Nominal]]]:
    """Yields the noun phrases that a clause may follow, each with those before it."""
    if not any(may_describe(token.text.lower()) for token in analysis.tokens):
        return
    before: list[Nominal] = []
    for noun in nominals(analysis):
        if noun.relative is not None and noun.kind is not None and noun.is_determined:
            yield noun, list(before)
        before.append(noun)


def _clause(noun: Nominal) -> tuple[str, str]:
    return ("who" if noun.kind == "person" else "that", noun.relative or "")


def _is_described(analysis: Analysis, noun: Nominal, before: list[Nominal], index: int) -> bool:
    """Tells whether a token is a participle that describes a noun phrase and no other.

    Args:
      analysis: the caption's analysis.
      noun: the noun phrase.
      before: those before it.
      index: of the token.
    """
    if not describes(analysis, index, noun) or has_second_participle(analysis, index):
        return False
    opening = [word_at(analysis, i) for i in range(min(noun.first, 3))]
    if opening in ([], ["there", "is"], ["there", "are"]):
        return True
    previous = word_at(analysis, noun.first - 1)
    if previous in ("and", "or", "but", ",", "than", "like", "as"):
        return False
    if len(before) < sum(first < noun.first for first, _ in _outer_phrases(analysis)):
        return False  # phrases that cannot be read
    if word_at(analysis, index) in CONTENTS:
        others = [other for other in before if other.kind == "thing"]
        is_tied = previous in _TIES and all(other.relative == noun.relative for other in others)
        return noun.kind == "thing" and (is_tied or not others)
    return noun.is_living and all(other.kind == "thing" for other in before)


def _outer_phrases(analysis: Analysis) -> Iterator[tuple[int, int]]:
    return (phrase for phrase in analysis.noun_phrases if word_at(analysis, phrase[0] - 1) != "of")


def _goes_on(analysis: Analysis, index: int) -> bool:
    """Tells whether another verb or clause is joined: "and is on it", "and people are on it"."""
    starts = {last: first for first, last in analysis.noun_phrases}
    return any(
        tag_at(analysis, i) in _FINITE
        and {word_at(analysis, i - 1), word_at(analysis, starts.get(i, i) - 1)} & _JOINING
        for i in range(index, len(analysis.tokens))
    )


RELATIVE_CLAUSES: Final = tuple(
    Rule(name=name, reverse=reverse, ground=_GROUND, find=functools.partial(find, name))
    for name, reverse, find in (
        ("participle_to_relative", "relative_to_participle", _add),
        ("relative_to_participle", "participle_to_relative", _drop),
    )
)
