"""Captions without a verb: "a man riding a wave" and "a man is riding a wave"."""

import functools
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import word_at
from eqforge.generators.text.rewordings.clauses import (
    Subject,
    finite_verbs,
    is_one_sentence,
    may_have_second_subject,
    read_subject,
)
from eqforge.generators.text.rewordings.clothing import GARMENTS
from eqforge.generators.text.rewordings.participles import (
    describes,
    has_second_participle,
    may_describe,
)
from eqforge.generators.text.rewordings.places import deletion, has_plain_spacing, insertion
from eqforge.generators.text.rewordings.records import Rewording, Rule
from eqforge.generators.text.rewordings.verbs import participles

_GROUND = (
    "Quirk et al. 1985, A Comprehensive Grammar of the English Language, ch. 11: in block "
    "language, such as headlines and captions, forms of 'be' are left out."
)


def _add(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    subject = _described_subject(analysis, 0)
    if subject is not None and has_plain_spacing(analysis, subject.last - 1, subject.last + 1):
        yield Rewording(rule=rule, edits=(insertion(analysis, subject.last, subject.be),))


def _drop(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    subject = _described_subject(analysis, 1)
    if subject is None or word_at(analysis, subject.last) != subject.be:
        return
    if has_plain_spacing(analysis, subject.last - 1, subject.last + 2):
        edit = deletion(analysis, subject.last, subject.last + 1)
        yield Rewording(rule=rule, edits=(edit,))


def _described_subject(analysis: Analysis, skipped: int) -> Subject | None:
    """Returns the subject of a caption whose only verb is a participle some tokens behind it."""
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
    if len(subject.parts) > 1 and word_at(analysis, verb) in ("dressed", "wearing", "holding"):
        return None  # the second of the two alone may hold it
    return None if may_have_second_subject(analysis, subject, verb + 1) else subject


def _is_of_subject(analysis: Analysis, subject: Subject, index: int) -> bool:
    """Tells whether a participle is said of no thing before it: "a man in a hat riding"."""
    if not subject.modifiers:
        return True
    verb = participles().get(word_at(analysis, index))
    if verb is None or verb.subject not in ("living", "posture"):
        return False
    are_clothes = all(noun.head.lemma in GARMENTS for noun in subject.modifiers)
    return verb.subject == "living" or are_clothes


HEADLINES: Final = tuple(
    Rule(name=name, reverse=reverse, ground=_GROUND, find=functools.partial(find, name))
    for name, reverse, find in (
        ("headline_to_sentence", "sentence_to_headline", _add),
        ("sentence_to_headline", "headline_to_sentence", _drop),
    )
)
