"""Reword relative clauses: "a man riding a wave" and "a man who is riding a wave".

A participle after a noun is a relative clause without its pronoun and "be". It is spelt out, or
shortened, right after a noun phrase that it clearly describes: one that opens the caption or
follows "there is", the only living being so far, or the noun of "topped with" and the like.

A caption that is a clause, "a man rides a wave", says the same of the image as the noun phrase with
a pronoun: "a man who rides a wave".

Source: Huddleston and Pullum 2002, The Cambridge Grammar of the English Language, ch. 12 (relative
clauses) and 14 (participial modifiers); Quirk et al. 1985, ch. 11 (noun phrases as captions).
"""

import dataclasses
import re
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_words import finite_forms
from eqforge.generators.text.coordination.conjuncts import is_mass
from eqforge.generators.text.rewordings.clauses import (
    Subject,
    finite_verbs,
    is_one_sentence,
    may_be_verb,
    read_subject,
    with_first_verb,
)
from eqforge.generators.text.rewordings.introduced import (
    CONTENTS,
    describes,
    has_second_participle,
    may_describe,
)
from eqforge.generators.text.rewordings.nominals import Nominal, nominal_from, nominals
from eqforge.generators.text.rewordings.records import Edits, deletion, has_plain_spacing, insertion

_HAS_CLAUSE = re.compile(r"(?i)\b(?:that|which|who) (?:is|are)\b")
_FINITE = ("VBZ", "VBP", "VBD", "MD")
_RELATIVES = frozenset(("that", "what", "where", "which", "who", "whose"))
_BE = frozenset(("are", "is"))
_BEHIND = frozenset(("in", "near", "on", "with"))
_JOINING = frozenset(("and", "but", "or"))
_TIES = frozenset(("having", "of", "with", "holding", "carrying", "eating"))


def _add(analysis: Analysis) -> Iterator[Edits]:
    for noun, before in _readable(analysis):
        here = noun.last
        if (
            not _HAS_CLAUSE.search(analysis.text)
            and _is_described(analysis, noun, before, here)
            and has_plain_spacing(analysis, here - 1, here + 1)
            and not _goes_on(analysis, here)
        ):
            words = " ".join(_clause(noun))
            yield (insertion(analysis, here, words),)


def _drop(analysis: Analysis) -> Iterator[Edits]:
    for noun, before in _readable(analysis):
        here = noun.last
        words = (analysis.word(here), analysis.word(here + 1))
        if (
            words == _clause(noun)
            and _is_described(analysis, noun, before, here + 2)
            and has_plain_spacing(analysis, here - 1, here + 3)
            and not _goes_on(analysis, here + 2)
        ):
            yield (deletion(analysis, here, here + 2),)


def _readable(analysis: Analysis) -> Iterator[tuple[Nominal, list[Nominal]]]:
    if not any(may_describe(token.text.lower()) for token in analysis.tokens):
        return
    before: list[Nominal] = []
    for noun in nominals(analysis):
        if noun.relative is not None and noun.kind is not None and noun.is_determined:
            yield noun, list(before)
        before.append(noun)


def _clause(noun: Nominal) -> tuple[str, str]:
    return (_pronoun(noun), noun.relative or "")


def _pronoun(noun: Nominal) -> str:
    return "who" if noun.kind == "person" else "that"


def _is_described(analysis: Analysis, noun: Nominal, before: list[Nominal], index: int) -> bool:
    if not describes(analysis, index, noun) or has_second_participle(analysis, index):
        return False
    opening = [analysis.word(i) for i in range(min(noun.first, 3))]
    if opening in ([], ["there", "is"], ["there", "are"]):
        return True
    previous = analysis.word(noun.first - 1)
    if previous in ("and", "or", "but", ",", "than", "like", "as"):
        return False
    outer = (first for first, _ in analysis.noun_phrases if analysis.word(first - 1) != "of")
    if len(before) < sum(first < noun.first for first in outer):
        return False  # phrases that cannot be read
    if analysis.word(index) in CONTENTS:
        others = [other for other in before if other.kind == "thing"]
        is_tied = previous in _TIES and all(other.relative == noun.relative for other in others)
        return noun.kind == "thing" and (is_tied or not others)
    return noun.is_living and all(other.kind == "thing" for other in before)


def _goes_on(analysis: Analysis, index: int) -> bool:
    """Return True if another verb or clause is joined: "and is on it", "and people are on it"."""
    starts = {last: first for first, last in analysis.noun_phrases}
    return any(
        analysis.tag(i) in _FINITE
        and {analysis.word(i - 1), analysis.word(starts.get(i, i) - 1)} & _JOINING
        for i in range(index, len(analysis.tokens))
    )


def _to_noun_phrase(analysis: Analysis) -> Iterator[Edits]:
    analysis = with_first_verb(analysis)
    subject = _opening(analysis)
    if subject is None or not _is_predicate(analysis, subject, subject.last):
        return
    if has_plain_spacing(analysis, subject.last - 1, subject.last + 1):
        edit = insertion(analysis, subject.last, _pronoun(subject.parts[0]))
        yield (edit,)


def _to_clause(analysis: Analysis) -> Iterator[Edits]:
    subject = _opening(analysis)
    if subject is None or analysis.word(subject.last) != _pronoun(subject.parts[0]):
        return
    here = subject.last
    is_plain = has_plain_spacing(analysis, here - 1, here + 2)
    if is_plain and _is_predicate(analysis, subject, here + 1):
        yield (deletion(analysis, here, here + 1),)


def _opening(analysis: Analysis) -> Subject | None:
    if analysis.word(0) in ("one", "1"):
        return None
    subject = read_subject(analysis)
    if subject is None or len(subject.parts) > 1 or not subject.parts[0].is_indefinite:
        return None
    if not subject.modifiers and subject.parts[0].kind != "person":
        subject = _with_others(analysis, subject)
    is_clear = subject.parts[0].kind == "person" or all(
        other.be != subject.be for other in subject.modifiers
    )
    if subject.modifiers and is_mass(analysis.tokens[subject.last - 1].lemma):
        return None  # "boxes of fruit that includes bananas"
    return subject if is_clear else None


def _with_others(analysis: Analysis, subject: Subject) -> Subject:
    """Extend a thing by the things after it: "a pizza with burned edges"."""
    others: list[Nominal] = []
    here = subject.last
    while analysis.word(here) in _BEHIND and here + 1 in dict(analysis.noun_phrases):
        other = nominal_from(analysis, here + 1)
        if other is None or other.is_framed:
            break
        others.append(other)
        here = other.last
    return dataclasses.replace(subject, last=here, modifiers=tuple(others))


def _is_predicate(analysis: Analysis, subject: Subject, start: int) -> bool:
    words = [token.text.lower() for token in analysis.tokens[start:]]
    if len(words) < 3 or _RELATIVES & set(words) or not is_one_sentence(analysis):
        return False
    verb = start + (analysis.tag(start) == "RB")
    if analysis.word(verb + 1) in ("pictured", "seen", "shown"):
        return False  # that is what captions are for
    if not _agrees(analysis, subject, verb):
        return False
    others = finite_verbs(analysis, verb + 2)  # the next may be one, as in "has come"
    return all(analysis.word(index - 1) in _JOINING for index in others)


def _agrees(analysis: Analysis, subject: Subject, index: int) -> bool:
    word, tag = analysis.word(index), analysis.tag(index)
    if word in _BE and subject.modifiers:
        return word == subject.be
    if word in _BE or subject.parts[0].is_bare:
        return word in _BE
    if tag == "MD" or word in {"has", "have"}:
        return not subject.modifiers or tag == "MD" or (word == "has") is (subject.be == "is")
    if word == "cross" and analysis.word(index + 1) == "country":
        return False  # "two people cross country skiing"
    be = finite_forms()[word][1] if word in finite_forms() else "is" if tag == "VBZ" else ""
    if be != subject.be and be != subject.parts[0].relative:
        return False
    return may_be_verb(word)


RELATIVE_CLAUSES: Final = {
    "participle_to_relative": _add,
    "relative_to_participle": _drop,
    "clause_to_relative": _to_noun_phrase,
    "relative_to_clause": _to_clause,
}
