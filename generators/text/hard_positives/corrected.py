"""Corrected REPLACE by a lexicon: replaces the foiled words, on word boundaries.

The published rule (`published`) replaces the first word of its lexicon wherever its letters occur;
this one replaces only the words that the negative changed. It is used where the user names a
lexicon; without one `by_rules` rewords the caption. The caption and the negative are first
repaired in the same way, so that neither can be recognised by its spelling; see REPAIRS in
`records`.
"""

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass

from eqforge.generators.text.articles import agree_articles, article_for
from eqforge.generators.text.edits import Edit, EditedText, Span, apply_edits
from eqforge.generators.text.fixed_expressions import is_in_fixed_expression
from eqforge.generators.text.lexicon import Kind, Lexicon, LexiconEntry, select
from eqforge.generators.text.lints.synonymy import stays_true
from eqforge.generators.text.lints.word_edits import exchanged_words, words_of
from eqforge.generators.text.tokenizer import find_tokens
from eqforge.generators.text.words import word_set
from eqforge.schemas.records.scores import Rejection
from eqforge.sources.vl_checklist import VlChecklistRecord

DETERMINERS = frozenset(("a", "an", "the", "his", "her", "their", "its"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Foil:
    """The one span in which a caption and its negative differ, without determiners at its ends.

    Attributes:
      words: the foiled words of the caption, in lower case.
      span: of these words, in the caption; empty, after a word, if the negative only adds words.
      negative_words: the words that replace them, in lower case.
      negative_span: of those words, in the negative.
      lost_determiner: a determiner after the foiled words that the negative lacks: "a" in "on a
        bench", where the negative has "beside bench"; otherwise empty.
    """

    words: tuple[str, ...]
    span: Span
    negative_words: tuple[str, ...]
    negative_span: Span
    lost_determiner: str


def find_foil(caption: str, negative: str) -> Foil | None:
    """Return the foil between a caption and its negative, None if they have the same words.

    Letter case is ignored, and so is the difference between "a" and "an". The span is the shortest
    one outside which the two captions have the same words.
    """
    tokens, negative_tokens = list(find_tokens(caption)), list(find_tokens(negative))
    words, negative_words = (
        [_key(token[0]) for token in found] for found in (tokens, negative_tokens)
    )
    if words == negative_words:
        return None
    first = _common_prefix(words, negative_words)
    last = _common_prefix(words[first:][::-1], negative_words[first:][::-1])
    ends, negative_ends = (first, len(words) - last), (first, len(negative_words) - last)
    loses = _loses_determiner(words, negative_words, ends, negative_ends)
    start, end = _without_determiners(words, *ends)
    negative_start, negative_end = _without_determiners(negative_words, *negative_ends)
    return Foil(
        words=tuple(words[start:end]),
        span=_span(tokens, start, end),
        negative_words=tuple(negative_words[negative_start:negative_end]),
        negative_span=_span(negative_tokens, negative_start, negative_end),
        lost_determiner=words[ends[1] - 1] if loses else "",
    )


def _key(word: str) -> str:
    lower = word.lower()
    return "a" if lower == "an" else lower


def _common_prefix(left: list[str], right: list[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(left), len(right)))


def _loses_determiner(
    words: list[str], negative_words: list[str], ends: tuple[int, int], negative: tuple[int, int]
) -> bool:
    """Say whether the foil ends in a determiner in the caption but not in the negative."""
    ends_in_determiner = ends[1] - ends[0] > 1 and words[ends[1] - 1] in DETERMINERS
    has_own = negative[1] > negative[0] and negative_words[negative[1] - 1] in DETERMINERS
    return ends_in_determiner and negative[1] > negative[0] and not has_own


def _without_determiners(words: list[str], start: int, end: int) -> tuple[int, int]:
    while start < end and words[end - 1] in DETERMINERS:
        end -= 1
    while start < end and words[start] in DETERMINERS:
        start += 1
    return start, end


def _span(tokens: Sequence[re.Match[str]], start: int, end: int) -> Span:
    if start < end:
        return Span(start=tokens[start].start(), end=tokens[end - 1].end())
    offset = tokens[start - 1].end() if start else 0
    return Span(start=offset, end=offset)


_PREPOSITIONS = word_set("corrected.prepositions")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Mended:
    """A caption and its negative after the same repairs."""

    caption: str
    negative: str
    repairs: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RewordedFoil:
    """A caption of VL-CheckList, its rewording and its negative.

    Attributes:
      entry: what of a lexicon was used; None where rules reworded.
    """

    mended: Mended
    foil: Foil
    kind: str
    edited: EditedText
    entry: LexiconEntry | None = None

    @property
    def caption(self) -> str:
        """The caption after the repairs."""
        return self.mended.caption

    @property
    def hard_positive(self) -> str:
        """The caption reworded."""
        return self.edited.text

    @property
    def hard_negative(self) -> str:
        """The negative after the repairs."""
        return self.mended.negative


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Target:
    """The words of a caption that a lexicon entry replaces."""

    entry: LexiconEntry
    span: Span


def record_id(record: VlChecklistRecord, kind: Kind, group: str) -> str:
    """Return the id of a VL-CheckList record, whatever its position in its file."""
    return f"vl-checklist/{kind}/{group}/{record.name}"


def reword_foil(
    record: VlChecklistRecord,
    kind: Kind,
    group: str,
    lexicon: Lexicon,
    *,
    allow_weak: bool = True,
) -> RewordedFoil | Rejection:
    """Return a record's caption with its foiled words replaced, or why that is not possible.

    Args:
      group: the name of its file, such as `color`.
      lexicon: the whole lexicon, with inflections if wanted.
      allow_weak: whether entries marked as weak synonyms are used.
    """
    mended = mend(record.positives[0], record.negatives[0])
    foil = find_foil(mended.caption, mended.negative)
    if foil is None:
        return Rejection(reason="negative_equals_positive", detail=record.negatives[0])
    entries = select(lexicon, kind, group)
    target = _find_target(mended.caption, foil, entries)
    if target is None:
        reason: str | None = "foil_not_in_lexicon"
    else:
        reason = _refuse(mended, foil, target, entries, allow_weak)
    if target is None or reason is not None:
        detail = f"{' '.join(foil.words)} | {' '.join(foil.negative_words)}"
        return Rejection(reason=str(reason), detail=detail)
    return RewordedFoil(
        mended=mended,
        foil=foil,
        kind=f"replace/{kind}",
        edited=apply_edits(mended.caption, _edits(mended.caption, target)),
        entry=target.entry,
    )


def mend_caption(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a Visual Genome caption with case, spacing and articles repaired, and the repairs."""
    squeezed = " ".join(text.split())
    lower = squeezed.lower()
    agreed = apply_edits(lower, agree_articles(lower)).text
    steps = (("spacing", text, squeezed), ("case", squeezed, lower), ("article", lower, agreed))
    return agreed, tuple(repair for repair, before, after in steps if before != after)


def mend(caption: str, negative: str) -> Mended:
    """Repair both captions, and restores a determiner that the negative lost with its foil."""
    caption, repairs = mend_caption(caption)
    negative, more = mend_caption(negative)
    foil = find_foil(caption, negative)
    if foil is not None and foil.lost_determiner:
        more = (*more, "restored_article")
        negative = _restore_determiner(negative, foil)
    ordered = tuple(dict.fromkeys((*repairs, *more)))
    return Mended(caption=caption, negative=negative, repairs=ordered)


def _restore_determiner(negative: str, foil: Foil) -> str:
    end = foil.negative_span.end
    edit = Edit(start=end, end=end, replacement=f" {foil.lost_determiner}")
    restored = apply_edits(negative, (edit,)).text
    return apply_edits(restored, agree_articles(restored)).text


def _find_target(caption: str, foil: Foil, entries: Sequence[LexiconEntry]) -> _Target | None:
    """Return the longest entry that the foiled words are or start with, and its span.

    Any words after it must start with a preposition ("sitting on"), and then the replacement must
    not end in one: "wearing on" does not become "in on".
    """
    for entry in sorted(entries, key=lambda entry: -len(entry.word.split())):
        head = tuple(entry.word.split())
        rest = foil.words[len(head) :]
        ends_in_preposition = entry.replacement.split()[-1] in _PREPOSITIONS
        follows = not rest or (rest[0] in _PREPOSITIONS and not ends_in_preposition)
        if foil.words[: len(head)] == head and follows:
            tokens = [token for token in find_tokens(caption) if token.start() >= foil.span.start]
            end = tokens[len(head) - 1].end()
            return _Target(entry=entry, span=Span(start=foil.span.start, end=end))
    return None


def _refuse(
    mended: Mended, foil: Foil, target: _Target, entries: Sequence[LexiconEntry], allow_weak: bool
) -> str | None:
    caption = mended.caption
    if is_in_fixed_expression(caption, target.span.start, target.span.end):
        return "fixed_expression"
    if target.entry.synonymy == "weak" and not allow_weak:
        return "weak_replacement"
    if " ".join(foil.negative_words) in _synonyms(target.entry, entries):
        return "negative_is_synonym"
    if stays_true(words_of(caption), exchanged_words(caption, mended.negative)):
        return "negative_is_synonym"
    if f" {target.entry.word} {target.entry.word} " in f" {caption} ":
        return "repeated_word"
    return None


def _synonyms(entry: LexiconEntry, entries: Sequence[LexiconEntry]) -> set[str]:
    """Return an entry's word and replacement, and all words that another entry links to either."""
    words = {entry.word, entry.replacement}
    links = [{other.word, other.replacement} for other in entries]
    return words.union(*(link for link in links if link & words))


def _edits(caption: str, target: _Target) -> tuple[Edit, ...]:
    """Return the edit of the foiled words, after that of an article that must agree with them."""
    start, replacement = target.span.start, target.entry.replacement
    edit = Edit(start=start, end=target.span.end, replacement=replacement)
    before = [token for token in find_tokens(caption) if token.end() <= start]
    right = article_for(replacement.split()[0])
    if not before or before[-1][0] not in ("a", "an") or right in (None, before[-1][0]):
        return (edit,)
    return (Edit(start=before[-1].start(), end=before[-1].end(), replacement=str(right)), edit)
