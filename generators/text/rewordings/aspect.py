"""Simple present and progressive: "a man rides a horse" and "a man is riding a horse".

What a picture shows goes on at its moment: of a verb of activity both forms say that. The verbs are
those of the table that say the same of one moment; "has", "looks like" and "contains" are not, nor
is "stands" of a tower, and bare plurals may speak of all there are ("giraffes eat leaves").
"""

from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_verbs import CaptionVerb, finite_forms, participles
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.rewordings.clauses import (
    Subject,
    finite_verbs,
    is_one_sentence,
    joins_verb,
    read_subject,
    with_first_verb,
)
from eqforge.generators.text.rewordings.introduced import can_do, fits_behind
from eqforge.generators.text.rewordings.nominals import Nominal
from eqforge.generators.text.rewordings.records import (
    Edits,
    Rule,
    has_plain_spacing,
    replacement,
)

_GROUND = (
    "Quirk et al. 1985, A Comprehensive Grammar of the English Language, ch. 4: the "
    "instantaneous present of captions and commentaries, and the progressive, tell of an event in "
    "progress at the moment."
)
_EITHER = frozenset(("bunch", "crowd", "flock", "group", "herd", "pair"))
"""Heads behind which both "is" and "are" are usual."""
_FURNITURE = frozenset(("appliance", "seat or bed", "table"))


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
    """Return a caption's subject and its only finite verb, which follows it."""
    verbs = finite_verbs(analysis, 0)
    if len(verbs) != 1 or not is_one_sentence(analysis):
        return None, -1
    subject = read_subject(analysis)
    if subject is None or _is_generic(analysis, subject):
        return None, -1
    return (subject, verbs[0]) if subject.last == verbs[0] else (None, -1)


def _is_generic(analysis: Analysis, subject: Subject) -> bool:
    return any(part.is_bare for part in subject.parts)


def _fits(analysis: Analysis, subject: Subject, verb: CaptionVerb, be: str, index: int) -> bool:
    """Say whether a verb form at a token says of a subject what it does at the moment."""
    opener = {token.lemma for token in analysis.tokens[: subject.last]}
    if be != subject.be and not opener & _EITHER:
        return False
    if verb.lemma == "lay" and be == "are":
        return False  # "lay" may be the past of "lie"
    if verb.subject == "posture" and analysis.word(index + 1) in ("down", "up"):
        return False  # "is lying down" is a state, "lies down" is a movement
    if verb.lemma == "stand" and any(_is_furniture(part) for part in subject.parts):
        return False  # "a counter is standing in a kitchen"
    can_all = all(can_do(verb, part) for part in subject.parts)
    return verb.is_momentary and can_all and fits_behind(analysis, index, verb)


def _is_furniture(noun: Nominal) -> bool:
    return bool(_FURNITURE & set(closed_classes("object").groups.get(noun.head.lemma, ())))


ASPECT: Final = tuple(
    Rule(name=name, reverse=reverse, ground=_GROUND, find=find)
    for name, reverse, find in (
        ("simple_to_progressive", "progressive_to_simple", _to_progressive),
        ("progressive_to_simple", "simple_to_progressive", _to_simple),
    )
)
