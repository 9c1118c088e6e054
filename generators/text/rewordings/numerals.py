"""Numbers from two to twelve in words and in digits: "with two dogs" and "with 2 dogs".

No sentence begins with digits: at the start of a caption only digits are spelt out.
"""

import functools
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.rewordings.records import (
    Edits,
    Rule,
    has_plain_spacing,
    replacement,
)
from eqforge.generators.text.words import word_set

_GROUND = (
    "The Chicago Manual of Style, 17th ed., ch. 9: words or numerals, as a style asks; words where "
    "a sentence begins."
)
_WORDS = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_DIGITS = {word: str(number) for number, word in enumerate(_WORDS, start=2)}
_SPELT = {number: word for word, number in _DIGITS.items()}
# "two story houses" are not two; nor is "a size 2 shoe", where the number is in no phrase's front.
_UNITS = word_set("numerals.units")
_NAMED_BY = ("CD", "SYM", "#", "$", "HYPH", "NN", "NNS", "NNP", "NNPS", ".", ":")


def _find(forms: dict[str, str], is_first: bool, analysis: Analysis) -> Iterator[Edits]:
    if sum(token.tag == "CD" for token in analysis.tokens) > 1:
        return  # "two dogs and 2 cats"
    for first, last in analysis.noun_phrases:
        number = first + (analysis.tag(first) in ("DT", "PRP$", "PDT"))
        other = forms.get(analysis.word(number))
        if other is None or is_first is not (number == 0) or not _counts(analysis, number, last):
            continue
        token = analysis.tokens[number]
        if not token.text.isdigit() and token.text[0].isupper() is not (number == 0):
            continue  # a digit comes back with a capital at the start, and nowhere else
        if has_plain_spacing(analysis, number, number + 1):
            cased = other.capitalize() if number == 0 else other
            edit = replacement(analysis, number, number + 1, cased)
            yield (edit,)


def _counts(analysis: Analysis, number: int, last: int) -> bool:
    """Say whether a number counts what a noun phrase names."""
    head = analysis.tokens[last - 1]
    if head.tag not in ("NNS", "NNPS") and head.lemma not in ("people", "sheep", "deer"):
        return False
    if number + 1 >= last or analysis.tag(number) != "CD":
        return False
    before, behind = analysis.word(number - 1), analysis.tag(number + 1)
    if before in ("-", "/", "no", "number", "or", "to"):
        return False
    if analysis.tag(number - 1) in _NAMED_BY or behind in ("CD", "HYPH"):
        return False  # "size 2 shoes"
    return analysis.tokens[number + 1].lemma not in _UNITS or number + 2 == last


NUMERALS: Final = tuple(
    Rule(
        name=name,
        reverse=reverse,
        ground=_GROUND,
        find=functools.partial(_find, forms, is_first),
    )
    for name, reverse, forms, is_first in (
        ("number_to_digits", "digits_to_number", _DIGITS, False),
        ("digits_to_number", "number_to_digits", _SPELT, False),
        ("first_digits_to_number", None, _SPELT, True),
    )
)
