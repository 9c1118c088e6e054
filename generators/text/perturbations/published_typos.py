"""The four typos of the published code, which uses the package `typo` 0.1.7.

The code resets the seed to 42 for each caption, so all captions with the same number of places for
a typo have it at the same one. `typo` seeds the global generator; here the same draws come from a
local one.

Source: mariyahendriksen/model-robustness-for-itr, src/perturbations/perturbation_types/typos.py;
  typo (ranvijaykumar/typo, MIT), class StrErrer.
"""

import random
import re

from eqforge.generators.text.perturbations.typos import (
    NEIGHBOURING_LETTERS,
    NEIGHBOURING_NUMPAD_DIGITS,
)

_SEED = 42
_PAIR = re.compile(r"(?=\w{2})")
_CHARACTER = re.compile(r"\w")


def swap_characters(text: str) -> str:
    """Swap two neighbouring word characters; upper and lower case keep their places."""
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
    """Leave out a word character if there are at least two."""
    rng = random.Random(_SEED)
    places = _places(text)
    if len(places) < 2:
        return text
    place = places[rng.randint(0, len(places) - 1)]
    return text[:place] + text[place + 1 :]


def add_character(text: str) -> str:
    """Insert a neighbouring key's character before a word character.

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
    """Replace a word character with a neighbouring key's, in the same case.

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
    """Return a neighbouring key; a character that has none itself, for "9" sometimes "10"."""
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
