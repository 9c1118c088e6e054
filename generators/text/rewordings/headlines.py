"""Captions in the style of headlines, without "be" or the first article.

"A man riding a wave" and "a man is riding a wave"; "cat on a bed" and "a cat on a bed". No article
is left out, since that is no style for all captions.
"""

import functools
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.articles import article_for
from eqforge.generators.text.caption_verbs import finite_forms, participles
from eqforge.generators.text.coordination.conjuncts import is_mass, tag_at, word_at
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.rewordings.clauses import (
    Subject,
    finite_verbs,
    is_one_sentence,
    may_have_second_subject,
    read_subject,
)
from eqforge.generators.text.rewordings.clothing import GARMENTS
from eqforge.generators.text.rewordings.nominals import names_living
from eqforge.generators.text.rewordings.participles import (
    describes,
    has_second_participle,
    may_describe,
)
from eqforge.generators.text.rewordings.places import deletion, has_plain_spacing, insertion
from eqforge.generators.text.rewordings.records import Rewording, Rule

_GROUND = (
    "Quirk et al. 1985, A Comprehensive Grammar of the English Language, ch. 11: in block "
    "language, such as headlines and captions, forms of 'be' and articles are left out."
)
_NOT_COUNTED = frozenset(("dish", "drink", "food", "fruit", "sweet", "vegetable"))
_PRONOUNS = ("anyone", "everybody", "everyone", "somebody", "someone", "something")
_AMOUNTS = frozenset(("couple", "number", "pair", "row", "set"))


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


def _add_article(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    if not analysis.noun_phrases or analysis.noun_phrases[0][0] != 0 or len(analysis.tokens) < 2:
        return
    last = analysis.noun_phrases[0][1]
    first, article = analysis.tokens[0], article_for(word_at(analysis, 0))
    if article is None or not _lacks_article(analysis, last):
        return
    if has_plain_spacing(analysis, 0, min(last + 1, len(analysis.tokens))):
        is_capital = first.text[0].isupper()
        words = f"{article.capitalize() if is_capital else article} {first.text[0].lower()}"
        edit = Edit(start=first.start, end=first.start + 1, replacement=words)
        yield Rewording(rule=rule, edits=(edit,))


def _lacks_article(analysis: Analysis, last: int) -> bool:
    """Tells whether the noun phrase that opens a caption is a single thing without an article."""
    tags = [tag_at(analysis, index) for index in range(last)]
    head = analysis.tokens[last - 1]
    if not all(tag in ("NN", "JJ", "VBN", "VBG") for tag in tags) or tags[-1] != "NN":
        return False
    if head.text.lower() in (*finite_forms(), *_PRONOUNS, "glass"):
        return False
    if word_at(analysis, last) == "are" or word_at(analysis, last) in ("and", ",", "&", "or"):
        return False
    if word_at(analysis, last) == "of" and head.lemma in _AMOUNTS:
        return True
    groups = set(closed_classes("object").groups.get(head.lemma, ()))
    is_thing = bool(groups) and not groups & _NOT_COUNTED
    return (is_thing or names_living(head)) and not is_mass(head)


HEADLINES: Final = tuple(
    Rule(name=name, reverse=reverse, ground=_GROUND, find=functools.partial(find, name))
    for name, reverse, find in (
        ("headline_to_sentence", "sentence_to_headline", _add),
        ("sentence_to_headline", "headline_to_sentence", _drop),
        ("add_article", None, _add_article),
    )
)
