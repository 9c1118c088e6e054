"""Reword one word: synonyms, colours of things and numbers.

Synonyms ("a couch" and "a sofa"): a row of `caption_synonyms.tsv` is true in one direction. Here
two rows have to agree in both directions at this place, so that "an armchair" does not become "a
chair". Pairs that a careful writer would not exchange are left out, although perturbations and
foils use them.

Colours ("a red car" and "a red-colored car"): skipped are colours of living beings, food, plants
and water, shades ("light blue"), several colours of one thing and colours after a verb ("is red").

Numbers from two to twelve ("with two dogs" and "with 2 dogs"): no sentence begins with digits, so
at the start of a caption digits are spelt out, and never the reverse.

Source: Oxford Dictionary of English, "-coloured"; The Chicago Manual of Style, 17th ed., ch. 9.
"""

import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_words import PartOfSpeech
from eqforge.generators.text.contexts import classes_of
from eqforge.generators.text.coordination.conjuncts import ADJECTIVES, COLOURS, is_fixed_pair
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.perturbations.synonyms import (
    replacement_edits,
    synonym_places,
    synonyms_at,
    words_there,
)
from eqforge.generators.text.rewordings.records import Edits, has_plain_spacing, replacement
from eqforge.generators.text.words import is_in_fixed_expression, word_set

_LEFT_OUT: Final = (
    *({"adult", "grownup"}, {"animal", "creature"}, {"crowd", "throng"}, {"damp", "wet"}),
    *({"blossom", "flower"}, {"contemporary", "modern"}, {"different", "various"}),
    *({"foggy", "misty"}, {"part", "portion"}, {"phone", "telephone"}, {"cop", "policeman"}),
    *({"cloudy", "overcast"}, {"home", "house"}, {"carpet", "rug"}, {"bookcase", "bookshelf"}),
)
_SLICED: Final = word_set("synonyms.sliced")
_OF_FAMILY: Final = frozenset(("boy", "brother", "girl", "lady", "man", "sister", "woman"))


def _find_synonyms(pos: PartOfSpeech, analysis: Analysis) -> Iterator[Edits]:
    for index, synonyms in synonym_places(analysis, pos).items():
        token = analysis.tokens[index]
        for word, form in synonyms if has_plain_spacing(analysis, index, index + 1) else ():
            if not _is_exchanged(analysis, index, word):
                continue
            # In place of the token, the synonym has to become the token again.
            tokens = list(analysis.tokens)
            tokens[index] = dataclasses.replace(token, text=form, lemma=word)
            back = synonyms_at(tokens, index, pos, words_there(tokens))
            if token.text.lower() in {form.lower() for _, form in back}:
                yield tuple(replacement_edits(analysis.tokens, index, form))


def _is_exchanged(analysis: Analysis, index: int, word: str) -> bool:
    token = analysis.tokens[index]
    pair = (token.lemma, word)
    before, behind = analysis.word(index - 1), analysis.word(index + 1)
    if token.tag == "NNS" and before in ("a", "an"):  # "a women"
        return False
    if set(pair) == {"guy", "man"}:
        return "and" not in (before, behind)
    if set(pair) == {"multiple", "several"}:
        return behind not in ("colored", "coloured")
    if token.tag == "NNS" and token.lemma in ("somebody", "someone"):
        return False  # "someones" for "someone's"
    if set(pair) == {"center", "middle"}:
        return behind == "of"
    if set(pair) == {"ad", "advertisement"} and token.tag == "NN":
        return analysis.tag(index - 1) in ("DT", "JJ", "PRP$")
    if "image" in pair and behind == "of":
        return index <= 3  # "blurs the image of a building"
    if pair == ("group", "bunch"):
        return token.tag == "NN" and index <= 1 and analysis.tag(index + 2) != "CD"
    if pair == ("piece", "slice"):
        sliced = {token.lemma for token in analysis.tokens[index + 2 : index + 4]} & _SLICED
        return before not in ("little", "small", "tiny") and behind == "of" and bool(sliced)
    if pair == ("small", "little"):
        return behind != "area" and before not in ("so", "too", "very")
    if pair == ("little", "small"):
        return _OF_FAMILY.isdisjoint(t.lemma for t in analysis.tokens[index + 1 : index + 3])
    if "youngster" in pair and before == "young":
        return False
    if set(pair) == {"baby", "infant"}:
        return not analysis.tag(index + 1).startswith(("JJ", "NN"))
    return pair != ("bunch", "group") and set(pair) not in _LEFT_OUT


SYNONYMS: Final = {
    "noun_as_synonym": functools.partial(_find_synonyms, "n"),
    "adjective_as_synonym": functools.partial(_find_synonyms, "a"),
}

_COLORED = re.compile(
    r"(?i)(?<![\w-])(?P<name>{})[ -]colou?red(?![\w-])".format("|".join(sorted(COLOURS)))
)
# Nouns of these classes have a natural colour, or a colour that names their kind.
_NATURAL = word_set("colors.natural")
_METALS = frozenset(("gold", "golden", "silver"))
_VARIED = word_set("colors.varied")


def _add_colored(analysis: Analysis) -> Iterator[Edits]:
    for index, token in enumerate(analysis.tokens):
        name = token.text.lower()
        is_repeated = sum(token.text.lower() == name for token in analysis.tokens) > 1
        if is_repeated:  # "white counters and a white-colored sink" would set them apart
            continue
        if name in COLOURS - _METALS and token.tag in ADJECTIVES and _is_plain(analysis, index):
            added = "-COLORED" if token.text.isupper() else "-colored"
            yield (Edit(start=token.end, end=token.end, replacement=added),)


def _leave_out_colored(analysis: Analysis) -> Iterator[Edits]:
    for found in _COLORED.finditer(analysis.text):
        yield (Edit(start=found.end("name"), end=found.end(), replacement=""),)


def _is_plain(analysis: Analysis, index: int) -> bool:
    token = analysis.tokens[index]
    phrase = next((p for p in analysis.noun_phrases if p[0] <= index < p[1] - 1), None)
    if phrase is None:
        return False
    noun = " ".join(analysis.words((index + 1, phrase[1])))
    if phrase[1] > index + 2 and noun not in closed_classes("object").groups:
        return False  # neither one noun nor a known compound: "fire hydrant"
    if analysis.tag(index - 1) in (*ADJECTIVES, "CC", "HYPH", ",", "NN", "RB", "VBN"):
        return False
    if is_fixed_pair(analysis.text, token.start) or is_in_fixed_expression(
        analysis.text, token.start, token.end
    ):
        return False
    classes = classes_of(analysis, phrase)
    return "artifact" in classes and not classes & (_NATURAL | _VARIED)


COLORS: Final = {
    "colored": _add_colored,
    "not_colored": _leave_out_colored,
}

_WORDS = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_DIGITS = {word: str(number) for number, word in enumerate(_WORDS, start=2)}
_SPELT = {number: word for word, number in _DIGITS.items()}
# "two story houses" are not two; nor is "a size 2 shoe", whose number does not open a phrase.
_UNITS = word_set("numerals.units")
_NAMED_BY = ("CD", "SYM", "#", "$", "HYPH", "NN", "NNS", "NNP", "NNPS", ".", ":")


def _find_numbers(forms: dict[str, str], is_first: bool, analysis: Analysis) -> Iterator[Edits]:
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
            yield (replacement(analysis, number, number + 1, cased),)


def _counts(analysis: Analysis, number: int, last: int) -> bool:
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


NUMERALS: Final = {
    "number_to_digits": functools.partial(_find_numbers, _DIGITS, False),
    "digits_to_number": functools.partial(_find_numbers, _SPELT, False),
    "first_digits_to_number": functools.partial(_find_numbers, _SPELT, True),
}
