"""Tells words from letters that no dictionary has."""

import functools
import warnings

from eqforge.generators.text.clip_tokens import count_clip_tokens
from eqforge.schemas.errors import MissingExtra

_ENDS = 2


@functools.lru_cache(maxsize=262_144)
def is_known_word(word: str) -> bool:
    """Tells whether a word is one that captions use.

    It is if a dictionary has it, if it is one token of CLIP's vocabulary, whose single tokens are
    the frequent words of web captions, or if it names who does a thing ("skateboarder"). Of a
    hyphenated word every part has to be known. What holds no letter is no word, and known.

    Raises:
      MissingExtra: a package of the extra "text" is not installed.
    """
    lower = word.lower().replace("\u2019", "'")
    if "-" in lower:
        return all(is_known_word(part) for part in lower.split("-") if part)
    if not any(character.isalpha() for character in lower):
        return True
    return in_dictionary(lower) or _is_one_token(lower) or _is_doer(lower)


@functools.lru_cache(maxsize=262_144)
def in_dictionary(word: str) -> bool:
    """Tells whether textblob's or lemminflect's dictionary has a word, given in lower case.

    They hold 94,000 words of newspapers, and the inflected forms of 40,000 lemmas.

    Raises:
      MissingExtra: one of the two is not installed.
    """
    return word in _newspaper_words() or bool(_lemmas(word))


@functools.cache
def _newspaper_words() -> frozenset[str]:
    try:
        from textblob.en import lexicon
    except ImportError as error:
        raise MissingExtra("textblob", "text") from error
    with warnings.catch_warnings():
        # Its reader leaves the file to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        lexicon.load()
    return frozenset(word.lower() for word in lexicon)


def _lemmas(word: str) -> dict[str, tuple[str, ...]]:
    try:
        from lemminflect import getAllLemmas
    except ImportError as error:
        raise MissingExtra("lemminflect", "text") from error
    return dict(getAllLemmas(word))


def _is_one_token(word: str) -> bool:
    return count_clip_tokens(word) == _ENDS + 1


def _is_doer(word: str) -> bool:
    """Tells whether a word is a verb or noun with "-er": "skateboarders", but not "tinyer"."""
    doer = word.removesuffix("s")
    stem = doer.removesuffix("er")
    return stem != doer and any(
        {"NOUN", "VERB"} & set(_lemmas(base)) for base in (stem, f"{stem}e")
    )
