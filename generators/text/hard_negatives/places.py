"""Places in a caption whose words can be replaced, and the edits that replace them.

Adjectives, numbers, prepositions and verbs are found here, nouns in `objects`.
"""

import functools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eqforge.generators.text.analysis import Analysis, Token
from eqforge.generators.text.contexts import fitting_words
from eqforge.generators.text.coordination.conjuncts import ADJECTIVES, is_fixed_pair
from eqforge.generators.text.edits import Edit, apply_edits
from eqforge.generators.text.fixed_expressions import is_in_fixed_expression
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.hard_negatives.records import (
    HardNegative,
    NegativeKind,
)
from eqforge.generators.text.inflection import inflect_word
from eqforge.generators.text.perturbations.synonyms import article_edits, cased
from eqforge.generators.text.taggers import lemmatise
from eqforge.generators.text.words import word_set
from eqforge.schemas.records.scores import Rejection


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Tokens of a caption and their possible replacements.

    Attributes:
      first, last: the tokens, `last` exclusive.
      words: words or phrases, inflected, in lower case; at least one.
    """

    first: int
    last: int
    words: tuple[str, ...]


def replace_at(
    analysis: Analysis,
    kind: NegativeKind,
    places: Iterable[Place],
    rng: random.Random,
    known: frozenset[str],
    none: str,
) -> HardNegative | Rejection:
    """Draw a place and a word, and makes the replacement.

    Args:
      known: words not to put in, in lower case; the caption's own words are not put in either.
      none: the reason to give if there is no place.
    """
    options = sorted(places, key=lambda place: place.first)
    if not options:
        return Rejection(reason=none)
    open_options = _open(analysis, options, known)
    if not open_options:
        return Rejection(reason="all_known")
    place, words = rng.choice(open_options)
    edits = _edits(analysis.tokens, place, rng.choice(words))
    return HardNegative(kind=kind, edited=apply_edits(analysis.text, edits))


def every_replacement(
    analysis: Analysis, kind: NegativeKind, places: Iterable[Place], known: frozenset[str]
) -> Iterator[HardNegative]:
    """Yield all replacements among which `replace_at` draws, in the order of their places."""
    for place, words in _open(analysis, sorted(places, key=lambda place: place.first), known):
        for word in words:
            edits = _edits(analysis.tokens, place, word)
            yield HardNegative(kind=kind, edited=apply_edits(analysis.text, edits))


def _open(
    analysis: Analysis, places: Iterable[Place], known: frozenset[str]
) -> list[tuple[Place, list[str]]]:
    """Return the places with the words that may be put in; those that have any."""
    taken = known.union(*((token.text.lower(), token.lemma) for token in analysis.tokens))
    return [
        (place, words)
        for place in places
        if (words := [word for word in place.words if taken.isdisjoint(_forms(word))])
    ]


def _forms(phrase: str) -> set[str]:
    """Return the words of a phrase, and of plurals the singular."""
    return {form for word in phrase.split() for form in (word, lemmatise(word, "NNS"))}


def _edits(tokens: Sequence[Token], place: Place, word: str) -> Sequence[Edit]:
    """Return the edit of a place of one or more tokens, after that of an article before it."""
    first, last = tokens[place.first], tokens[place.last - 1]
    edit = Edit(start=first.start, end=last.end, replacement=cased(word, tokens, place.first))
    return (*article_edits(tokens, place.first, word), edit)


_UNCOLOURED = ("black", "and", "white")
_OF_TWO = frozenset(("both", "each", "either", "one", "other"))
"""Words that tell how many there are, or tell them apart: "one sits and the other stands"."""
_PICTURES = frozenset(("image", "images", "photo", "photograph", "photos", "picture", "pictures"))


def attribute_places(analysis: Analysis) -> Iterator[Place]:
    """Yield the adjectives, and the numbers of things, with their replacements.

    A black and white photo becomes a color photo.
    """
    for index, token in enumerate(analysis.tokens):
        end = index + len(_UNCOLOURED)
        if analysis.words((index, end)) == _UNCOLOURED and analysis.word(end) in _PICTURES:
            yield Place(first=index, last=end, words=("color",))
            continue
        word = token.text.lower()
        is_number = token.tag == "CD" and _counts(analysis, index)
        if not (token.tag in ADJECTIVES or is_number):
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
        forms = [w if token.tag in ("JJ", "CD") else inflect_word(w, token.tag) for w in found]
        if words := tuple(form for form in forms if form is not None):
            yield Place(first=index, last=index + 1, words=words)


def _counts(analysis: Analysis, number: int) -> bool:
    """Say whether a number counts things: "two", or "two big", dogs."""
    phrase = analysis.phrase_around(number)
    if phrase is None or phrase[1] == number + 1:
        return False
    behind = analysis.words((number + 1, len(analysis.tokens)))
    is_plain = "of" not in analysis.words(phrase) and _OF_TWO.isdisjoint(behind)
    return is_plain and analysis.tag(phrase[1] - 1) == "NNS"


_VERB_TAGS = ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ")
_PLACED = word_set(
    "places.placed"
)  # verbs behind which "on" and "in" tell where: not that of "waiting on a bus"
_OF_BODY = frozenset(("back", "belly", "feet", "head", "knees", "legs", "side", "stomach"))
_BEFORE = frozenset(("down", "just", "out", "over", "right", "up"))
_PARTICLES = word_set("places.particles")
_NOT_WITH = {  # nobody sings to an umpire, or lands in the sky; surfers stand and crouch at once
    "fly": frozenset(("air", "sky", "skies")),
    "jump": frozenset(("air",)),
    "leap": frozenset(("air",)),
    "stand": frozenset(("board", "boards", "surfboard", "surfboards", "wave", "waves")),
    "swing": frozenset(("at",)),
    "talk": frozenset(("to", "with")),
}
_POSTURES = frozenset(("crouch", "kneel", "lay", "lie", "sit", "squat", "stand"))
_HANDS = frozenset(("arm", "arms", "hand", "hands", "mouth"))
_POSSESSIVES = frozenset(("his", "her", "its", "their", "one", "both"))


def preposition_places(analysis: Analysis) -> Iterator[Place]:
    """Yield the prepositions before visible objects, with their replacements."""
    taken = 0
    for index in range(len(analysis.tokens)):
        name = _preposition_at(analysis, index) if index >= taken else None
        if name is None:
            continue
        taken = index + len(name.split())
        if _is_before_bare_noun(analysis, taken) or _is_of_verb(analysis, index):
            continue
        if words := fitting_words(analysis, (index, taken), "relation", name):
            yield Place(first=index, last=taken, words=words)


def _is_of_verb(analysis: Analysis, preposition: int) -> bool:
    """Say whether a preposition belongs to a verb: "waiting on it", "coming up close to it"."""
    if analysis.word(preposition - 1) in _BEFORE:
        return True
    if analysis.tag(preposition - 1) in ("DT", "IN"):
        return True  # "on the outside of it"
    if not preposition or analysis.word(preposition) not in ("in", "on"):
        return False
    verb = analysis.tokens[preposition - 1]
    return verb.tag in _VERB_TAGS and verb.lemma not in _PLACED


def _is_before_bare_noun(analysis: Analysis, index: int) -> bool:
    """Say whether one singular noun follows, as in "on display"."""
    phrase = analysis.phrase_from(index)
    return phrase == (index, index + 1) and analysis.tokens[index].tag == "NN"


def _preposition_at(analysis: Analysis, index: int) -> str | None:
    """Return the longest preposition of the closed classes that starts at a token."""
    for words in _prepositions().get(analysis.word(index), ()):
        if analysis.words((index, index + len(words))) == words:
            return " ".join(words)
    return None


@functools.cache
def _prepositions() -> Mapping[str, tuple[tuple[str, ...], ...]]:
    """Return the prepositions that are replaced, by their first word, the longest first."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for name in sorted(closed_classes("relation").alternatives):
        words = tuple(name.split())
        found.setdefault(words[0], []).append(words)
    return {first: tuple(sorted(own, key=lambda w: -len(w))) for first, own in found.items()}


def verb_places(analysis: Analysis) -> Iterator[Place]:
    """Yield the verbs with their replacements, in the same form."""
    for index, token in enumerate(analysis.tokens):
        in_phrase = any(first <= index < last for first, last in analysis.noun_phrases)
        if token.tag not in _VERB_TAGS or in_phrase or _is_idiom(analysis, index):
            continue
        if _has_others(analysis, index) or _is_listed(analysis, index):
            continue
        is_base = token.tag == "VBP" or analysis.word(index - 1) == "to"
        tag = "VB" if is_base else token.tag
        found = fitting_words(analysis, (index, index + 1), "verb", token.lemma)
        forms = [inflect_word(word, tag) for word in found]
        if words := tuple(form for form in forms if form is not None):
            yield Place(first=index, last=index + 1, words=words)


def _is_idiom(analysis: Analysis, verb: int) -> bool:
    """Say whether the words around a verb go with no other of its class."""
    token, behind = analysis.tokens[verb], analysis.words((verb + 1, len(analysis.tokens)))
    if behind[:1] and behind[0] in _PARTICLES:
        return True  # "looking up"
    if behind[:1] == ("on",) and behind[2:3] and behind[2] in _OF_BODY:
        return True  # nobody stands "on its side"
    if token.lemma in ("catch", "hit", "strike") and analysis.word(verb - 1) == "to":
        return True  # nobody is about to miss
    if token.tag == "VBN" and token.lemma in _POSTURES and analysis.word(verb - 1) != "to":
        return True  # "crouched" is said of what crouches, "stood" is not
    is_unfit = not _NOT_WITH.get(token.lemma, frozenset()).isdisjoint(behind)
    return is_unfit or _is_carried(analysis, verb)


def _is_listed(analysis: Analysis, verb: int) -> bool:
    """Say whether a verb is one of several: "cows lying down, grazing and walking"."""
    return bool({analysis.word(verb - 1), analysis.word(verb + 1)} & {",", "and"})


def _has_others(analysis: Analysis, verb: int) -> bool:
    """Say whether a caption has several of a verb's subject: "a person next to a person"."""
    phrase = analysis.phrase_to(verb)
    if phrase is None:
        return False
    lemma = analysis.tokens[verb - 1].lemma
    return sum(token.lemma == lemma for token in analysis.tokens) > 1


def _is_carried(analysis: Analysis, verb: int) -> bool:
    """Say whether a part of the body holds something: "in the other hand", "in its mouth"."""
    words = [token.text.lower() for token in analysis.tokens[verb:]]
    if not _HANDS.isdisjoint(words):
        return True
    pairs = zip(words, [*words[1:], ""], strict=True)
    return any(one in ("in", "with") and two in _POSSESSIVES for one, two in pairs)
