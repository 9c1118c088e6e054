"""Tells words from strings that no dictionary has."""

import functools

from eqforge.core.errors import MissingExtra
from eqforge.generators.text.clip_tokens import count_clip_tokens
from eqforge.generators.text.parts import english, lemmatizer

_ENDS = 2
_SHORT_LETTERS = 5
_SHORT_FREQUENCY = 3e-7  # Zipf 2.5
_OF_WOMEN = {"woman": "man", "women": "men", "girl": "boy", "girls": "boys"}


@functools.lru_cache(maxsize=262_144)
def is_known_word(word: str) -> bool:
    """Say whether a word is one that captions use.

    It is if a dictionary has it, if it is a single token of CLIP's vocabulary, as the frequent
    words of web captions are, if it is an agent noun ("skateboarder"), if it is among the 320,000
    words and names of wordfreq, each found in several large corpora, or if the same with "man" or
    "boy" for "woman" or "girl" is one of these ("snowwoman"). Every part of a hyphenated word has
    to be known. A string without a letter, or with a digit, counts as known.
    """
    return _is_known(word.lower().replace("\u2019", "'"), 0)


@functools.lru_cache(maxsize=262_144)
def is_sure_word(word: str) -> bool:
    """Say whether a word is known, and not just a fragment that occurs in corpora.

    Among words of up to five letters wordfreq has many typing errors and syllables ("ofe", "plon"):
    these have to occur there three times in ten million words, or in one of the other sources.
    """
    return _is_known(word.lower().replace("\u2019", "'"), _SHORT_FREQUENCY)


def _is_known(word: str, short_frequency: float) -> bool:
    if "-" in word:
        return all(_is_known(part, short_frequency) for part in word.split("-") if part)
    if not any(map(str.isalpha, word)) or any(map(str.isdigit, word)):
        return True
    if in_dictionary(word) or count_clip_tokens(word) == _ENDS + 1 or _is_doer(word):
        return True
    least = short_frequency if len(word) <= _SHORT_LETTERS else 0
    if _frequencies().get(word, -1.0) >= least:
        return True
    stem, ending = _of_woman(word)
    return bool(stem and ending) and _is_known(stem + ending, short_frequency)


@functools.cache
def _frequencies() -> dict[str, float]:
    """Return the relative frequency of every word in running text, 1e-8 or more."""
    try:
        from wordfreq import get_frequency_dict
    except ImportError as error:
        raise MissingExtra("wordfreq", "text") from error
    return get_frequency_dict("en", wordlist="large")


@functools.lru_cache(maxsize=262_144)
def in_dictionary(word: str) -> bool:
    """Say whether textblob's or lemminflect's dictionary has a word, given in lower case.

    They hold 94,000 words of newspapers, and the inflected forms of 40,000 lemmas.
    """
    return word in _newspaper_words() or bool(_lemmas(word))


@functools.cache
def _newspaper_words() -> frozenset[str]:
    return frozenset(word.lower() for word in english().lexicon)


def _lemmas(word: str) -> dict[str, tuple[str, ...]]:
    return dict(lemmatizer().getAllLemmas(word))


def _of_woman(word: str) -> tuple[str, str]:
    """Return the stem of a compound of "woman" or "girl", and its ending of a man; or nothing."""
    for ending, other in _OF_WOMEN.items():
        if word.endswith(ending):
            return word.removesuffix(ending), other
    return "", ""


def _is_doer(word: str) -> bool:
    """Say whether a word is a verb or noun with "-er": "skateboarders", but not "tinyer"."""
    doer = word.removesuffix("s")
    stem = doer.removesuffix("er")
    return (
        not doer.endswith("inger")
        and stem != doer
        and any({"NOUN", "VERB"} & set(_lemmas(base)) for base in (stem, f"{stem}e"))
    )
