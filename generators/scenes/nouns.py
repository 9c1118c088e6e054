"""Finds a noun for a scanned object in the words of its name, or in its category."""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eqforge.generators.scenes.copies import GSO_WORDS, load_words
from eqforge.generators.scenes.manifest import read_words
from eqforge.schemas.io.checked import Node, load_json

NOUNS = str(Path(__file__).parent / "data" / "gso_nouns.json")
"""Words for phrases in the names of Google Scanned Objects, and for its categories."""

Words = Mapping[str, Any]
_PIECES = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+[A-Za-z]*")


def words_for(name: str, category: str | None, own: Mapping[str, Words]) -> Words | None:
    """Returns the words for a scan, as a manifest has them; None where nothing says what it is.

    The words that a user gives count before those of eqforge, a whole name before the longest
    phrase in it, of equally long ones the last, and a phrase before the category.

    Args:
      name: of its folder, such as `ACE_Coffee_Mug_Kristen_16_oz_cup`.
      category: as its metadata has it.
      own: a user's words, by name, by phrase in lower case or by category.
    """
    known = {**_table(), **_whole_names(), **own}
    for key in (name, _phrase_in(name, own), category):
        if key is not None and key in own:
            return own[key]
    if name in known:
        return known[name]
    phrase = _phrase_in(name, _table())
    if phrase is not None:
        return known[phrase]
    return known.get(_categories().get(category or "", ""))


def load_nouns(path: str) -> dict[str, Words]:
    """Reads a user's words: a JSON object of the words of a manifest, by phrase, name or category.

    Raises:
      InputError: the file is not such an object; the message names the key and the field.
    """
    return load_words(path)


def _phrase_in(name: str, phrases: Mapping[str, Any]) -> str | None:
    """Returns the longest run of words in a name that is a phrase, the last of equally long."""
    pieces = [piece.lower() for piece in _PIECES.findall(name)]
    for length in range(len(pieces), 0, -1):
        for start in range(len(pieces) - length, -1, -1):
            run = pieces[start : start + length]
            for said in (" ".join(run), " ".join((*run[:-1], _singular(run[-1])))):
                if said in phrases:
                    return said
    return None


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


@functools.cache
def _table() -> Mapping[str, Words]:
    found = {}
    for phrase, node in load_json(NOUNS)["phrases"].items():
        read_words(node)
        found[phrase] = node.mapping()
    return found


@functools.cache
def _whole_names() -> Mapping[str, Words]:
    return load_words(GSO_WORDS)


@functools.cache
def _categories() -> Mapping[str, str]:
    categories: Node = load_json(NOUNS)["categories"]
    return {name: node.text() for name, node in categories.items()}
