"""Compare words of two texts, also inside words, and check whether a text stays true.

Lists in the package decide whether an exchange keeps a caption true: one made for captions
(`caption_synonyms.tsv`), the full synonyms of hard positives, and `broader_words.tsv`, in which
every narrower word implies the broader one: a man is a person. WordNet is not used: in the first
senses of its words a girl is a woman, and a bike a motorcycle.
"""

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from eqforge.generators.text.analysis import find_tokens
from eqforge.generators.text.caption_words import ANY_NOUN, PartOfSpeech, caption_synonyms
from eqforge.generators.text.language import in_dictionary, is_sure_word
from eqforge.generators.text.lexicon import load_lexicon
from eqforge.generators.text.parts import inflect_word, lemmatizer
from eqforge.generators.text.words import DENIALS, is_unspaced, read_table, word_spans

_ENDINGS = frozenset(("s", "es", "ed", "d", "ing", "er", "r", "est", "st", "ly", "y", "ies"))
_LETTER_OR_DIGIT = re.compile(r"\w")
_MIN_PART = 2
_SPELLING = 2  # letters by which two spellings of a word, or a word and its plural, differ
_MAX_WORD = 64  # readings grow with the square of a word's length
_MIN_MEMBER = 3  # letters of a member of a compound


@dataclass(frozen=True, kw_only=True, slots=True)
class WordExchange:
    """A run of words and the run that replaces it, in lower case; either may be empty."""

    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PartialEdit:
    """A reading of an exchange of words as an exchange of letters inside one.

    Attributes:
      before, after: the two words: "covered", "covecrimson".
      part_before, part_after: the exchanged parts: "red", "crimson".
      damaged: which of the two is not a word: "after", which leaves no other reading; "before", if
        the edit was made there ("baseball" from "basebat"); "neither", if both are words. The last
        two need proof: the same file exchanges the parts as whole words elsewhere ("old" for "aged"
        makes "caged" "cold").
    """

    before: str
    after: str
    part_before: str
    part_after: str
    damaged: Literal["after", "before", "neither"]


@functools.lru_cache(maxsize=4)  # the checks of one record ask several times; texts may be long
def exchanged_words(before: str, after: str) -> tuple[WordExchange, ...]:
    from rapidfuzz.distance import Levenshtein

    words, other = words_of(before), words_of(after)
    numbers: dict[str, int] = {}
    left, right = ([numbers.setdefault(w, len(numbers)) for w in side] for side in (words, other))
    runs = itertools.groupby(Levenshtein.opcodes(left, right), key=lambda edit: edit.tag == "equal")
    exchanges = []
    for is_equal, run in runs:
        if is_equal:
            continue
        first, *rest = run
        last = rest[-1] if rest else first
        exchanges.append(
            WordExchange(
                before=words[first.src_start : last.src_end],
                after=other[first.dest_start : last.dest_end],
            )
        )
    return tuple(exchanges)


@functools.lru_cache(maxsize=4)
def words_of(text: str) -> tuple[str, ...]:
    if is_unspaced(text):
        return tuple(text[start:end].lower() for start, end in word_spans(text))
    tokens = (match[0] for match in find_tokens(text))
    return tuple(token.lower() for token in tokens if _LETTER_OR_DIGIT.search(token))


def find_partial_edits(exchange: WordExchange) -> Iterator[PartialEdit]:
    """Yield the readings of an exchange as one of letters inside words.

    A word has been edited inside if it equals another except for a part that is itself a word and
    was replaced with another word. If the result is not a word, only the reading with the shortest
    parts is given. Nothing is given for forms of one word ("woman", "women"), or if at most two
    letters differ, which is an inflection or another spelling. If both are words, they must also
    differ by more than an ending ("walking", "talking") or a member of a compound ("onstage",
    "offstage"). Strings of more than 64 characters are no words.
    """
    for new in exchange.after:
        for old in exchange.before if new not in exchange.before else ():
            if max(len(old), len(new)) <= _MAX_WORD:
                yield from _partial_edits(old, new)


@functools.lru_cache(maxsize=65_536)
def _partial_edits(old: str, new: str) -> tuple[PartialEdit, ...]:
    readings = tuple(_all_partial_edits(old, new))
    is_certain = readings and readings[0].damaged == "after"
    return readings[:1] if is_certain else readings


def _all_partial_edits(old: str, new: str) -> Iterator[PartialEdit]:
    from rapidfuzz.distance import Levenshtein

    forms = ({old}.union(*lemmatizer().getAllLemmas(old).values())) & (
        {new}.union(*lemmatizer().getAllLemmas(new).values())
    )
    if forms:
        return
    is_word = not new.isascii() or is_sure_word(new)
    was_word = not old.isascii() or is_sure_word(old)
    if not is_word and Levenshtein.distance(old, new) <= _SPELLING:
        return
    for head, tail, before, after in _readings(old, new):
        longer = abs(len(before) - len(after))
        is_ending = before.startswith(after) or after.startswith(before)
        if is_ending and ((is_word and was_word) or longer <= _SPELLING):
            continue
        if is_word and was_word:  # do they differ in a member of a compound?
            rest = [part for part in (head, tail) if part]
            if all(len(part) >= _MIN_MEMBER and is_sure_word(part) for part in rest):
                continue
        is_stem = not head and tail in _ENDINGS and is_word
        if not is_stem and in_dictionary(before) and in_dictionary(after):
            yield PartialEdit(
                before=old,
                after=new,
                part_before=before,
                part_after=after,
                damaged="neither" if is_word and was_word else "before" if is_word else "after",
            )


def _readings(old: str, new: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield readings of `new` as `old` with a part replaced, longest rest first.

    Yields:
      The common prefix, the common suffix, not both of them empty, and the two parts between.
    """
    from rapidfuzz.distance import Postfix, Prefix

    shortest = min(len(old), len(new))
    heads, tails = Prefix.similarity(old, new), Postfix.similarity(old, new)
    sizes = ((head, tail) for head in range(heads + 1) for tail in range(tails + 1))
    for head, tail in sorted(sizes, key=lambda size: -sum(size)):
        before, after = old[head : len(old) - tail], new[head : len(new) - tail]
        is_inside = not (old[:head].endswith("-") or old[len(old) - tail :].startswith("-"))
        if not is_inside:
            continue
        if head + tail and min(len(before), len(after)) >= _MIN_PART and head + tail < shortest:
            yield old[:head], old[len(old) - tail :], before, after


_ARTICLES = frozenset(("a", "an", "the"))
_JOINS = frozenset(("and", "or"))
_SHARED = 4  # most words with which both sides may begin, or end: "a tennis ball and a tennis net"


def swaps_sides(words: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return True if two texts of equal length differ only by the order around an "and" or "or".

    A side before "of" is rejected: in "a pear and a pile of apples" the apples belong to the pile.
    """
    changed = [
        index for index, pair in enumerate(zip(words, other, strict=True)) if len({*pair}) > 1
    ]
    first, last = changed[0], changed[-1] + 1
    for start in range(max(0, first - _SHARED), first + 1):
        for end in range(last, min(len(words), last + _SHARED) + 1):
            moved = words[start:end]
            sides = {(*moved[i + 1 :], w, *moved[:i]) for i, w in enumerate(moved) if w in _JOINS}
            if other[start:end] in sides:
                return words[end : end + 1] != ("of",)
    return False


def stays_true(words: tuple[str, ...], exchanges: tuple[WordExchange, ...]) -> bool:
    """Return True if a caption with some words exchanged is true wherever the caption is.

    Each exchange must be one of articles, of a synonym of the same number, of another form of the
    same verb ("holds", "holding"), or of a broader word. A caption that denies something takes no
    broader word: "no dog" does not say "no animal".
    """
    is_denial = not DENIALS.isdisjoint(words)
    return bool(exchanges) and all(_keeps_truth(each, is_denial) for each in exchanges)


def _keeps_truth(exchange: WordExchange, is_denial: bool) -> bool:
    before, after = exchange.before, exchange.after
    if _ARTICLES.issuperset(before + after):
        return True
    if len(before) == len(after):
        pairs = zip(before, after, strict=True)
        if all(_is_word_kept(left, right, is_denial) for left, right in pairs):
            return True
    return (" ".join(before), " ".join(after)) in _phrases()


@functools.lru_cache(maxsize=65_536)
def _is_word_kept(before: str, after: str, is_denial: bool) -> bool:
    if before == after or {before, after} <= _ARTICLES or (before, after) in _phrases():
        return True
    if _is_same_verb(before, after):
        return True
    nouns = (*_nouns(before), *_nouns(after))
    if len(nouns) == 2 and nouns[0][1] == nouns[1][1]:
        if _is_synonym(nouns[0][0], nouns[1][0], "n"):
            return True
        if not is_denial and nouns[0][0] in _narrower().get(nouns[1][0], ()):
            return True
    if _is_synonym(before, after, "a"):
        return True
    return not is_denial and before in _narrower().get(after, ())


def _is_synonym(word: str, synonym: str, pos: PartOfSpeech) -> bool:
    rows = caption_synonyms().get((pos, word), ())
    return any(row.before <= {ANY_NOUN} and not row.unless and synonym in row.words for row in rows)


def _is_same_verb(before: str, after: str) -> bool:
    """Return True if two words are forms of one verb, one of them the "-ing" form.

    Other forms are ambiguous: "tattooed" may be passive, and "watches" the plural of "watch".
    """
    common = set(_lemmas(before, "VERB")) & set(_lemmas(after, "VERB"))
    for lemma in common:
        running = inflect_word(lemma, "VBG")
        forms = {running, inflect_word(lemma, "VBZ"), lemma}
        if running in (before, after) and {before, after} <= forms:
            return True
    return False


@functools.lru_cache(maxsize=65_536)
def _nouns(word: str) -> tuple[tuple[str, bool], ...]:
    if word == "people":
        return (("person", True),)
    lemmas = _lemmas(word, "NOUN")
    return ((lemmas[0], lemmas[0] != word),) if lemmas else ()


@functools.lru_cache(maxsize=65_536)
def _lemmas(word: str, tag: str) -> tuple[str, ...]:
    return tuple(lemmatizer().getAllLemmas(word).get(tag, ()))


@functools.cache
def _phrases() -> frozenset[tuple[str, str]]:
    """Return the full synonyms of the lexicon of hard positives: big for huge, not the reverse."""
    return frozenset((e.word, e.replacement) for e in load_lexicon() if e.synonymy == "full")


@functools.cache
def _narrower() -> dict[str, frozenset[str]]:
    rows = read_table("broader_words.tsv")
    return {row["broader"]: frozenset(row["narrower"].split(",")) for row in rows}
