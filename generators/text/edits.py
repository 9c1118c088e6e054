"""Edit spans of a text and keep everything else; make "a" and "an" agree.

Punctuation and spacing are kept, the changed spans can be stored with the result, and edits can be
undone. Offsets count Unicode code points, like Python strings.
"""

import dataclasses
import functools
import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from eqforge.generators.text.analysis import Analysis, find_tokens
from eqforge.generators.text.parts import inflect_engine
from eqforge.schemas.records.values import Span as Span

if TYPE_CHECKING:
    import inflect


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """Replaces text[start:end] with `replacement`; an insertion if start == end."""

    start: int
    end: int
    replacement: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class EditedText:
    """A text after edits, and the span of each edit in the original and in this text."""

    text: str
    spans_before: tuple[Span, ...]
    spans_after: tuple[Span, ...]


def apply_edits(text: str, edits: Sequence[Edit]) -> EditedText:
    """Apply edits to the original text; raise ValueError if they overlap or are unsorted."""
    parts: list[str] = []
    before: list[Span] = []
    after: list[Span] = []
    done = shift = 0
    for edit in edits:
        start, end, replacement = edit.start, edit.end, edit.replacement
        if not done <= start <= end <= len(text):
            raise ValueError(
                f"expected sorted, separate edits inside the text of {len(text)} characters, "
                f"found {edit} after an edit that ends at {done}"
            )
        parts.append(text[done:start])
        parts.append(replacement)
        before.append(Span(start=start, end=end))
        after.append(Span(start=start + shift, end=start + shift + len(replacement)))
        shift += len(replacement) - (end - start)
        done = end
    parts.append(text[done:])
    return EditedText(text="".join(parts), spans_before=tuple(before), spans_after=tuple(after))


def exchange_phrases(
    analysis: Analysis, left: tuple[int, int], right: tuple[int, int]
) -> tuple[Edit, Edit]:
    """Exchange two phrases, `left` first; a capital at the caption's start stays there."""
    tokens, text = analysis.tokens, analysis.text
    spans = [(tokens[first].start, tokens[last - 1].end) for first, last in (left, right)]
    left_text, right_text = (text[start:end] for start, end in spans)
    first = tokens[left[0]]
    if left[0] == 0 and first.text[0].isupper():
        right_text = right_text[0].upper() + right_text[1:]
        is_name = first.tag.startswith("NNP") or (len(first.text) > 1 and first.text.isupper())
        left_text = left_text if is_name else left_text[0].lower() + left_text[1:]
    return (
        Edit(start=spans[0][0], end=spans[0][1], replacement=right_text),
        Edit(start=spans[1][0], end=spans[1][1], replacement=left_text),
    )


def common_ends(left: Sequence[str], right: Sequence[str]) -> tuple[int, int]:
    from rapidfuzz.distance import Postfix, Prefix

    first = Prefix.similarity(left, right)
    return first, Postfix.similarity(left[first:], right[first:])


_VOWEL_NUMBER = re.compile(r"8|1[18](?!\d)")  # an 8, an 80-foot, an 11th, an 18-wheeler
# "oh" or "zero", "eighteen hundred" or "one thousand"
_EITHER_NUMBER = re.compile(r"0|1[18]\d\d(?!\d)")
# Usage allows both before the "h" of an unstressed syllable, and before "herb" and "homage",
# whose "h" American English drops (Merriam-Webster's Dictionary of English Usage, "a, an").
_EITHER_H = re.compile(
    r"habitual|hallucin|harmoni[co]|heredit|heroic|herb(?!er)|hilari|histori[aco]|holistic|homage"
    r"|horizon|horrific|hotel|hypnotic|hypothe[st]|hysteri"
)
# May be spelt out or read as a word: no vowel, a digit, "x" and a consonant ("Xbox"), and acronyms
# that captions write in lower case.
_MAYBE_LETTERS = re.compile(
    r"[fhlmnrsx](?:[^\Waeiouy_]*|\w*\d\w*|(?<=x)[^\Waeiouy_]\w*)"
    r"|(?:faq|fbi|fda|hiv|led|mba|mia|mri|nba|ngo|npa|rna|sos|suv|unesco|ups|usa)s?"
)
# Apart from names and acronyms, only words that inflect reads differently from the CMU Pronouncing
# Dictionary, among the 47,726 that it has of the 60,000 most frequent ones.
_MISREAD = (
    ("usher.*", "an"),
    ("hors", "an"),
    ("ones.*", "a"),
    ("oneness", "a"),
    ("uni|unanimity", "a"),
)
_ANY_ARTICLE = re.compile(r"(?<![^\W_])an?(?![^\W_])", re.IGNORECASE)
_LABELS = frozenset(("grade", "group", "letter", "letters", "level", "plan", "type", "vitamin"))


def article_for(word: str) -> str | None:
    """Return a word's article, "a" or "an"; None if its spelling does not show it.

    Undecided are words that may be spelt out ("an MP", "a MAN", "an Xbox"), and words and numbers
    that take either ("a historic", "an historic"; "an 1800s house").
    """
    lower = word.lower()
    if not word[:1].isalnum() or (len(word) > 1 and word[0].isalpha() and word.isupper()):
        return None
    if word[0].isdigit():
        either = _EITHER_NUMBER.match(word) is not None
        return None if either else "an" if _VOWEL_NUMBER.match(word) else "a"
    if _EITHER_H.match(lower) or (len(word) > 1 and _MAYBE_LETTERS.fullmatch(lower)):
        return None
    return _article_by_sound(lower)


def agree_articles(text: str) -> tuple[Edit, ...]:
    """Make every "a" and "an" agree with the next word; labels ("letter a", "team A") stay."""
    if not _ANY_ARTICLE.search(text):
        return ()
    tokens = list(find_tokens(text))
    edits = []
    for index, (token, following) in enumerate(itertools.pairwise(tokens)):
        found = token[0]
        before = tokens[index - 1][0].lower() if index else "."
        if found.lower() not in ("a", "an"):
            continue
        is_inside = before not in (".", "!", "?", '"', ":")
        if before in _LABELS or (found[0].isupper() and is_inside):
            continue  # a letter, not an article: "the letter a", "team A"
        if text[token.end() : following.start()].strip(" \t") or token.end() == following.start():
            continue
        right = article_for(following[0])
        if right is not None and right != found.lower():
            cased = right.capitalize() if found[0].isupper() else right
            edits.append(Edit(start=token.start(), end=token.end(), replacement=cased))
    return tuple(edits)


@functools.lru_cache(maxsize=65_536)
def _article_by_sound(word: str) -> str:
    return str(_engine().a(word).split()[0])


@functools.cache
def _engine() -> "inflect.engine":
    engine = inflect_engine()
    for pattern, article in _MISREAD:
        (engine.defan if article == "an" else engine.defa)(pattern)
    return engine
