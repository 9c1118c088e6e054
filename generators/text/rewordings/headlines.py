"""Reword verb forms and headline style.

Headlines lack "be" or the first article: "a man riding a wave" and "a man is riding a wave", or "a
man rides a wave"; "cat on a bed" and "a cat on a bed". No rule drops an article, since not all
captions read well without one.

Simple present and progressive, "a man rides a horse" and "a man is riding a horse", say the same of
an image, for verbs of activity. Left out are "has", "looks like" and "contains", "stands" of a
tower, and bare plurals, which may be generic ("giraffes eat leaves").

Source: Quirk et al. 1985, A Comprehensive Grammar of the English Language, ch. 4 (the present and
the progressive of captions), 11 (block language) and 17 (participles behind a noun).
"""

import dataclasses
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_words import CaptionVerb, finite_forms, participles
from eqforge.generators.text.coordination.conjuncts import is_mass
from eqforge.generators.text.edits import Edit, article_for
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.perturbations.synonyms import sentence_capitals
from eqforge.generators.text.rewordings.clauses import (
    Subject,
    finite_verbs,
    is_one_sentence,
    joins_verb,
    may_have_second_subject,
    read_subject,
    with_first_verb,
)
from eqforge.generators.text.rewordings.introduced import (
    can_do,
    describes,
    fits_behind,
    has_second_participle,
    may_describe,
)
from eqforge.generators.text.rewordings.nominals import names_living
from eqforge.generators.text.rewordings.records import (
    Edits,
    deletion,
    has_plain_spacing,
    insertion,
    replacement,
)
from eqforge.generators.text.words import word_set

_GARMENTS = word_set("headlines.garments")
_ARTICLES = frozenset(("a", "an", "the"))
_NOT_COUNTED = frozenset(("dish", "drink", "food", "fruit", "sweet", "vegetable"))
_COUNTED = word_set("headlines.counted")
_PRONOUNS = ("anyone", "everybody", "everyone", "somebody", "someone", "something")
_AMOUNTS = word_set("headlines.amounts")


def _add(analysis: Analysis) -> Iterator[Edits]:
    subject = _described_subject(analysis, 0)
    if subject is not None and has_plain_spacing(analysis, subject.last - 1, subject.last + 1):
        yield (insertion(analysis, subject.last, subject.be),)


def _drop(analysis: Analysis) -> Iterator[Edits]:
    subject = _described_subject(analysis, 1)
    if subject is None or analysis.word(subject.last) != subject.be:
        return
    if has_plain_spacing(analysis, subject.last - 1, subject.last + 2):
        edit = deletion(analysis, subject.last, subject.last + 1)
        yield (edit,)


def _described_subject(analysis: Analysis, skipped: int) -> Subject | None:
    if not any(may_describe(token.text.lower()) for token in analysis.tokens):
        return None
    subject = read_subject(analysis)
    if subject is None or not all(part.is_indefinite for part in subject.parts):
        return None
    verb = subject.last + skipped
    if not all(describes(analysis, verb, part) for part in subject.parts):
        return None
    if has_second_participle(analysis, verb) or not _is_of_subject(analysis, subject, verb):
        return None
    if finite_verbs(analysis, verb) or not is_one_sentence(analysis):
        return None
    if len(subject.parts) > 1 and analysis.word(verb) in ("dressed", "wearing", "holding"):
        return None  # the second of the two alone may hold it
    return None if may_have_second_subject(analysis, subject, verb + 1) else subject


def _is_of_subject(analysis: Analysis, subject: Subject, index: int) -> bool:
    """Return True if a participle describes nothing before it: "a man in a hat riding"."""
    if not subject.modifiers:
        return True
    verb = participles().get(analysis.word(index))
    if verb is None or verb.subject not in ("living", "posture"):
        return False
    are_clothes = all(noun.head.lemma in _GARMENTS for noun in subject.modifiers)
    return verb.subject == "living" or are_clothes


def _to_participle(analysis: Analysis) -> Iterator[Edits]:
    analysis = with_first_verb(analysis)
    verbs = finite_verbs(analysis, 0)
    verb, be = finite_forms().get(analysis.word(verbs[0]), (None, "")) if verbs else (None, "")
    if verb is None or len(verbs) > 1 or not has_plain_spacing(analysis, verbs[0], verbs[0] + 1):
        return
    tokens = list(analysis.tokens)
    tokens[verbs[0]] = dataclasses.replace(tokens[verbs[0]], text=verb.participle, tag="VBG")
    here = dataclasses.replace(analysis, tokens=tuple(tokens))
    if _is_said_of_subject(here, verbs[0], verb, be):
        edit = replacement(analysis, verbs[0], verbs[0] + 1, verb.participle)
        yield (edit,)


def _to_present(analysis: Analysis) -> Iterator[Edits]:
    subject = read_subject(analysis)
    if subject is None or subject.parts[0].is_bare or finite_verbs(analysis, 0):
        return
    if subject.be == "are" and analysis.word(0) in ("a", "an"):
        return  # "a herd of cattle walk"
    index = subject.last
    verb = participles().get(analysis.word(index))
    if verb is None or analysis.tag(index) != "VBG":
        return
    if not has_plain_spacing(analysis, index, index + 1):
        return
    if _is_said_of_subject(analysis, index, verb, subject.be):
        form = verb.third if subject.be == "is" else verb.lemma
        yield (replacement(analysis, index, index + 1, form),)


def _is_said_of_subject(analysis: Analysis, index: int, verb: CaptionVerb, be: str) -> bool:
    subject = read_subject(analysis)
    if subject is None or subject.last != index or subject.be != be:
        return False
    if not all(part.is_indefinite for part in subject.parts) or len(subject.parts) > 1:
        return False
    rest = analysis.words((index, len(analysis.tokens)))
    if subject.parts[0].is_bare and be == "are" and _ARTICLES.isdisjoint(rest):
        return False  # "giraffes eat leaves" may say so of all there are
    if not is_one_sentence(analysis):
        return False
    if not (verb.is_momentary and fits_behind(analysis, index, verb)):
        return False
    if verb.lemma == "lay" and be == "are":
        return False  # "lay" may be the past of "lie"
    if verb.subject == "posture" and analysis.word(index + 1) in ("down", "up"):
        return False  # "lying down" is a state, "lies down" is a movement
    if has_second_participle(analysis, index) or joins_verb(analysis, index + 1):
        return False
    if {"another", "one"} & set(rest):
        return False  # "one person standing and another bending over"
    is_of_subject = _is_of_subject(analysis, subject, index)
    return is_of_subject and not may_have_second_subject(analysis, subject, index + 1)


def _add_article(analysis: Analysis) -> Iterator[Edits]:
    if not analysis.noun_phrases or analysis.noun_phrases[0][0] != 0 or len(analysis.tokens) < 2:
        return
    last = analysis.noun_phrases[0][1]
    first, article = analysis.tokens[0], article_for(analysis.word(0))
    if article is None or not _lacks_article(analysis, last) or analysis.tag(last) == "CD":
        return  # "runner 3618"
    for start, end in analysis.noun_phrases[1:]:
        head = analysis.tokens[end - 1]
        is_bare = analysis.tag(start) in ("JJ", "NN") and head.tag == "NN"
        if is_bare and not is_mass(head.lemma) and names_living(head):
            return  # "man cradling dog"
    if has_plain_spacing(analysis, 0, min(last + 1, len(analysis.tokens))):
        is_capital = first.text[0].isupper()
        is_name = sentence_capitals(analysis).get(first.start, False)
        letter = first.text[0] if is_name else first.text[0].lower()
        words = f"{article.capitalize() if is_capital else article} {letter}"
        edit = Edit(start=first.start, end=first.start + 1, replacement=words)
        yield (edit,)


def _lacks_article(analysis: Analysis, last: int) -> bool:
    tags = [analysis.tag(index) for index in range(last)]
    head = analysis.tokens[last - 1]
    if not all(tag in ("NN", "JJ", "VBN", "VBG") for tag in tags) or tags[-1] != "NN":
        return False
    if head.text.lower() in (
        *finite_forms(),
        *_PRONOUNS,
        "deer",
        "fish",
        "glass",
        "moose",
        "sheep",
    ):
        return False
    if analysis.word(last) == "are" or analysis.word(last) in ("and", ",", "&", "or"):
        return False
    if analysis.word(last) == "of" and head.lemma in _AMOUNTS:
        return True
    groups = set(closed_classes("object").groups.get(head.lemma, ()))
    is_thing = (bool(groups) and not groups & _NOT_COUNTED) or head.lemma in _COUNTED
    return (is_thing or names_living(head)) and not is_mass(head.lemma)


HEADLINES: Final = {
    "headline_to_sentence": _add,
    "sentence_to_headline": _drop,
    "present_to_participle": _to_participle,
    "participle_to_present": _to_present,
    "add_article": _add_article,
}


_EITHER = frozenset(("bunch", "crowd", "flock", "group", "herd", "pair"))
"""Heads after which both "is" and "are" are usual."""


def _to_progressive(analysis: Analysis) -> Iterator[Edits]:
    analysis = with_first_verb(analysis)
    subject, index = _subject_and_verb(analysis)
    if subject is None:
        return
    verb, be = finite_forms().get(analysis.word(index), (None, None))
    if verb is None or be is None or not _fits(analysis, subject, verb, be, index):
        return
    if joins_verb(analysis, index + 1):
        return
    if has_plain_spacing(analysis, index, index + 1):
        edit = replacement(analysis, index, index + 1, f"{be} {verb.participle}")
        yield (edit,)


def _to_simple(analysis: Analysis) -> Iterator[Edits]:
    subject, index = _subject_and_verb(analysis)
    be = analysis.word(index)
    verb = participles().get(analysis.word(index + 1))
    if subject is None or verb is None or be not in ("is", "are"):
        return
    if not _fits(analysis, subject, verb, be, index + 1) or joins_verb(analysis, index + 2):
        return
    if has_plain_spacing(analysis, index, index + 2):
        form = verb.third if be == "is" else verb.lemma
        yield (replacement(analysis, index, index + 2, form),)


def _subject_and_verb(analysis: Analysis) -> tuple[Subject | None, int]:
    verbs = finite_verbs(analysis, 0)
    if len(verbs) != 1 or not is_one_sentence(analysis):
        return None, -1
    subject = read_subject(analysis)
    if subject is None or any(part.is_bare for part in subject.parts):
        return None, -1
    return (subject, verbs[0]) if subject.last == verbs[0] else (None, -1)


def _fits(analysis: Analysis, subject: Subject, verb: CaptionVerb, be: str, index: int) -> bool:
    opener = {token.lemma for token in analysis.tokens[: subject.last]}
    if be != subject.be and not opener & _EITHER:
        return False
    if verb.lemma == "lay" and be == "are":
        return False  # "lay" may be the past of "lie"
    if verb.subject == "posture" and analysis.word(index + 1) in ("down", "up"):
        return False  # "is lying down" is a state, "lies down" is a movement
    groups = closed_classes("object").groups
    things = {group for part in subject.parts for group in groups.get(part.head.lemma, ())}
    if verb.lemma == "stand" and things & {"appliance", "seat or bed", "table"}:
        return False  # "a counter is standing in a kitchen"
    can_all = all(can_do(verb, part) for part in subject.parts)
    return verb.is_momentary and can_all and fits_behind(analysis, index, verb)


ASPECT: Final = {
    "simple_to_progressive": _to_progressive,
    "progressive_to_simple": _to_simple,
}
