"""Detect captions and words that are not English; the editing rules need English.

Captions are too short for one test, so a dictionary and a classifier must agree. Some word is in no
English dictionary, and py3langid, which identifies 139 languages from character n-grams, finds
another language 19 times as likely (999 times if the dictionary has at least four words in five).

A caption whose words are all in the dictionary is English; for most captions this check takes a few
microseconds. But a large dictionary also has "une femme en robe". If articles and prepositions
belong to another language and none is English, the classifier alone decides.
"""

import functools
import re
import unicodedata
from typing import Any, Literal

from eqforge.core.errors import importing
from eqforge.generators.text.caption_lint import count_clip_tokens
from eqforge.generators.text.parts import english, lemmatizer
from eqforge.generators.text.words import word_set, word_spans
from eqforge.schemas.records.scores import Rejection

Language = Literal["en", "any"]
KNOWN_WORDS = 0.8
"""From this share of dictionary words on, another language has to be much likelier."""
MIN_ENGLISH = 0.05
MIN_ENGLISH_KNOWN = 0.001
"""Minimum probabilities of English against another language, below and from KNOWN_WORDS."""
MIN_ENGLISH_FOREIGN = 0.5
"""Minimum probability of English if all articles and prepositions are another language's."""
_FOREIGN = word_set("language.foreign")
_ENGLISH = word_set("language.english")
_CLITIC = re.compile("n['\u2019]t|['\u2019]")


def reject_language(text: str) -> Rejection | None:
    """Return why a text is not an English caption; None if it is English or unclear.

    The rejection's value is the probability of English against the likeliest other language.
    """
    known = known_words(text)
    words = {text[start:end].lower() for start, end in word_spans(text)}
    is_foreign = not words.isdisjoint(_FOREIGN) and words.isdisjoint(_ENGLISH)
    if known == 1 and not is_foreign:
        return None
    least = MIN_ENGLISH if known < KNOWN_WORDS else MIN_ENGLISH_KNOWN
    least = MIN_ENGLISH_FOREIGN if is_foreign else least
    probabilities = {name: float(p) for name, p in _identifier().rank(text.lower())}
    of_english = probabilities.pop("en")
    other = max(sorted(probabilities), key=probabilities.__getitem__)
    share = of_english / (of_english + probabilities[other])
    if not any(unicodedata.name(letter, "").startswith("LATIN") for letter in text):
        share = 0.0
    if share >= least:
        return None
    return Rejection(
        reason="not_english", value=round(share, 4), threshold=least, detail=f"likeliest: {other}"
    )


def known_words(text: str) -> float:
    """Return the share of a text's words that are in an English dictionary, in [0, 1].

    Of a word such as "man's", only the longest part counts. A text without letters gives 1.
    """
    words = [text[start:end].lower() for start, end in word_spans(text)]
    parts = [max(_CLITIC.split(word), key=len) for word in words]
    named = [part for part in parts if any(map(str.isalpha, part))]
    return sum(map(in_dictionary, named)) / len(named) if named else 1.0


@functools.cache
def _identifier() -> Any:
    with importing("py3langid", "text"):
        from py3langid import langid
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)


_ENDS = 2
_SHORT_LETTERS = 5
_SHORT_FREQUENCY = 3e-7  # Zipf 2.5
_OF_WOMEN = {"woman": "man", "women": "men", "girl": "boy", "girls": "boys"}


@functools.lru_cache(maxsize=262_144)
def is_known_word(word: str) -> bool:
    """Return True for words that captions use.

    A known word is in a dictionary, a single token in CLIP's vocabulary (like the frequent words of
    web captions), an agent noun ("skateboarder"), or among the 320,000 words and names of wordfreq,
    each found in several large corpora. The same holds with "man" or "boy" for "woman" or "girl"
    ("snowwoman"). Every part of a hyphenated word must be known. A string without a letter, or with
    a digit, counts as known.
    """
    return _is_known(word.lower().replace("\u2019", "'"), 0)


@functools.lru_cache(maxsize=262_144)
def is_sure_word(word: str) -> bool:
    """Return True for known words that are not just fragments in corpora.

    Among words of up to five letters wordfreq has many typing errors and syllables ("ofe", "plon").
    These must occur three times in ten million words, or in one of the other sources.
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
    for ending, other in _OF_WOMEN.items():
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            return bool(stem) and _is_known(stem + other, short_frequency)
    return False


@functools.cache
def _frequencies() -> dict[str, float]:
    with importing("wordfreq", "text"):
        from wordfreq import get_frequency_dict
    return get_frequency_dict("en", wordlist="large")


@functools.lru_cache(maxsize=262_144)
def in_dictionary(word: str) -> bool:
    """Return True if textblob's or lemminflect's dictionary has a word, given in lower case.

    They hold 94,000 words of newspapers, and the inflected forms of 40,000 lemmas.
    """
    return word in _newspaper_words() or bool(lemmatizer().getAllLemmas(word))


@functools.cache
def _newspaper_words() -> frozenset[str]:
    return frozenset(word.lower() for word in english().lexicon)


def _is_doer(word: str) -> bool:
    """Return True for verbs or nouns with "-er": "skateboarders", but not "tinyer"."""
    doer = word.removesuffix("s")
    stem = doer.removesuffix("er")
    return (
        not doer.endswith("inger")
        and stem != doer
        and any({"NOUN", "VERB"} & {*lemmatizer().getAllLemmas(b)} for b in (stem, f"{stem}e"))
    )
