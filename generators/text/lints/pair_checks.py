"""The checks that need one record alone."""

from collections.abc import Iterator

from eqforge.generators.text.articles import agree_articles
from eqforge.generators.text.clip_tokens import CONTEXT_TOKENS, count_clip_tokens
from eqforge.generators.text.lints.findings import Finding
from eqforge.generators.text.lints.vocabulary import is_known_word
from eqforge.generators.text.lints.word_edits import WordExchange, exchanged_words
from eqforge.schemas.text_pairs import TextPair

_LENGTH_GAP_WORDS = 4
_LENGTH_GAP_RATIO = 1.5
_EQUAL_KINDS = {
    ("positive", "negative"): "negative_equals_positive",
    ("positive", "hard_positive"): "unchanged",
    ("negative", "hard_positive"): "hard_positive_equals_negative",
}


def captions_of(pair: TextPair) -> dict[str, str]:
    """Returns the captions of a record by field."""
    captions = {"positive": pair.positive, "negative": pair.negative}
    if pair.hard_positive is not None:
        captions["hard_positive"] = pair.hard_positive
    return captions


def check_pair(pair: TextPair) -> Iterator[Finding]:
    """Yields the findings that one record shows by itself.

    Words edited inside that only other records can prove are left to `set_checks`.

    Raises:
      MissingExtra: a package of the extra "text" is not installed.
    """
    captions = captions_of(pair)
    for (left, right), kind in _EQUAL_KINDS.items():
        if left in captions and right in captions:
            yield from _check_equal(pair.pair_id, kind, right, captions[left], captions[right])
    for field, text in captions.items():
        for edit in agree_articles(text):
            detail = text[edit.start : edit.end + 20]
            yield Finding(record_id=pair.pair_id, kind="article", field=field, detail=detail)
        if field != "positive" and text != pair.positive:
            yield from _check_edit(pair, field, text)


def _check_equal(record_id: str, kind: str, field: str, left: str, right: str) -> Iterator[Finding]:
    if left == right:
        yield Finding(record_id=record_id, kind=kind, field=field, detail=right)
    elif not exchanged_words(left, right):
        detail = f"{left!r} | {right!r}"
        yield Finding(record_id=record_id, kind="case_or_spacing_only", field=field, detail=detail)


def _check_edit(pair: TextPair, field: str, text: str) -> Iterator[Finding]:
    exchanges = exchanged_words(pair.positive, text)
    for word in _invented(exchanges):
        yield Finding(record_id=pair.pair_id, kind="invented_word", field=field, detail=word)
    if exchanges and _first_difference_is_cut_off(pair.positive, text):
        yield Finding(
            record_id=pair.pair_id, kind="edit_beyond_context", field=field, detail=text[-60:]
        )
    lengths = sorted((len(pair.positive.split()), len(text.split())))
    gap = lengths[1] - lengths[0]
    if gap >= _LENGTH_GAP_WORDS and lengths[1] >= _LENGTH_GAP_RATIO * lengths[0]:
        detail = f"{lengths[0]} and {lengths[1]} words"
        yield Finding(record_id=pair.pair_id, kind="length_gap", field=field, detail=detail)


def _invented(exchanges: tuple[WordExchange, ...]) -> list[str]:
    words = (word for exchange in exchanges for word in exchange.after)
    return [word for word in words if word.isascii() and not is_known_word(word)]


def _first_difference_is_cut_off(left: str, right: str) -> bool:
    """Tells whether CLIP reads the same tokens of both, though the texts differ."""
    shared = next(
        (i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
        min(len(left), len(right)),
    )
    if shared < CONTEXT_TOKENS - 2:  # a token has at least one character
        return False
    prefix = left[: left.rfind(" ", 0, shared + 1) + 1]
    return count_clip_tokens(prefix) >= CONTEXT_TOKENS
