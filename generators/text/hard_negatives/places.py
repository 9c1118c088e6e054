"""Find replaceable adjectives, numbers, prepositions and verbs of a caption."""

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.contexts import fitting_words, suits_group
from eqforge.generators.text.coordination.conjuncts import (
    ADJECTIVES,
    COLOURS,
    is_fixed_pair,
    may_color_person,
)
from eqforge.generators.text.edits import Edit, EditedText, apply_edits
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.parts import inflect_word
from eqforge.generators.text.perturbations.synonyms import article_edits, cased
from eqforge.generators.text.taggers import lemmatise
from eqforge.generators.text.words import is_in_fixed_expression, word_set


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Tokens of a caption and their possible replacements, inflected and in lower case."""

    first: int
    last: int
    words: tuple[str, ...]


def open_places(
    analysis: Analysis, places: Iterable[Place], known: frozenset[str]
) -> list[tuple[Place, list[str]]]:
    present_words = known.union(*((token.text.lower(), token.lemma) for token in analysis.tokens))

    def is_new(phrase: str) -> bool:
        return present_words.isdisjoint(
            form for word in phrase.split() for form in (word, lemmatise(word, "NNS"))
        )

    return [
        (place, words)
        for place in sorted(places, key=lambda place: place.first)
        if (words := [phrase for phrase in place.words if is_new(phrase)])
    ]


def replace_words(analysis: Analysis, place: Place, word: str) -> EditedText:
    tokens = analysis.tokens
    first, last = tokens[place.first], tokens[place.last - 1]
    edit = Edit(start=first.start, end=last.end, replacement=cased(word, tokens, place.first))
    edits = (*article_edits(tokens, place.first, word), edit)
    return apply_edits(analysis.text, edits)


_UNCOLOURED = ("black", "and", "white")
_OF_TWO = frozenset(("both", "each", "either", "one", "other"))
"""Words that count things or distinguish them: "one sits and the other stands"."""
GENDER = frozenset(("he", "her", "hers", "herself", "him", "himself", "his", "she"))
COATS = word_set("places.coats")  # colors of animals
_PICTURES = frozenset(("image", "images", "photo", "photograph", "photos", "picture", "pictures"))


def attribute_places(analysis: Analysis) -> Iterator[Place]:
    """Yield adjectives and numbers with replacements; "black and white" photos become "color"."""
    for index, token in enumerate(analysis.tokens):
        end = index + len(_UNCOLOURED)
        if analysis.words((index, end)) == _UNCOLOURED and analysis.word(end) in _PICTURES:
            yield Place(first=index, last=end, words=("color",))
            continue
        word = token.text.lower()
        if word in ("female", "male") and any(t.text.lower() in GENDER for t in analysis.tokens):
            continue  # "a male child wrinkles his brow"
        is_number = False
        phrase = analysis.phrase_around(index) if token.tag == "CD" else None
        if phrase is not None and phrase[1] > index + 1:  # it counts "two big dogs"
            behind = analysis.words((index + 1, len(analysis.tokens)))
            is_plain = "of" not in analysis.words(phrase) and _OF_TWO.isdisjoint(behind)
            is_number = is_plain and analysis.tag(phrase[1] - 1) == "NNS"
        if not (token.tag in ADJECTIVES or is_number) or may_color_person(analysis, index):
            continue
        if analysis.word(index - 1) in ("off", "other", "some"):
            continue  # "off white"; a tower has "other", or "some", short buildings beside it
        if is_fixed_pair(analysis.text, token.start) or is_in_fixed_expression(
            analysis.text, token.start, token.end
        ):
            continue
        span = (index, index + 1)
        found = fitting_words(analysis, span, "attribute", word) or fitting_words(
            analysis, span, "attribute", token.lemma
        )
        if word in COLOURS and suits_group(analysis, index, "coat color"):
            found = tuple(each for each in found if each in COATS)
        forms = [w if token.tag in ("JJ", "CD") else inflect_word(w, token.tag) for w in found]
        if words := tuple(form for form in forms if form is not None):
            yield Place(first=index, last=index + 1, words=words)


_VERB_TAGS = ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ")
# Verbs after which "on" and "in" are places: not "waiting on a bus".
_PLACED = word_set("places.placed")
_BESIDE = word_set("places.beside")  # the same, with an object between
_OF_BODY = frozenset(("back", "belly", "feet", "head", "knees", "legs", "side", "stomach"))
_BEFORE = frozenset(("down", "just", "out", "over", "right", "up"))
_PARTICLES = word_set("places.particles")
_NOT_WITH = {  # nobody sings to an umpire, or lands in the sky; surfers stand and crouch at once
    "fly": frozenset(("air", "sky", "skies")),
    "graze": frozenset(("from", "on")),
    "jump": frozenset(("air",)),
    "leap": frozenset(("air",)),
    "pour": frozenset(("into",)),
    "sit": frozenset(("chair", "chairs", "cross", "cross-legged")),
    "sleep": frozenset(("against",)),
    "stand": frozenset(("board", "boards", "surfboard", "surfboards", "wave", "waves")),
    "surf": frozenset(("wave", "waves")),
    "swing": frozenset(("at",)),
    "talk": frozenset(("to", "with")),
    "walk": frozenset(("by",)),
}
_POSTURES = frozenset(("crouch", "kneel", "lay", "lie", "sit", "squat", "stand"))
_POSSESSIVES = frozenset(("his", "her", "its", "their", "one", "both"))


def preposition_places(analysis: Analysis) -> Iterator[Place]:
    end = 0
    for index in range(len(analysis.tokens)):
        named = _prepositions().get(analysis.word(index), ()) if index >= end else ()
        there = (own for own in named if analysis.words((index, index + len(own))) == own)
        if (name := next(there, None)) is None:
            continue
        end = index + len(name)
        is_bare = analysis.phrase_from(end) == (end, end + 1)
        is_idiom = is_bare and (
            analysis.tag(end) == "NN" or analysis.word(end) == "glasses"
        )  # "on display", "a man in glasses"
        if is_idiom or _is_of_verb(analysis, index):
            continue
        if words := fitting_words(analysis, (index, end), "relation", " ".join(name)):
            yield Place(first=index, last=end, words=words)


def _is_of_verb(analysis: Analysis, preposition: int) -> bool:
    """Return True if a preposition belongs to a verb: "waiting on it", "coming up close to it"."""
    before = analysis.tokens[max(preposition - 1, 0)].lemma
    if analysis.word(preposition - 1) in _BEFORE or before in ("ascend", "climb", "descend"):
        return True
    if analysis.tag(preposition - 1) in ("DT", "IN"):
        return True  # "on the outside of it"
    if not preposition or analysis.word(preposition) not in ("in", "on"):
        return False
    if analysis.tag(preposition - 1) == "JJ" and analysis.word(preposition - 1).endswith("ed"):
        return True  # "fried in a pan"
    verbs = (i for i in range(preposition - 1, -1, -1) if analysis.tag(i) in _VERB_TAGS)
    verb = next(verbs, None)
    if verb is None or analysis.tokens[verb].lemma == "be":
        return False
    is_next = verb == preposition - 1
    return analysis.tokens[verb].lemma not in (_PLACED if is_next else _PLACED | _BESIDE)


@functools.cache
def _prepositions() -> Mapping[str, tuple[tuple[str, ...], ...]]:
    found: dict[str, list[tuple[str, ...]]] = {}
    for name in sorted(closed_classes("relation").alternatives):
        words = tuple(name.split())
        found.setdefault(words[0], []).append(words)
    return {first: tuple(sorted(own, key=lambda w: -len(w))) for first, own in found.items()}


def verb_places(analysis: Analysis) -> Iterator[Place]:
    for index, token in enumerate(analysis.tokens):
        in_phrase = any(first <= index < last for first, last in analysis.noun_phrases)
        if token.tag not in _VERB_TAGS or in_phrase or _is_idiom(analysis, index):
            continue
        if {analysis.word(index - 1), analysis.word(index + 1)} & {",", "and"}:
            continue  # "cows lying down, grazing and walking"
        subject = analysis.tokens[index - 1].lemma  # of which there may be several
        is_shared = sum(token.lemma == subject for token in analysis.tokens) > 1
        if is_shared and analysis.phrase_to(index) is not None:
            continue  # "a person next to a person"
        is_base = token.tag == "VBP" or analysis.word(index - 1) == "to"
        tag = "VB" if is_base else token.tag
        found = fitting_words(analysis, (index, index + 1), "verb", token.lemma)
        forms = [inflect_word(word, tag) for word in found]
        if words := tuple(form for form in forms if form is not None):
            yield Place(first=index, last=index + 1, words=words)


def _is_idiom(analysis: Analysis, verb: int) -> bool:
    token, behind = analysis.tokens[verb], analysis.words((verb + 1, len(analysis.tokens)))
    if behind[:1] and behind[0] in _PARTICLES:
        return True  # "looking up"
    if behind[:1] == ("on",) and behind[2:3] and behind[2] in _OF_BODY:
        return True  # nobody stands "on its side"
    if token.lemma in ("catch", "hit", "strike") and analysis.word(verb - 1) == "to":
        return True  # nobody is about to miss
    if token.tag == "VBN" and token.lemma in _POSTURES and analysis.word(verb - 1) != "to":
        return True  # "crouched" is said of what crouches, "stood" is not
    if not _NOT_WITH.get(token.lemma, frozenset()).isdisjoint(behind):
        return True
    # A part of the body may hold something: "in the other hand", "in its mouth".
    words = analysis.words((verb, len(analysis.tokens)))
    is_held = not {"arm", "arms", "hand", "hands", "mouth"}.isdisjoint(words)
    pairs = itertools.pairwise(words)
    return is_held or any(a in ("in", "with") and b in _POSSESSIVES for a, b in pairs)
