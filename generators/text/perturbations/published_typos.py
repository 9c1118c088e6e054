"""The four typing errors of the published code: the law of the package `typo` 0.1.7.

The code resets the generator to seed 42 for each caption, so that all captions with as many places
for an error have it at the same place. `typo` seeds the global generator; here the same draws come
from one of our own.

Source: mariyahendriksen/model-robustness-for-itr, src/perturbations/perturbation_types/typos.py;
  typo (ranvijaykumar/typo, MIT), class StrErrer.
"""

import random
import re

from eqforge.generators.text.perturbations.keyboard import (
    NEIGHBOURING_LETTERS,
    NEIGHBOURING_NUMPAD_DIGITS,
)

_SEED = 42
_PAIR = re.compile(r"(?=\w{2})")
_CHARACTER = re.compile(r"\w")


def swap_characters(text: str) -> str:
    """Swaps two neighbouring word characters; the letter case stays in its place."""
    rng = random.Random(_SEED)
    places = [match.start() for match in _PAIR.finditer(text)]
    if not places:
        return text
    place = places[rng.randint(0, len(places) - 1)]
    first, second = text[place], text[place + 1]
    new_second = first.upper() if second.isupper() else first.lower()
    new_first = second.upper() if first.isupper() else second.lower()
    return text[:place] + new_first + new_second + text[place + 2 :]


def drop_character(text: str) -> str:
    """Leaves out a word character, where there are two at least."""
    rng = random.Random(_SEED)
    places = _places(text)
    if len(places) < 2:
        return text
    place = places[rng.randint(0, len(places) - 1)]
    return text[:place] + text[place + 1 :]


def add_character(text: str) -> str:
    """Puts a neighbour on the keyboard before a word character.

    Raises:
      KeyError: a digit outside 0 to 9 was drawn and the numeric pad with it.
    """
    rng = random.Random(_SEED)
    places = _places(text)
    if not places:
        return text
    place = places[rng.randint(0, len(places) - 1)]
    return text[:place] + _neighbour(text[place], rng) + text[place:]


def hit_nearby_key(text: str) -> str:
    """Replaces a word character by a neighbour on the keyboard, in its case.

    Raises:
      KeyError: a digit outside 0 to 9 was drawn and the numeric pad with it.
    """
    rng = random.Random(_SEED)
    places = _places(text)
    if not places:
        return text
    place = places[rng.randint(0, len(places) - 1)]
    neighbour = _neighbour(text[place], rng)
    cased = neighbour.upper() if text[place].isupper() else neighbour.lower()
    return text[:place] + cased + text[place + 1 :]


def _places(text: str) -> list[int]:
    return [match.start() for match in _CHARACTER.finditer(text)]


def _neighbour(character: str, rng: random.Random) -> str:
    """Returns a neighbouring key: itself for a character without one, "10" at times for "9"."""
    if character.isdecimal():
        if rng.choice([True, False]):
            return rng.choice(NEIGHBOURING_NUMPAD_DIGITS[character])
        if character in "01":
            return {"0": "9", "1": "2"}[character]
        return str(int(character) + (-1) ** rng.randint(0, 1))
    if character.lower() not in NEIGHBOURING_LETTERS:
        return character
    neighbour = rng.choice(NEIGHBOURING_LETTERS[character.lower()])
    return neighbour.upper() if character.isupper() else neighbour
