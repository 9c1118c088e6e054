"""Make a hard negative of a caption, including exchanges of noun phrases or adjectives."""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from eqforge.generators.text.analysis import Analysis, Range, find_tokens
from eqforge.generators.text.contexts import suits_group
from eqforge.generators.text.coordination.conjuncts import (
    COLOURS,
    PRONOUNS,
    is_living,
    listed,
    may_color_person,
)
from eqforge.generators.text.edits import EditedText, apply_edits, exchange_phrases
from eqforge.generators.text.hard_negatives.lexicon import NegativeKind, closed_classes
from eqforge.generators.text.hard_negatives.negation import affirm, negate
from eqforge.generators.text.hard_negatives.objects import object_places
from eqforge.generators.text.hard_negatives.places import (
    COATS,
    Place,
    attribute_places,
    open_places,
    preposition_places,
    replace_words,
    verb_places,
)
from eqforge.generators.text.perturbations.synonyms import match_case, replacement_edits
from eqforge.generators.text.taggers import lemmatise
from eqforge.generators.text.words import DENIALS, word_set
from eqforge.schemas.records.scores import Rejection

# With one of these between them, exchanging two noun phrases may leave the caption true.
_SYMMETRIC = word_set("swap.symmetric") | {","}
_MUTUAL = word_set("swap.mutual")  # what the other may do as well
_FINITE = ("VB", "VBP", "VBZ", "VBD")  # taggers take "bottles sit" for the infinitive
_VERBS = (*_FINITE, "VBG", "VBN")
_QUANTIFIERS = word_set("swap.quantifiers")


def swap_objects(analysis: Analysis, rng: random.Random) -> EditedText | Rejection:
    """Exchange two neighbouring people or animals around what one does to the other.

    "a dog chasing two cats" becomes "two cats chasing a dog"; "a cat next to a dog" is rejected.
    Both must be able to do the action: nobody would write "a horse riding a man".
    """
    pairs = list(_object_pairs(analysis))
    if not pairs:
        return Rejection(reason="no_pair")
    options = [pair for pair in pairs if _changes_meaning(analysis, *pair)]
    if not options:
        return Rejection(reason="same_meaning")
    return apply_edits(analysis.text, exchange_phrases(analysis, *rng.choice(options)))


def _object_pairs(analysis: Analysis) -> Iterator[tuple[Range, Range]]:
    for left, right in itertools.pairwise(analysis.noun_phrases):
        around = {analysis.word(index) for index in (left[0] - 1, left[1], right[1])}
        tags = {analysis.tag(index) for phrase in (left, right) for index in range(*phrase)}
        if "of" in around or tags & {*PRONOUNS, "POS"}:
            continue
        if not (_is_whole(analysis, left) and _is_whole(analysis, right)):
            continue
        if not (is_living(analysis, left) and is_living(analysis, right)):
            continue
        people = listed("person_nouns.txt")
        if (analysis.head(left).lemma in people) is (analysis.head(right).lemma in people):
            yield left, right


def _is_whole(analysis: Analysis, phrase: Range) -> bool:
    """Return True unless the tagger cut off the start: "trees" of "downed trees"."""
    has_opener = analysis.tag(phrase[0]) in ("DT", "CD")
    is_plural = analysis.head(phrase).tag == "NNS"
    is_cut = analysis.tag(phrase[0] - 1) in ("JJ", "VBN", "RB", "DT", "CD")
    goes_on = analysis.tag(phrase[1]) == "VBN" and (
        analysis.tag(phrase[1] + 1) in ("NN", "NNS", "JJ")  # "a snow covered hill"
    )
    return (has_opener or is_plural) and not is_cut and not goes_on


def _changes_meaning(analysis: Analysis, left: Range, right: Range) -> bool:
    between = analysis.tokens[left[1] : right[0]]
    words = {token.text.lower() for token in between}
    heads = analysis.head(left), analysis.head(right)
    has_finite = any(token.tag in _FINITE for token in analysis.tokens)
    if heads[0].lemma == heads[1].lemma or (has_finite and heads[0].tag != heads[1].tag):
        return False
    if words & _SYMMETRIC:
        return False
    verbs = {token.lemma for token in between if token.tag in _VERBS}
    return bool(verbs - {"be"}) and verbs.isdisjoint(_MUTUAL)


def swap_attributes(analysis: Analysis, rng: random.Random) -> EditedText | Rejection:
    places = [
        (phrase, index)
        for phrase in analysis.noun_phrases
        for index in range(*phrase)
        if analysis.tokens[index].tag == "JJ" and analysis.word(index) not in _QUANTIFIERS
    ]
    pairs = [
        (index, other)
        for (phrase, index), (other_phrase, other) in itertools.combinations(places, 2)
        if phrase != other_phrase
    ]
    if not pairs:
        return Rejection(reason="no_pair")
    options = [pair for pair in pairs if _are_exchangeable(analysis, *pair)]
    if not options:
        return Rejection(reason="same_meaning")
    left, right = rng.choice(options)
    words = [
        match_case(analysis.tokens[i].text.lower(), analysis.tokens[j].text)
        for i, j in ((right, left), (left, right))
    ]
    edits = [
        edit
        for index, word in zip((left, right), words, strict=True)
        for edit in replacement_edits(analysis.tokens, index, word)
    ]
    return apply_edits(analysis.text, edits)


def _are_exchangeable(analysis: Analysis, left: int, right: int) -> bool:
    words = [analysis.tokens[index].text.lower() for index in (left, right)]
    phrases = [
        next(phrase for phrase in analysis.noun_phrases if phrase[0] <= index < phrase[1])
        for index in (left, right)
    ]
    heads = [analysis.head(phrase).lemma for phrase in phrases]
    if {"blond", "blonde"} & set(words) or any(
        may_color_person(analysis, index) for index in (left, right)
    ):
        return False  # "the blonde woman in the red shirt"
    are_animals = {suits_group(analysis, index, "coat color") for index in (left, right)}
    if len(are_animals) > 1 and not COATS.issuperset(words) and not COLOURS.isdisjoint(words):
        return False  # "a green horse near a brown bench"
    everywhere = analysis.words((0, len(analysis.tokens)))
    if heads[0] == heads[1] or any(everywhere.count(word) > 1 for word in words):
        return False  # "a black cat and a white cat in a white nest"
    classes = closed_classes("attribute")
    shared = set(classes.groups.get(words[0], ())) & set(classes.groups.get(words[1], ()))
    fits = any(
        all(suits_group(analysis, index, group) for index in (left, right)) for group in shared
    )
    return fits and not classes.are_synonyms(*words)


_REPLACED: Final[Mapping[NegativeKind, tuple[Callable[[Analysis], Iterator[Place]], str]]] = {
    "replace_object": (object_places, "no_object"),
    "replace_attribute": (attribute_places, "no_attribute"),
    "replace_relation": (
        lambda caption: itertools.chain(preposition_places(caption), verb_places(caption)),
        "no_relation",
    ),
}

_CHANGED: Final[
    Mapping[NegativeKind, Callable[[Analysis, random.Random], EditedText | Rejection]]
] = {"swap_object": swap_objects, "swap_attribute": swap_attributes, "negation": negate}

_POSSIBLE: Final = frozenset(("may", "might"))
"""Modals that are compatible with their own negation: what may be may not be."""


def make_hard_negative(
    analysis: Analysis, kind: NegativeKind, rng: random.Random, known: frozenset[str] = frozenset()
) -> EditedText | Rejection:
    """Return a hard negative of one kind, or why the caption has none.

    Words of the image's other captions (`known`) are never put in: they are likely in the image.
    """
    if reason := unclear_reason(analysis):
        is_affirmed = kind == "negation" and reason == "already_negated"
        result = affirm(analysis) if is_affirmed else Rejection(reason=reason)
    elif kind in _REPLACED:
        places_of, none = _REPLACED[kind]
        places = list(places_of(analysis))
        if options := open_places(analysis, places, known):
            place, words = rng.choice(options)
            result = replace_words(analysis, place, rng.choice(words))
        else:
            result = Rejection(reason="all_known" if places else none)
    else:
        result = _CHANGED[kind](analysis, rng)
    return _in_its_capitals(analysis, result) if isinstance(result, EditedText) else result


def find_hard_negatives(
    analysis: Analysis, kind: NegativeKind, rng: random.Random, known: frozenset[str] = frozenset()
) -> Iterator[EditedText]:
    """Yield every replacement of a kind, or one random exchange or negation."""
    if kind not in _REPLACED:
        if isinstance(edited := make_hard_negative(analysis, kind, rng, known), EditedText):
            yield edited
    elif unclear_reason(analysis) is None:
        places_of, _ = _REPLACED[kind]
        for place, words in open_places(analysis, places_of(analysis), known):
            for word in words:
                yield _in_its_capitals(analysis, replace_words(analysis, place, word))


def unclear_reason(analysis: Analysis) -> str | None:
    """Return why the changed part of a caption may be true; None if nothing suggests that.

    "No dog", "lacks windows" and "might be a dog" may be true of an image without dogs and windows.
    "only_possible" comes before "already_negated", which can be undone.
    """
    if analysis.text.rstrip().endswith("?"):
        return "question"
    if any(token.tag == "MD" and token.text.lower() in _POSSIBLE for token in analysis.tokens):
        return "only_possible"
    is_denial = not DENIALS.isdisjoint(token.text.lower() for token in analysis.tokens)
    return "already_negated" if is_denial else None


def _in_its_capitals(analysis: Analysis, edited: EditedText) -> EditedText:
    return replace(edited, text=edited.text.upper()) if analysis.text.isupper() else edited


def known_words(captions: Iterable[str]) -> frozenset[str]:
    words = {match[0].lower() for caption in captions for match in find_tokens(caption)}
    return frozenset(words | {lemmatise(word, "NNS") for word in words})
