"""SWAP negatives: exchanges two noun phrases or two adjectives so that a caption becomes false."""

import itertools
import random
from collections.abc import Iterator

from eqforge.generators.text.analysis import Analysis, Range
from eqforge.generators.text.coordination.conjuncts import PRONOUNS, is_living
from eqforge.generators.text.edits import apply_edits, exchange_phrases
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.hard_negatives.records import HardNegative
from eqforge.generators.text.perturbations.synonyms import match_case, replacement_edits
from eqforge.generators.text.words import word_set
from eqforge.schemas.records.scores import Rejection

# With one of these between them, exchanging two noun phrases may leave the caption true.
_SYMMETRIC = word_set("swap.symmetric") | {","}
_ASYMMETRIC = word_set("swap.asymmetric")
_MUTUAL = word_set("swap.mutual")  # what the other may do as well
_FINITE = ("VB", "VBP", "VBZ", "VBD")  # taggers take "bottles sit" for the infinitive
_VERBS = (*_FINITE, "VBG", "VBN")
_PLACES = word_set("swap.places")
_PORTABLE = word_set("swap.portable")
_QUANTIFIERS = word_set("swap.quantifiers")


def swap_objects(analysis: Analysis, rng: random.Random) -> HardNegative | Rejection:
    """Exchange two neighbouring noun phrases whose relation has a direction.

    "a dog chasing two cats" becomes "two cats chasing a dog", and "a cup on a book" "a book on a
    cup"; "a cat next to a dog" is refused. Living beings are exchanged around a verb, things around
    a preposition: "the air jumping in a man" would be no hard negative.
    """
    pairs = list(_object_pairs(analysis))
    if not pairs:
        return Rejection(reason="no_pair")
    options = [pair for pair in pairs if _changes_meaning(analysis, *pair)]
    if not options:
        return Rejection(reason="same_meaning")
    edited = apply_edits(analysis.text, exchange_phrases(analysis, *rng.choice(options)))
    return HardNegative(kind="swap_object", edited=edited)


def _object_pairs(analysis: Analysis) -> Iterator[tuple[Range, Range]]:
    """Yield neighbouring noun phrases that both name living beings, or both name things."""
    for left, right in itertools.pairwise(analysis.noun_phrases):
        around = {analysis.word(index) for index in (left[0] - 1, left[1], right[1])}
        tags = {analysis.tag(index) for phrase in (left, right) for index in range(*phrase)}
        if "of" in around or tags & {*PRONOUNS, "POS"}:
            continue
        if not (_is_whole(analysis, left) and _is_whole(analysis, right)):
            continue
        living = [is_living(analysis, phrase) for phrase in (left, right)]
        if all(living) or (not any(living) and all(_groups(analysis, p) for p in (left, right))):
            yield left, right


def _is_whole(analysis: Analysis, phrase: Range) -> bool:
    """Say whether a noun phrase begins where it seems to: not "trees" of "downed trees"."""
    has_opener = analysis.tag(phrase[0]) in ("DT", "CD")
    is_plural = analysis.head(phrase).tag == "NNS"
    is_cut = analysis.tag(phrase[0] - 1) in ("JJ", "VBN", "RB", "DT", "CD")
    goes_on = analysis.tag(phrase[1]) == "VBN" and (
        analysis.tag(phrase[1] + 1) in ("NN", "NNS", "JJ")  # "a snow covered hill"
    )
    return (has_opener or is_plural) and not is_cut and not goes_on


def _is_place(analysis: Analysis, phrase: Range) -> bool:
    groups = closed_classes("object").groups.get(analysis.head(phrase).lemma, ())
    return not _PLACES.isdisjoint(groups)


def _groups(analysis: Analysis, phrase: Range) -> frozenset[str]:
    named, head = closed_classes("object").groups, analysis.head(phrase)
    return frozenset(named.get(head.lemma, ())) | frozenset(named.get(head.text.lower(), ()))


def _may_carry_each_other(left: frozenset[str], right: frozenset[str]) -> bool:
    """Say whether either thing may be on or in the other: no table stands on a laptop."""
    return bool(left & right or (left & _PORTABLE and right & _PORTABLE))


def _changes_meaning(analysis: Analysis, left: Range, right: Range) -> bool:
    """Say whether exchanging two noun phrases is grammatical and changes the meaning."""
    between = analysis.tokens[left[1] : right[0]]
    words = {token.text.lower() for token in between}
    heads = analysis.head(left), analysis.head(right)
    if _is_place(analysis, left) or _is_place(analysis, right):
        return False  # "in sand on a beach", "the ocean is floating in a boat"
    has_finite = any(token.tag in _FINITE for token in analysis.tokens)
    if heads[0].lemma == heads[1].lemma or (has_finite and heads[0].tag != heads[1].tag):
        return False
    if words & _SYMMETRIC:
        return False
    if is_living(analysis, left):
        verbs = {token.lemma for token in between if token.tag in _VERBS}
        return bool(verbs - {"be"}) and verbs.isdisjoint(_MUTUAL)
    carries = _may_carry_each_other(_groups(analysis, left), _groups(analysis, right))
    return bool(words & _ASYMMETRIC) and ("behind" in words or carries)


def swap_attributes(analysis: Analysis, rng: random.Random) -> HardNegative | Rejection:
    """Exchange two adjectives of one kind that stand before different nouns.

    "a black cat and a white dog" becomes "a white cat and a black dog": colours are exchanged with
    colours, and sizes with sizes.
    """
    pairs = list(_attribute_pairs(analysis))
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
    return HardNegative(kind="swap_attribute", edited=apply_edits(analysis.text, edits))


def _attribute_pairs(analysis: Analysis) -> Iterator[tuple[int, int]]:
    """Yield the pairs of adjectives in different noun phrases, as token indices."""
    places = [
        (phrase, index)
        for phrase in analysis.noun_phrases
        for index in range(*phrase)
        if analysis.tokens[index].tag == "JJ" and analysis.word(index) not in _QUANTIFIERS
    ]
    for (phrase, index), (other_phrase, other) in itertools.combinations(places, 2):
        if phrase != other_phrase:
            yield index, other


def _are_exchangeable(analysis: Analysis, left: int, right: int) -> bool:
    words = [analysis.tokens[index].text.lower() for index in (left, right)]
    phrases = [
        next(phrase for phrase in analysis.noun_phrases if phrase[0] <= index < phrase[1])
        for index in (left, right)
    ]
    heads = [analysis.head(phrase).lemma for phrase in phrases]
    in_phrase = [set(analysis.words(phrase)) for phrase in phrases]
    if {"blond", "blonde"} & set(words):
        return False  # "the blonde woman in the red shirt"
    if heads[0] == heads[1] or words[0] in in_phrase[1] or words[1] in in_phrase[0]:
        return False
    classes = closed_classes("attribute")
    shared = set(classes.groups.get(words[0], ())) & set(classes.groups.get(words[1], ()))
    return bool(shared) and not classes.are_synonyms(*words)
