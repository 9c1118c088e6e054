"""Captions in the style of headlines, without "be" or the first article.

"A man riding a wave" and "a man is riding a wave", or "a man rides a wave"; "cat on a bed" and "a
cat on a bed". No article is left out, since that is no style for all captions.
"""

import dataclasses
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis, Range
from eqforge.generators.text.articles import article_for
from eqforge.generators.text.caption_verbs import CaptionVerb, finite_forms, participles
from eqforge.generators.text.coordination.conjuncts import is_mass
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
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
    describes,
    fits_behind,
    has_second_participle,
    may_describe,
)
from eqforge.generators.text.rewordings.nominals import names_living
from eqforge.generators.text.rewordings.records import (
    Edits,
    Rule,
    deletion,
    has_plain_spacing,
    insertion,
    replacement,
)
from eqforge.generators.text.words import word_set

_GROUND = (
    "Quirk et al. 1985, A Comprehensive Grammar of the English Language, ch. 11: in block "
    "language, such as headlines and captions, forms of 'be' and articles are left out."
)
_CLAUSE = (
    "Quirk et al. 1985, A Comprehensive Grammar of the English Language, ch. 17: participles "
    "behind a noun stand for relative clauses in the simple present, too."
)
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
    """Return the subject of a caption whose only verb is a participle some tokens behind it."""
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
    """Say whether a participle is said of no thing before it: "a man in a hat riding"."""
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
    here = _put(analysis, verbs[0], verb.participle, "VBG")
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


def _put(analysis: Analysis, index: int, word: str, tag: str) -> Analysis:
    token = dataclasses.replace(analysis.tokens[index], text=word, tag=tag)
    tokens = (*analysis.tokens[:index], token, *analysis.tokens[index + 1 :])
    return dataclasses.replace(analysis, tokens=tokens)


def _is_said_of_subject(analysis: Analysis, index: int, verb: CaptionVerb, be: str) -> bool:
    """Say whether a participle, and nothing else, is said of the subject of a whole caption."""
    subject = read_subject(analysis)
    if subject is None or subject.last != index or subject.be != be:
        return False
    if not all(part.is_indefinite for part in subject.parts) or len(subject.parts) > 1:
        return False
    if subject.parts[0].is_bare and be == "are" and not _has_article(analysis, index):
        return False
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
    rest = range(index, len(analysis.tokens))
    if any(analysis.word(i) in ("another", "one") for i in rest):
        return False  # "one person standing and another bending over"
    is_of_subject = _is_of_subject(analysis, subject, index)
    return is_of_subject and not may_have_second_subject(analysis, subject, index + 1)


def _has_article(analysis: Analysis, start: int) -> bool:
    """Say whether a thing is singled out: "giraffes eat leaves" may say so of all there are."""
    return any(analysis.word(i) in _ARTICLES for i in range(start, len(analysis.tokens)))


def _add_article(analysis: Analysis) -> Iterator[Edits]:
    if not analysis.noun_phrases or analysis.noun_phrases[0][0] != 0 or len(analysis.tokens) < 2:
        return
    last = analysis.noun_phrases[0][1]
    first, article = analysis.tokens[0], article_for(analysis.word(0))
    if article is None or not _lacks_article(analysis, last):
        return
    if any(_is_bare_thing(analysis, phrase) for phrase in analysis.noun_phrases[1:]):
        return  # "man cradling dog"
    if has_plain_spacing(analysis, 0, min(last + 1, len(analysis.tokens))):
        is_capital = first.text[0].isupper()
        words = f"{article.capitalize() if is_capital else article} {first.text[0].lower()}"
        edit = Edit(start=first.start, end=first.start + 1, replacement=words)
        yield (edit,)


def _is_bare_thing(analysis: Analysis, phrase: Range) -> bool:
    """Say whether a noun phrase of a single thing has no article either."""
    head, opener = analysis.tokens[phrase[1] - 1], analysis.tag(phrase[0])
    if opener not in ("JJ", "NN") or head.tag != "NN" or is_mass(head):
        return False
    return names_living(head)


def _lacks_article(analysis: Analysis, last: int) -> bool:
    """Say whether the noun phrase that opens a caption is a single thing without an article."""
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
    return (is_thing or names_living(head)) and not is_mass(head)


HEADLINES: Final = tuple(
    Rule(name=name, reverse=reverse, ground=ground, find=find)
    for name, reverse, ground, find in (
        ("headline_to_sentence", "sentence_to_headline", _GROUND, _add),
        ("sentence_to_headline", "headline_to_sentence", _GROUND, _drop),
        ("present_to_participle", "participle_to_present", _CLAUSE, _to_participle),
        ("participle_to_present", "present_to_participle", _CLAUSE, _to_present),
        ("add_article", None, _GROUND, _add_article),
    )
)
