"""The checks that need only one record."""

import re
from collections.abc import Iterator

from eqforge.generators.text.articles import agree_articles
from eqforge.generators.text.clip_tokens import CONTEXT_TOKENS, count_clip_tokens
from eqforge.generators.text.lints.findings import Finding
from eqforge.generators.text.lints.synonymy import stays_true
from eqforge.generators.text.lints.vocabulary import is_known_word
from eqforge.generators.text.lints.word_edits import WordExchange, exchanged_words, words_of
from eqforge.sources.labelled_captions import LabelledCaptions

_LENGTH_GAP_WORDS = 4
_LENGTH_GAP_RATIO = 1.5
# Words of grammar that no sentence has twice in a row, as it may have "that that" and "had had".
_TWICE = re.compile(
    r"\b(a|an|and|at|by|for|from|his|is|it|near|of|or|the|their|to|with)\s+\1\b(?![-\w'])",
    re.IGNORECASE,
)
# What no article stands before: a word is missing, or the article is written twice.
_MISSING_NOUN = re.compile(r"\s+(a|an|and|are|as|at|if|in|into|is|of|on|onto|or)\b", re.IGNORECASE)
_EQUAL_KINDS = {
    ("positive", "negative"): "negative_equals_positive",
    ("positive", "hard_positive"): "unchanged",
    ("positive", "perturbed"): "unchanged",
    ("negative", "hard_positive"): "hard_positive_equals_negative",
}


def captions_of(record: LabelledCaptions) -> dict[str, str]:
    """Returns a record's captions by field, without those it lacks."""
    fields = ("positive", "negative", "hard_positive", "perturbed")
    texts = ((field, getattr(record, field)) for field in fields)
    return {field: text for field, text in texts if text is not None}


def check_record(record: LabelledCaptions) -> Iterator[Finding]:
    """Yields the findings that a single record gives.

    Edits inside words that only other records can prove are left to `set_checks`. A perturbed
    caption may have any words and grammar.

    Raises:
      MissingExtra: a package of the extra "text" is not installed.
    """
    captions = captions_of(record)
    for (left, right), kind in _EQUAL_KINDS.items():
        if left in captions and right in captions:
            yield from _check_equal(record, kind, right, captions[left], captions[right])
    for field, text in captions.items():
        if field != "perturbed":
            yield from _check_articles(record, field, text)
            yield from _check_repetition(record, field, text)
        if field != "positive" and text != record.positive:
            yield from _check_edit(record, field, text)


def _finding(record: LabelledCaptions, kind: str, field: str, detail: str) -> Finding:
    called = record.called(field)
    return Finding(record_id=record.record_id, kind=kind, field=called, detail=detail)


def _check_equal(
    record: LabelledCaptions, kind: str, field: str, left: str, right: str
) -> Iterator[Finding]:
    if left == right:
        yield _finding(record, kind, field, right)
    elif not exchanged_words(left, right):
        yield _finding(record, "case_or_spacing_only", field, f"{left!r} | {right!r}")


def _check_articles(record: LabelledCaptions, field: str, text: str) -> Iterator[Finding]:
    for edit in agree_articles(text):
        if _MISSING_NOUN.match(text, edit.end):
            continue
        yield _finding(record, "article", field, text[edit.start : edit.end + 20])


def _check_repetition(record: LabelledCaptions, field: str, text: str) -> Iterator[Finding]:
    for match in _TWICE.finditer(text):
        yield _finding(record, "word_twice", field, match[0])


def _check_edit(record: LabelledCaptions, field: str, text: str) -> Iterator[Finding]:
    exchanges = exchanged_words(record.positive, text)
    if exchanges and _first_difference_is_cut_off(record.positive, text):
        yield _finding(record, "edit_beyond_context", field, text[-60:])
    if field == "perturbed":
        return
    if field == "negative":
        yield from _check_meaning(record, text, exchanges)
    is_made = record.is_made or field != "negative"
    for word in _invented(record.positive, exchanges) if is_made else ():
        yield _finding(record, "invented_word", field, word)
    lengths = sorted((len(record.positive.split()), len(text.split())))
    gap = lengths[1] - lengths[0]
    if gap >= _LENGTH_GAP_WORDS and lengths[1] >= _LENGTH_GAP_RATIO * lengths[0]:
        yield _finding(record, "length_gap", field, f"{lengths[0]} and {lengths[1]} words")


def _check_meaning(
    record: LabelledCaptions, negative: str, exchanges: tuple[WordExchange, ...]
) -> Iterator[Finding]:
    """Yields what the negative has in common with the positive: its words, or their meaning."""
    if not exchanges:
        return
    words, other = words_of(record.positive), words_of(negative)
    if len(words) == len(other) and sorted(words) == sorted(other):
        yield _finding(record, "word_order_only", "negative", negative)
    elif stays_true(words, exchanges):
        detail = "; ".join(f"{' '.join(e.before)} -> {' '.join(e.after)}" for e in exchanges)
        yield _finding(record, "near_synonym_negative", "negative", detail)


def _invented(positive: str, exchanges: tuple[WordExchange, ...]) -> list[str]:
    """Returns the words of an edit that no dictionary has, without those it only moved."""
    words = (word for exchange in exchanges for word in exchange.after)
    unknown = [word for word in words if word.isascii() and not is_known_word(word)]
    given = {word.removesuffix("s") for word in words_of(positive)} if unknown else set()
    return [word for word in unknown if word.removesuffix("s") not in given]


def _first_difference_is_cut_off(left: str, right: str) -> bool:
    """Tells whether CLIP reads the same tokens of two texts, since they differ only beyond them."""
    shared = next(
        (i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
        min(len(left), len(right)),
    )
    if shared < CONTEXT_TOKENS - 2:  # a token has at least one character
        return False
    prefix = left[: left.rfind(" ", 0, shared + 1) + 1]
    return count_clip_tokens(prefix) >= CONTEXT_TOKENS
