"""Detects captions that are not in English, for which the editing rules are written.

Captions are too short for one test, so a dictionary and a classifier have to agree: some word is in
no English dictionary, and py3langid, which identifies 139 languages from character n-grams, finds
another one 19 times as likely (999 times if the dictionary has at least four words in five). A
caption whose words are all in the dictionary is English: most take only a few microseconds. But a
large dictionary has "une femme en robe", too: where articles and prepositions are those of another
language, and none is English, the classifier alone decides.
"""

import functools
import re
import unicodedata
from typing import Any, Literal

from eqforge.core.errors import MissingExtra
from eqforge.generators.text.lints.vocabulary import in_dictionary
from eqforge.generators.text.words import word_set, word_spans
from eqforge.schemas.records.scores import Rejection

Language = Literal["en", "any"]
KNOWN_WORDS = 0.8
"""From this share of dictionary words on, another language has to be much likelier."""
MIN_ENGLISH = 0.05
MIN_ENGLISH_KNOWN = 0.001
"""Minimum probabilities of English against another language, below and from KNOWN_WORDS."""
MIN_ENGLISH_FOREIGN = 0.5
"""Minimum probability of English where all articles and prepositions are another language's."""
_FOREIGN = word_set("language.foreign")
_ENGLISH = word_set("language.english")
_CLITIC = re.compile("n['\u2019]t|['\u2019]")


def refuse_language(text: str) -> Rejection | None:
    """Return why a text is not an English caption; None if it is, or if that is unclear.

    The rejection's value is the probability of English against the likeliest other language.
    """
    known = known_words(text)
    is_foreign = _has_foreign_grammar(text)
    if known == 1 and not is_foreign:
        return None
    least = MIN_ENGLISH if known < KNOWN_WORDS else MIN_ENGLISH_KNOWN
    least = MIN_ENGLISH_FOREIGN if is_foreign else least
    other, english = _against_english(text.lower())
    if not any(map(_is_latin, text)):
        english = 0.0
    if english >= least:
        return None
    return Rejection(
        reason="not_english", value=round(english, 4), threshold=least, detail=f"likeliest: {other}"
    )


def known_words(text: str) -> float:
    """Return the share of a text's words that are in an English dictionary, in [0, 1].

    Of a word such as "man's" only the longest part is looked up. A text without letters gives 1.
    """
    words = [text[start:end].lower() for start, end in word_spans(text)]
    parts = [max(_CLITIC.split(word), key=len) for word in words]
    named = [part for part in parts if any(map(str.isalpha, part))]
    return sum(map(in_dictionary, named)) / len(named) if named else 1.0


def _has_foreign_grammar(text: str) -> bool:
    words = {text[start:end].lower() for start, end in word_spans(text)}
    return not words.isdisjoint(_FOREIGN) and words.isdisjoint(_ENGLISH)


def _is_latin(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith("LATIN")


def _against_english(text: str) -> tuple[str, float]:
    """Return the likeliest other language, and the probability of English against it."""
    probabilities = dict(_identifier().rank(text))
    english = float(probabilities.pop("en"))
    other = max(sorted(probabilities), key=lambda name: float(probabilities[name]))
    return other, english / (english + float(probabilities[other]))


@functools.cache
def _identifier() -> Any:
    """Return py3langid's model of 139 languages, which is part of its wheel."""
    try:
        from py3langid import langid
    except ImportError as error:
        raise MissingExtra("py3langid", "text") from error
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
