"""Make typos and shuffles.

A typo is two characters swapped, one missing, one too many, or one from a neighbouring key. Each
changes one word of two or more letters and digits, at a place drawn uniformly from all visible
ones. One-letter words are kept: dropping "a" altogether is not a typo.

Shuffles are of nouns and adjectives, all words, all other words, within trigrams, and of trigrams.
Words move; the punctuation and white space between them stay. Words are separated by white space,
without the punctuation at their ends, so that "man's" and "t-shirt" move whole. Only the shuffle of
nouns and adjectives moves single tokens ("man" of "man's"), except tokens next to a letter, digit,
hyphen or underscore. The capital of a sentence stays at its start, that of a name goes with it:
"New and old building" becomes "Old and new building". Orders are drawn until the caption reads
differently, ignoring letter case: at most about half of all orders read the same.

Source: `TextShuffler` in ARO's dataset_zoo/perturbations.py, which the published code copies. It
splits differently (see `published`), joins with spaces and may return the caption itself.
"""

import functools
import random
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

from more_itertools import chunked

from eqforge.generators.text.analysis import MARKS, Analysis, Token, is_adjective, is_noun
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.perturbations.record import Reason
from eqforge.generators.text.perturbations.synonyms import lowered, raised, sentence_capitals
from eqforge.generators.text.words import is_in_function_phrase

_WORD = re.compile(rf"\w(?:\S*[\w{MARKS}])?")
_ATTEMPTS = 64

Place = tuple[int, int]
"""First character of a word, and the first after it."""


def shuffle_nouns_and_adjectives(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:
    text = analysis.text
    free = [
        token
        for token in _nouns_and_adjectives(analysis)
        if not any(
            character.isalnum() or character in "-_"
            for character in text[token.start - 1 : token.start] + text[token.end : token.end + 1]
        )
    ]
    nouns = [(token.start, token.end) for token in free if is_noun(token)]
    adjectives = [(token.start, token.end) for token in free if is_adjective(token)]

    def draw(words: list[str]) -> list[str]:
        return [*_shuffled(words[: len(nouns)], rng), *_shuffled(words[len(nouns) :], rng)]

    return _rearrange(analysis, nouns + adjectives, draw)


def shuffle_all_words(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:
    return _rearrange(analysis, find_words(analysis.text), lambda words: _shuffled(words, rng))


def shuffle_other_words(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:
    starts = [token.start for token in _nouns_and_adjectives(analysis)]
    others = [
        word
        for word in find_words(analysis.text)
        if bisect_left(starts, word[0]) == bisect_left(starts, word[1])  # none starts in it
    ]
    return _rearrange(analysis, others, lambda words: _shuffled(words, rng))


def shuffle_within_trigrams(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:

    def draw(words: list[str]) -> list[str]:
        return [word for group in chunked(words, 3) for word in _shuffled(group, rng)]

    return _rearrange(analysis, find_words(analysis.text), draw)


def shuffle_trigrams(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:

    def draw(words: list[str]) -> list[str]:
        groups = list(chunked(words, 3))
        rng.shuffle(groups)
        return [word for group in groups for word in group]

    return _rearrange(analysis, find_words(analysis.text), draw)


@functools.lru_cache(maxsize=2)  # four shuffles of a caption ask
def find_words(text: str) -> tuple[Place, ...]:
    return tuple(match.span() for match in _WORD.finditer(text))


def _rearrange(
    analysis: Analysis, places: Sequence[Place], draw: Callable[[list[str]], list[str]]
) -> list[Edit] | Reason:
    capitals = sentence_capitals(analysis)
    written = [analysis.text[start:end] for start, end in places]
    words = written.copy()
    firsts = [index for index, (start, _) in enumerate(places) if start in capitals]
    for index in firsts:
        if not capitals[places[index][0]]:
            words[index] = lowered(words[index])
    folded = [word.casefold() for word in words]
    if len(set(folded)) < 2:
        return Reason.ONE_ORDER_ONLY
    for _ in range(_ATTEMPTS):
        new_words = draw(words)
        if [word.casefold() for word in new_words] != folded:
            for index in firsts:
                new_words[index] = raised(new_words[index])
            return [
                Edit(start=start, end=end, replacement=word)
                for (start, end), before, word in sorted(
                    zip(places, written, new_words, strict=True)
                )
                if word != before
            ]
    return Reason.ONE_ORDER_ONLY


def _nouns_and_adjectives(analysis: Analysis) -> list[Token]:
    """Return the nouns and adjectives, without "front" of "in front of" and "next" of "next to"."""
    return [
        token
        for token in analysis.tokens
        if (is_noun(token) or is_adjective(token))
        and not is_in_function_phrase(analysis.text, token.start, token.end)
    ]


def _shuffled(words: list[str], rng: random.Random) -> list[str]:
    order = words[:]
    rng.shuffle(order)
    return order


_LETTERS = re.compile(r"[^\W_]{2,}")


def swap_characters(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:
    """Swap two neighbouring characters of a word; upper and lower case keep their places."""
    places = [
        start + i
        for start, word in _words(analysis.text)
        for i in range(len(word) - 1)
        if word[i] != word[i + 1]
    ]
    while places:
        place = places.pop(rng.randrange(len(places)))
        pair = analysis.text[place : place + 2]
        swapped = _cased_as(pair[1], pair[0]) + _cased_as(pair[0], pair[1])
        if swapped.casefold() != pair.casefold():
            return [Edit(start=place, end=place + 2, replacement=swapped)]
    return Reason.NO_WORD_TO_EDIT


def drop_character(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:
    places = [start + i for start, word in _words(analysis.text) for i in range(len(word))]
    if not places:
        return Reason.NO_WORD_TO_EDIT
    place = rng.choice(places)
    return [Edit(start=place, end=place + 1, replacement="")]


def add_character(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:
    """Insert a letter from a neighbouring key before a letter of a word, in the same case."""
    return _hit_neighbour(analysis, rng, replaced=0)


def hit_nearby_key(analysis: Analysis, rng: random.Random) -> list[Edit] | Reason:
    """Replace a letter with a neighbouring key; digits stay, since they change the meaning."""
    return _hit_neighbour(analysis, rng, replaced=1)


def _hit_neighbour(analysis: Analysis, rng: random.Random, replaced: int) -> list[Edit] | Reason:
    places = _neighboured(analysis.text)
    if not places:
        return Reason.NO_WORD_TO_EDIT
    place = rng.choice(places)
    letter = analysis.text[place]
    neighbour = rng.choice(NEIGHBOURING_LETTERS[letter.lower()])
    cased = neighbour.upper() if letter.isupper() else neighbour
    return [Edit(start=place, end=place + replaced, replacement=cased)]


@functools.lru_cache(maxsize=2)  # two perturbations of a caption ask
def _neighboured(text: str) -> tuple[int, ...]:
    return tuple(
        start + i
        for start, word in _words(text)
        for i, letter in enumerate(word)
        if letter.lower() in NEIGHBOURING_LETTERS
    )


@functools.lru_cache(maxsize=2)  # all four ask
def _words(text: str) -> tuple[tuple[int, str], ...]:
    return tuple((match.start(), match[0]) for match in _LETTERS.finditer(text))


def _cased_as(character: str, place: str) -> str:
    cased = character.upper() if place.isupper() else character.lower()
    return cased if len(cased) == 1 and place.lower() != place.upper() else character


# As in the package `typo` 0.1.7 (MIT); the order determines what a seeded choice returns.
NEIGHBOURING_LETTERS = {
    **{"a": "qwsz", "b": "vghn", "c": "xdfv", "d": "serfcx", "e": "rdsw", "f": "drtgvc"},
    **{"g": "ftyhbv", "h": "nbgyuj", "i": "okju", "j": "huikmn", "k": "jiolm", "l": "kop"},
    **{"m": "njk", "n": "bhjm", "o": "iklp", "p": "ol", "q": "aw", "r": "edft", "s": "azxdew"},
    **{"t": "rfgy", "u": "yhji", "v": "cfgb", "w": "qasde", "x": "zsdc", "y": "tghu", "z": "asx"},
}
NEIGHBOURING_NUMPAD_DIGITS = {
    **{"0": "12", "1": "4520", "2": "014563", "3": "256", "4": "78521"},
    **{"5": "78946123", "6": "98523", "7": "854", "8": "74569", "9": "856"},
}
