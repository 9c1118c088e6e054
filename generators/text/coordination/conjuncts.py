"""Represent the two sides of an "and", and check them for ambiguity."""

import functools
import re
from dataclasses import dataclass
from typing import Literal, NoReturn

from eqforge.generators.text.analysis import Analysis, Range
from eqforge.generators.text.words import DATA, read_word_list, reasons, word_set

Level = Literal["noun_phrase", "adjective", "verb_phrase", "clause"]

OPENERS = ("DT", "PDT", "PRP$", "CD", "WP$")
ADJECTIVES = ("JJ", "JJR", "JJS")
PRONOUNS = ("PRP", "PRP$", "WP", "EX")
PLACES = word_set("conjuncts.places")
"""Prepositions of place; after both sides of an "and" they may apply to both."""

COLOURS = word_set("conjuncts.colours")

SWAP_REFUSALS = reasons("swaps")

_FIXED_PAIRS = re.compile(
    r"\b(?:in black and white(?=\s*(?:[.,;]|$))"
    r"|black and white (?:film|image|movie|photo|picture|portrait|shot|view|television|tv)"
    r"|bed and breakfast|rock and roll|bread and butter|mac(?:aroni)? and cheese|back and forth"
    r"|red,? white,? and blue"
    r"|wear and tear|(?:come|coming|go|going|sit|sits|sitting|try) and(?! an?\b| the\b))",
    re.IGNORECASE,
)
_TOYS = frozenset(("statue", "statues", "stuffed", "teddy", "toy"))
_LIVING = ("person_nouns.txt", "animal_nouns.txt", "group_nouns.txt")
_ANAPHORA = frozenset(("one", "ones", "other", "others", "another", "itself", "themselves"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Conjuncts:
    """The token ranges on the two sides of an "and"."""

    left: Range
    right: Range
    level: Level


class CannotTell(Exception):
    """The sides of an "and" are ambiguous; the first argument is a key of SWAP_REFUSALS."""


def refuse(reason: str) -> NoReturn:
    assert reason in SWAP_REFUSALS
    raise CannotTell(reason)


def refuse_pronouns(analysis: Analysis, *sides: Range) -> None:
    """Check that neither side refers to the other: "his", "it", "another" without a noun."""
    for index in (index for side in sides for index in range(*side)):
        stands_alone = not analysis.tag(index + 1).startswith(("NN", "JJ"))
        if analysis.tag(index) in PRONOUNS:
            refuse("pronoun")
        if analysis.word(index) in _ANAPHORA and stands_alone:
            refuse("pronoun")
        if analysis.word(index) in ("another", "other"):
            refuse("pronoun")  # "a fridge and other appliances"


def refuse_mentions(analysis: Analysis, left: Range, right: Range) -> None:
    """Check that nothing after the left side refers back to it: "a dog and ... the dog"."""
    nouns = {token.lemma for token in analysis.tokens[slice(*left)] if token.tag.startswith("NN")}
    for index in range(right[0], len(analysis.tokens)):
        if analysis.word(index - 1) == "the" and analysis.tokens[index].lemma in nouns:
            refuse("pronoun")


def is_fixed_pair(text: str, offset: int) -> bool:
    """Return True if an offset lies in a fixed pair: "a black and white photo"."""
    return any(found.start() <= offset < found.end() for found in _FIXED_PAIRS.finditer(text))


def is_living(analysis: Analysis, phrase: Range) -> bool:
    last = analysis.tokens[phrase[1] - 1]
    if not _TOYS.isdisjoint(analysis.words(phrase)):
        return False
    heads = {analysis.head(phrase).lemma, last.lemma}
    return any(not heads.isdisjoint(listed(name)) for name in _LIVING)


def may_color_person(analysis: Analysis, index: int) -> bool:
    """Return True if a color may describe people ("a black man"); no rule edits these colors."""
    if analysis.word(index) not in COLOURS:
        return False
    people = listed("person_nouns.txt") | listed("group_nouns.txt") | {"skin"}
    last = index + 1
    while analysis.tag(last)[:2] in ("JJ", "NN", "CC", "VB"):
        last += 1
    is_of_subject = analysis.word(index - 1) in ("are", "is", "was", "were")
    first = 0 if is_of_subject else index
    return any(token.lemma in people for token in analysis.tokens[first:last])


def is_mass(lemma: str) -> bool:
    """Return True for mass nouns, which need no article in the singular: "rice"."""
    return lemma in listed("mass_nouns.txt")


@functools.cache
def listed(file: str) -> frozenset[str]:
    return frozenset(read_word_list(DATA / file))
