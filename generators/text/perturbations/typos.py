"""Typos: two characters swapped, one missing, one too many, or one from a neighbouring key.

Each changes one word of two or more letters and digits, at a place drawn uniformly from all where
the change shows. One-letter words are kept: dropping "a" altogether is not a typo.
"""

import functools
import random
import re

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.perturbations.record import Reason

_WORD = re.compile(r"[^\W_]{2,}")


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
    """Replace a letter of a word with one from a neighbouring key, in the same case.

    Digits are kept: another number would change the meaning.
    """
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
    """Return the start and text of each run of two or more letters and digits."""
    return tuple((match.start(), match[0]) for match in _WORD.finditer(text))


def _cased_as(character: str, place: str) -> str:
    """Return a character in the case of another, if that is still a single character."""
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
