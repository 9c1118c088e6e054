"""Exchange words and phrases that mean the same if the words around them allow it.

`data/rewordings.tsv` has the columns word, replacement, ways, tag, where, fits, plural and ground,
the source that says they mean the same. `ways` is "both" if the replacement may become the word,
too. `tag` names tags of the first word, or their prefixes; V is a verb in any form. `where` is a
context (see `contexts`), `fits` one of the functions below, and `plural` an ending that both may
have.

Left out, because only one of the two follows from the other: "a couple of" and "two" (it may be
three), "on top of" and "on" (a picture on a wall), "in the middle of" and "in the center of".
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from eqforge.generators.text.analysis import Analysis, Token
from eqforge.generators.text.caption_words import finite_forms
from eqforge.generators.text.contexts import Context, fits_context, parse_context
from eqforge.generators.text.coordination.conjuncts import PRONOUNS
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.parts import inflect_word
from eqforge.generators.text.perturbations.synonyms import article_edits, match_case
from eqforge.generators.text.rewordings.records import Edits, Finder, has_plain_spacing, replacement
from eqforge.generators.text.words import (
    is_fixed_expression,
    is_in_fixed_expression,
    read_table,
    word_set,
)

Fits = Callable[[Analysis, int, int], bool]
"""Whether a phrase may be exchanged in its place, given its tokens; the last is exclusive."""

_BE: Final = frozenset(("are", "is"))

_DEGREES: Final = word_set("phrases.degrees")
"""Words for how near or how close up something is: "so near", "very close up"."""


def precedes_phrase(analysis: Analysis, _: int, last: int) -> bool:
    """Return True if a noun phrase follows, other than "last", "that" and "himself".

    Word lexicons take some verbs for nouns: "a tower with a clock atop sits".
    """
    word = analysis.word(last)
    if (
        word in finite_forms()
        or word in ("last", "that", "none", "nothing", "front")
        or word.endswith(("self", "selves"))
    ):
        return False
    return any(start == last for start, _ in analysis.noun_phrases)


def is_whole_phrase(analysis: Analysis, _: int, last: int) -> bool:
    """Return True if a phrase does not begin a longer one: not "each other person"."""
    return not analysis.tag(last).startswith(("NN", "JJ", "VBN"))


def _is_unnamed(analysis: Analysis, first: int, last: int) -> bool:
    """Return True if a person opens the caption as a noun phrase: not "a person shaped cake"."""
    is_whole = (first, last) in analysis.noun_phrases and analysis.word(last) != "else"
    return first == 0 and is_whole and is_whole_phrase(analysis, first, last)


def _is_place(analysis: Analysis, first: int, last: int) -> bool:
    """Return True if a preposition of place stands before a noun phrase: not "the next to last"."""
    is_free = analysis.tag(first - 1) not in ("DT", "PRP$", "TO")
    return is_free and analysis.word(first - 1) != "by" and precedes_phrase(analysis, first, last)


def _is_support(analysis: Analysis, first: int, last: int) -> bool:
    """Return True if something stands on another thing: not "a kiss on top of her head"."""
    return analysis.tag(last) != "PRP$" and _is_place(analysis, first, last)


def _is_inside_or_outside(analysis: Analysis, first: int, last: int) -> bool:
    """Return True for a preposition "inside" or "outside" before a noun with an article."""
    before = analysis.tag(first - 1)
    if before.startswith(("DT", "JJ", "PRP$", "IN", "TO", "POS")):
        return False
    return analysis.word(last) in ("a", "an", "the") and _is_place(analysis, first, last)


def _is_distance(analysis: Analysis, first: int, last: int) -> bool:
    before = analysis.word(first - 1)
    is_plain = before not in (*_DEGREES, "and", "or", "side")  # "clean and near modern"
    is_plain = is_plain and analysis.tag(last) not in ("CD", "PRP$")
    others = [token.text.lower() for token in analysis.tokens[:first] + analysis.tokens[last:]]
    is_repeated = {"close", "near"} & set(others)  # "close to a log close to a tree"
    return is_plain and not is_repeated and _is_place(analysis, first, last)


_FOLDED = frozenset(("bagel", "bread", "bun", "crepe", "omelet", "pastry", "pita", "roll", "wrap"))


def _is_full(analysis: Analysis, first: int, last: int) -> bool:
    """Return True if the full thing is named right before, and is no food with a filling."""
    is_one = analysis.tag(last) in ("DT", "CD", "PRP$") or analysis.word(last) == "lots"
    if is_one or not precedes_phrase(analysis, first, last):
        return False  # "filled with a bowl", "filled with lots of"
    start, end = last, dict(analysis.noun_phrases).get(last, last)
    while analysis.word(end) == ",":
        end = dict(analysis.noun_phrases).get(end + 1, start)
    joined = end + (analysis.word(end) in ("&", "and"))
    if joined > end and analysis.word(joined) in ("a", "an", "one", "the"):
        return False  # "furniture and a window"
    if analysis.word(first - 1) in _BE:
        return analysis.word(first - 2) in ("that", "which")
    if not analysis.tag(first - 1).startswith("NN") or analysis.word(first - 1) == "half":
        return False
    holder = analysis.tokens[first - 1].lemma
    is_food = bool({"dish", "sweet"} & set(closed_classes("object").groups.get(holder, ())))
    return not is_food and holder not in _FOLDED


def _is_covered_all_over(analysis: Analysis, first: int, last: int) -> bool:
    """Return True if the cover has no article: "covered in snow", not "covered in a box"."""
    has_article = analysis.tag(last) in ("DT", "PRP$", "CD", "PRP", "WP", "EX")
    return not has_article and precedes_phrase(analysis, first, last)


def _is_material(analysis: Analysis, first: int, last: int) -> bool:
    before = analysis.tag(first - 1)
    is_behind = before.startswith("NN") or analysis.word(first - 1) in _BE
    return is_behind and _is_covered_all_over(analysis, first, last)


_COUNTED_BEFORE = word_set("phrases.counted_before")


def _counts(analysis: Analysis, first: int, last: int) -> bool:
    before = analysis.tag(first - 1), analysis.word(first - 1)
    if before[0] in ("DT", "PRP$", "POS", "CD") or before[1] in _COUNTED_BEFORE:
        return False
    if before[1] == "and" and analysis.word(first - 2) == "lots":
        return False
    if before[1] == "of" or analysis.tag(last) in ("VBN", "VBG", "RB"):
        return False  # "one of many", "many parked cars", which taggers may read in two ways
    if "many" in (before[1], analysis.word(last)):
        return False  # "many many dogs"
    for start, end in analysis.noun_phrases:
        if start in (first, last) and end > last:
            head, opening = analysis.tokens[end - 1], analysis.tag(last)
            is_open = opening not in ("DT", "PRP$", "CD", "PDT")
            other = analysis.phrase_from(end + 1)
            if other is not None and analysis.word(end) in ("&", ",", "and", "or"):
                noun = analysis.tokens[other[1] - 1]
                if not _is_plural(noun) and analysis.tag(other[0]) != "DT":
                    return False  # "lots of cars and traffic"
            return _is_plural(head) and is_open
    return False


def _counts_large(analysis: Analysis, first: int, last: int) -> bool:
    """Return True if nothing else is large: not "a large number of large dogs"."""
    others = analysis.tokens[:first] + analysis.tokens[last:]
    return all(token.lemma != "large" for token in others) and _counts(analysis, first, last)


def _is_plural(noun: Token) -> bool:
    return noun.tag in ("NNS", "NNPS") or noun.lemma == "people"


def _is_amount(analysis: Analysis, first: int, last: int) -> bool:
    before = analysis.word(first - 1)
    if before in ("and", "quite", "such", "whole", "awful", "the"):
        return False
    opening = analysis.tag(last)
    if opening in ("DT", "PRP$", "PRP", "CD", "PDT"):
        return False
    head = next((end for start, end in analysis.noun_phrases if start == last), None)
    return head is not None and (before not in _BE or analysis.tokens[head - 1].tag == "NN")


def _is_whole_noun(analysis: Analysis, first: int, last: int) -> bool:
    """Return True if a noun is no verb and no part of a compound, such as "photo booth"."""
    if analysis.tag(last) in ("DT", "PRP", "PRP$"):
        return False  # "photographs herself"
    return not any(
        analysis.tag(index).startswith("NN") or analysis.tag(index) in ("HYPH", "POS")
        for index in (first - 1, last)
    )


def _opens_frame(analysis: Analysis, first: int, last: int) -> bool:
    """Return True if the caption opens with a noun for itself: "a large picture of a dog"."""
    opener = analysis.word(0) in ("a", "an", "the", "this") or first == 0
    is_first = bool(analysis.noun_phrases) and analysis.noun_phrases[0] == (0, last)
    is_of = analysis.word(last) == "of" and analysis.tag(last + 1) not in PRONOUNS
    return opener and is_first and is_of and _is_whole_noun(analysis, first, last)


def _opens_caption(analysis: Analysis, first: int, last: int) -> bool:
    """Return True if a whole noun opens the caption, or the part before its "of"."""
    return first == 0 and _is_whole_noun(analysis, first, last)


def _is_undescribed(analysis: Analysis, first: int, last: int) -> bool:
    """Return True for a whole noun after "a" without a participle: no "street lined with cars"."""
    begins = any(
        start <= first < end and analysis.word(start) in ("a", "an")
        for start, end in analysis.noun_phrases
    )
    is_described = analysis.tag(last) in ("VBG", "VBN")
    return begins and not is_described and _is_whole_noun(analysis, first, last)


def _is_close_up(analysis: Analysis, first: int, last: int) -> bool:
    """Return True if "close up" has no degree: not "a very close up view"."""
    is_free = analysis.word(first - 1) not in _DEGREES
    return is_free and precedes_phrase(analysis, first, last)


_FITS: Final[Mapping[str, Fits]] = {
    each.__name__.removeprefix("_"): each
    for each in (
        is_whole_phrase,
        _is_place,
        _is_support,
        _is_distance,
        _is_inside_or_outside,
        _is_full,
        _is_covered_all_over,
        _is_material,
        _is_unnamed,
        _is_amount,
        _counts,
        _counts_large,
        _is_whole_noun,
        _is_close_up,
        _opens_caption,
        _is_undescribed,
        _opens_frame,
    )
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Phrase:
    word: tuple[str, ...]
    replacement: str
    tags: tuple[str, ...]
    where: Context
    fits: Fits | None
    plural: str

    @property
    def is_verb(self) -> bool:
        return self.tags == ("V",)


def _find(phrase: _Phrase, analysis: Analysis) -> Iterator[Edits]:
    size = len(phrase.word)
    longer = tuple(phrase.replacement.split())  # such as "laptop computer" for "laptop"
    is_longer = len(longer) > size and longer[:size] == phrase.word
    plural = (*phrase.word[:-1], phrase.word[-1] + phrase.plural)
    for index, token in enumerate(analysis.tokens):
        first = token.lemma if phrase.is_verb else token.text.lower()
        if not first.startswith(phrase.word[0]) or not token.tag.startswith(phrase.tags or ""):
            continue
        span = (index, index + size)
        words = (first, *analysis.words((index + 1, index + size)))
        if words not in (phrase.word, plural) or not has_plain_spacing(analysis, *span):
            continue
        if is_longer and analysis.words((index, index + len(longer))) == longer:
            continue
        if not _is_free(analysis, *span, phrase) or not fits_context(analysis, span, phrase.where):
            continue
        ending = "" if words == phrase.word else phrase.plural
        if edits := _edits(analysis, *span, phrase, ending):
            yield edits


def _is_free(analysis: Analysis, first: int, last: int, phrase: _Phrase) -> bool:
    opening, *rest = analysis.tokens[first:last]
    if phrase.fits is not None:
        is_in_lower_case = not any(token.text[0].isupper() for token in rest)
        return is_in_lower_case and phrase.fits(analysis, first, last)
    return is_fixed_expression(" ".join(phrase.word)) or not is_in_fixed_expression(
        analysis.text, opening.start, analysis.tokens[last - 1].end
    )


def _edits(
    analysis: Analysis, first: int, last: int, phrase: _Phrase, ending: str
) -> tuple[Edit, ...]:
    opening = analysis.tokens[first]
    text = phrase.replacement + ending
    if phrase.is_verb:
        if opening.tag == "VBN":
            return ()  # "is prepared to" is another verb than "prepare to"
        verb, _, rest = text.partition(" ")
        form = inflect_word(verb, "VB" if opening.tag == "VBP" else opening.tag)
        if form is None:
            return ()
        text = f"{form} {rest}".strip()
    edit = replacement(analysis, first, last, match_case(text, opening.text))
    return (*article_edits(analysis.tokens, first, text), edit)


def _rules() -> Iterator[tuple[str, Finder]]:
    for row in read_table("rewordings.tsv"):
        pairs = [(row["word"], row["replacement"]), (row["replacement"], row["word"])]
        for word, other in pairs if row["ways"] == "both" else pairs[:1]:
            phrase = _Phrase(
                word=tuple(word.split()),
                replacement=other,
                tags=tuple(filter(None, row["tag"].split(","))),
                where=parse_context(row["where"]),
                fits=_FITS[row["fits"]] if row["fits"] else None,
                plural=row["plural"],
            )
            name = f"{word}_as_{other}".replace(" ", "_").replace("-", "_")
            yield name, functools.partial(_find, phrase)


PHRASES: Final = dict(_rules())
