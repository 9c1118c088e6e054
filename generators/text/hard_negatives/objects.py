"""The nouns of a caption that can be replaced by others of their kind, in the same number."""

from collections.abc import Iterator

from eqforge.generators.text.analysis import Analysis, Token
from eqforge.generators.text.coordination.conjuncts import (
    OPENERS,
    Range,
    is_living,
    is_mass,
    is_mass_noun,
    tag_at,
    word_at,
    words_of,
)
from eqforge.generators.text.fixed_expressions import is_in_fixed_expression
from eqforge.generators.text.hard_negatives.fitting import fitting_words
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.hard_negatives.places import Place
from eqforge.generators.text.inflection import inflect_word

# Words whose usual sense in captions is not that of their class.
_NEVER = frozenset(("back", "glasses", "skis"))
_GENDERED = frozenset(("boy", "gentleman", "girl", "guy", "lady", "man", "woman"))
_GENDER = frozenset(("he", "her", "hers", "herself", "him", "himself", "his", "she"))
_ONE = frozenset(("a", "an", "another", "each", "every", "one"))
_MANY = frozenset(
    (
        *("both", "few", "many", "multiple", "numerous", "several", "some", "these", "those"),
        *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    )
)
_PICTURES = frozenset(("drawing", "image", "painting", "photo", "photograph", "picture", "shot"))
_LISTS = frozenset((",", "and", "&", "or"))
_BESIDE = frozenset(
    (
        *("beside", "by", "has", "have", "having", "includes", "including", "near", "of", "sell"),
        *("selling", "sells", "to", "with"),
    )
)
_INSIDE = frozenset(  # of which nothing is "on"
    (
        *("backpack", "bag", "basket", "bottle", "bowl", "bucket", "crate", "cup", "desert"),
        *("forest", "glass", "mug", "pan", "pot", "suitcase", "tent", "vase"),
    )
)
_UPON = frozenset(  # of which nothing is "in"
    (
        *("beach", "bench", "bridge", "counter", "couch", "desk", "hill", "mountain", "path"),
        *("plate", "shelf", "sidewalk", "skateboard", "snowboard", "sofa", "stool", "surfboard"),
        *("table", "trail"),
    )
)
_USING = frozenset(("answering", "on", "use", "uses", "using"))  # a phone, and no clock
_NOT_AT = frozenset(("bed", "bench", "chair", "couch", "hill", "mountain", "sofa", "stool"))
_UNFIT = {
    "at": _NOT_AT,
    "in": _UPON,
    "inside": _UPON,
    "into": _UPON,
    "on": _INSIDE,
    "onto": _INSIDE,
}
_UNFIT["of"] = _UNFIT["atop"] = _INSIDE  # "on top of"
_NOT_OF = frozenset(
    ("building", "land", "land vehicle", "slope or shore", "water")
)  # "a train of animals"
_OUTSIDE = ("", ",", ".", "CC", "IN", "RP", "TO", "VB", "VBD", "VBG", "VBP", "VBZ")
_NOUN_TAGS = ("NN", "NNS")
_ONE_FORM = frozenset(("deer", "fish", "moose", "sheep"))  # of one or of several
_PLURAL_ONLY = frozenset(("jeans", "pants", "shorts", "trousers"))


def object_places(analysis: Analysis) -> Iterator[Place]:
    """Yields the heads of noun phrases with their replacements.

    A compound ("fire hydrant") is replaced as a whole or not at all. Things in a list, or beside
    something, are left alone: what replaces them may be there as well. So is a man with "his" hat,
    and what the caption names twice.

    Args:
      analysis: the caption's analysis.

    Raises:
      MissingExtra: a package of the extra "text" is not installed.
    """
    has_gender = any(token.text.lower() in _GENDER for token in analysis.tokens)
    for phrase, first, is_open in _heads(analysis):
        last = phrase[1]
        head = analysis.tokens[last - 1]
        own = [token.text.lower() for token in analysis.tokens[first:last]]
        is_bound = len(own) == 1 and is_in_fixed_expression(analysis.text, head.start, head.end)
        if (
            is_bound or own[-1] in _NEVER or tag_at(analysis, last) in OPENERS
        ):  # "watches the water"
            continue
        if not is_living(analysis, phrase) and _is_among_others(analysis, phrase):
            continue
        if tag_at(analysis, last) == "VBN" and tag_at(analysis, last + 1).startswith(("NN", "JJ")):
            continue  # "glass fronted cabinets"
        if {"another", "other"} & set(words_of(analysis, phrase)):
            continue
        groups = closed_classes("object").groups.get(head.lemma, ())
        if word_at(analysis, last) == "of" and not _NOT_OF.isdisjoint(groups):
            continue  # "a train of animals", "a field of tall grass"
        if head.lemma in _GENDERED and has_gender:
            continue
        start = _start(analysis, phrase[0])
        counted = not _ONE.isdisjoint(words_of(analysis, (start, first)))
        is_open = is_open or tag_at(analysis, start) in OPENERS
        is_plural = head.tag == "NNS" or _are_several(analysis, phrase, is_open)
        if head.lemma in _ONE_FORM and not (counted or _are_several(analysis, phrase, is_open)):
            continue
        if sum(token.lemma == head.lemma for token in analysis.tokens) > 1:
            continue
        names = (" ".join(own), " ".join([*own[:-1], head.lemma]))
        found = next(filter(None, (_alternatives(analysis, first, last, n) for n in names)), ())
        before = word_at(analysis, phrase[0] - 1)
        is_bare = last - phrase[0] == 1 and head.tag == "NN"  # "off camera", "on tv"
        if "device" in groups and (before in _USING or (is_bare and phrase[0] > 0)):
            continue
        unfit = _UNFIT.get(word_at(analysis, start - 1), frozenset())
        if any(token.lemma in ("grass", "grassy", "tree") for token in analysis.tokens):
            unfit |= {"desert", "forest"}
        forms = tuple(
            f
            for w in found
            if w not in unfit
            and (f := _in_number(w, head, counted, is_open, is_plural)) is not None
        )
        if forms:
            yield Place(first=first, last=last, words=forms)


def _alternatives(analysis: Analysis, first: int, last: int, name: str) -> tuple[str, ...]:
    return fitting_words(analysis, (first, last), "object", name)


def _start(analysis: Analysis, first: int) -> int:
    """Returns where a noun phrase starts that the tagger may have cut: "a snow | covered hill"."""
    here = first
    while tag_at(analysis, here - 1) not in _OUTSIDE and tag_at(analysis, here) not in OPENERS:
        here -= 1
    return here


def _is_among_others(analysis: Analysis, phrase: Range) -> bool:
    """Tells whether a thing stands in a list, or beside or with something."""
    before, behind = word_at(analysis, phrase[0] - 1), word_at(analysis, phrase[1])
    is_shown = before == "of" and word_at(analysis, phrase[0] - 2) in _PICTURES
    return (before in _BESIDE and not is_shown) or before in _LISTS or behind in _LISTS


def _heads(analysis: Analysis) -> Iterator[tuple[Range, int, bool]]:
    """Yields noun phrases with the first token of the noun that heads them, compounds as a whole.

    Yields:
      The phrase, that token, and whether a determiner opens the phrase.
    """
    named = closed_classes("object").groups
    for first, last in analysis.noun_phrases:
        start = last - 1
        if (
            start > first
            and f"{word_at(analysis, start - 1)} {analysis.tokens[start].lemma}" in named
        ):
            start -= 1  # "hot dog"
        while start > first and analysis.tokens[start - 1].tag[:2] in ("NN", "HY", "VB"):
            start -= 1
        if analysis.tokens[last - 1].tag in _NOUN_TAGS:
            opened = any(token.tag in OPENERS for token in analysis.tokens[first:start])
            yield (first, last), start, opened


def _are_several(analysis: Analysis, phrase: Range, is_opened: bool) -> bool:
    """Tells whether a noun without ending is a plural: "three sheep", "a group of zebra"."""
    before = [word_at(analysis, index) for index in range(phrase[0], phrase[1] - 1)]
    if not _MANY.isdisjoint(before):
        return True
    is_of_many = word_at(analysis, phrase[0] - 1) == "of" and not is_opened
    return is_of_many and is_living(analysis, phrase)


def _in_number(
    word: str, head: Token, is_counted: bool, is_opened: bool, is_plural: bool
) -> str | None:
    """Returns a noun in the number needed to replace another, None if it has no such form.

    Args:
      word: the noun to put in, in the singular.
      head: the noun to replace.
      is_counted: whether "a", "an" or "one" stands before it, which "rice" cannot follow.
      is_opened: whether any determiner opens its phrase; without one, "rice" can only become
        "potatoes", not "potato".
      is_plural: whether it names several.
    """
    *rest, last = word.split()
    if is_mass_noun(last):
        return None if is_counted or is_plural else word
    is_bare = not is_opened and is_mass(head)
    if not (is_plural or is_bare) or last in _PLURAL_ONLY:
        return word
    plural = inflect_word(last, "NNS")
    return None if plural is None else " ".join([*rest, plural])
