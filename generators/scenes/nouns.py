"""Finds a noun for a scanned object in the words of its name, or in its category."""

import functools
import re
import unicodedata
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from eqforge.core.files.checked import Node, load_json
from eqforge.generators.scenes.copies import GSO_WORDS, load_words
from eqforge.generators.scenes.manifest import read_words

NOUNS = str(Path(__file__).parent / "data" / "gso_nouns.json")
"""Words for phrases in the names of Google Scanned Objects, and for its categories."""

Words = Mapping[str, Any]
_SEEN = ("colour", "clashes")
"""What is told by a scan's surface, not by its name."""

_EDGES = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=\d)")


def words_for(name: str, category: str | None, own: Mapping[str, Words]) -> Words | None:
    """Returns the words for a scan, as a manifest has them; None where nothing says what it is.

    The words that a user gives count before those of eqforge, a whole name before the longest
    phrase in it, of equally long ones the last, and a phrase before the category. Capitals do not
    count in a user's words. In those of eqforge, a dog food can is no dog; and colours are left
    out, which textures tell.

    Args:
      name: of its folder, such as `ACE_Coffee_Mug_Kristen_16_oz_cup`.
      category: as its metadata has it.
      own: a user's words, by name, by phrase or by category.
    """
    key = key_for(name, category, own)
    if key is not None:
        return own[key]
    known = {**_table(), **_whole_names()}
    if name in known:
        return {key: said for key, said in known[name].items() if key not in _SEEN}
    phrase = _phrase_in(name, _table(), _heads())
    if phrase is not None:
        return known[phrase]
    return known.get(_categories().get(category or "", ""))


def key_for(name: str, category: str | None, own: Mapping[str, Words]) -> str | None:
    """Returns the key of the user's words that a scan gets; None where it gets none of them."""
    if name in own:
        return name
    phrases = {" ".join(_pieces(key)): key for key in own}
    phrase = _phrase_in(name, phrases)
    if phrase is not None:
        return phrases[phrase]
    return phrases.get(" ".join(_pieces(category))) if category else None


def load_nouns(path: str) -> dict[str, Words]:
    """Reads a user's words: a JSON object of the words of a manifest, by phrase, name or category.

    Raises:
      InputError: the file is not such an object; the message names the key and the field.
    """
    return load_words(path)


def _phrase_in(name: str, phrases: Mapping[str, Any], heads: Collection[str] = ()) -> str | None:
    """Returns the longest run of words in a name that is a phrase, the last of equally long.

    A run that a head follows says only what that is for or of: a key, of a car key.
    """
    pieces = _pieces(name)
    for length in range(len(pieces), 0, -1):
        for start in range(len(pieces) - length, -1, -1):
            run, after = pieces[start : start + length], pieces[start + length : start + length + 1]
            if after and after[0] in heads:
                continue
            for said in (" ".join(run), " ".join((*run[:-1], _singular(run[-1])))):
                if said in phrases:
                    return said
    return None


def _pieces(name: str) -> list[str]:
    """Returns the words of a name in lower case, in whatever letters it is written."""
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", name))
    return [piece.lower() for word in words for piece in _EDGES.split(word)]


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
def _heads() -> frozenset[str]:
    return frozenset(load_json(NOUNS)["modified"].names())


@functools.cache
def _categories() -> Mapping[str, str]:
    categories: Node = load_json(NOUNS)["categories"]
    return {name: node.text() for name, node in categories.items()}
