"""Corrected REPLACE by a lexicon: replaces the foiled words, on word boundaries.

The published rule (`published`) replaces the first word of its lexicon wherever its letters occur;
this one replaces only the words that the negative changed. It is used where the user names a
lexicon; without one `by_rules` rewords the caption. The caption and the negative are first
repaired in the same way, so that neither can be recognised by its spelling; see REPAIRS in
`records`.
"""

import dataclasses
from collections.abc import Sequence

from eqforge.generators.text.articles import agree_articles, article_for
from eqforge.generators.text.edits import Edit, Span, apply_edits
from eqforge.generators.text.fixed_expressions import is_in_fixed_expression
from eqforge.generators.text.hard_positives.foils import Foil, find_foil
from eqforge.generators.text.hard_positives.records import HardPositive, Refusal
from eqforge.generators.text.lexicon import Kind, Lexicon, LexiconEntry, select
from eqforge.generators.text.lints.synonymy import stays_true
from eqforge.generators.text.lints.word_edits import exchanged_words, words_of
from eqforge.generators.text.tokenizer import find_tokens
from eqforge.sources.vl_checklist import VlChecklistRecord

_PREPOSITIONS = frozenset(
    (
        *("above", "across", "against", "along", "among", "around", "at", "atop", "behind"),
        *("beneath", "beside", "between", "by", "from", "in", "inside", "into", "near", "next"),
        *("on", "onto", "outside", "over", "past", "through", "to", "toward", "towards"),
        *("under", "underneath", "upon", "with", "within"),
    )
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Mended:
    """A caption and its negative after the same repairs."""

    caption: str
    negative: str
    repairs: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Target:
    """The words of a caption that a lexicon entry replaces."""

    entry: LexiconEntry
    span: Span


def record_id(record: VlChecklistRecord, kind: Kind, group: str) -> str:
    """Returns the id of a VL-CheckList record, whatever its position in its file."""
    return f"vl-checklist/{kind}/{group}/{record.name}"


def reword_foil(
    record: VlChecklistRecord,
    kind: Kind,
    group: str,
    lexicon: Lexicon,
    *,
    allow_weak: bool = True,
) -> HardPositive | Refusal:
    """Returns a record's caption with its foiled words replaced, or why that is not possible.

    Args:
      record: a record of the Visual Genome part: one positive, one negative.
      kind: whether its file is of relations or attributes.
      group: the name of its file, such as `color`.
      lexicon: the whole lexicon, with inflections if wanted.
      allow_weak: whether entries marked as weak synonyms are used.

    Raises:
      MissingExtra: a package of the extra "text" is not installed.
    """
    name = record_id(record, kind, group)
    mended = mend(record.positives[0], record.negatives[0])
    foil = find_foil(mended.caption, mended.negative)
    if foil is None:
        return Refusal(
            record_id=name, reason="negative_equals_positive", detail=record.negatives[0]
        )
    entries = select(lexicon, kind, group)
    target = _find_target(mended.caption, foil, entries)
    if target is None:
        reason: str | None = "foil_not_in_lexicon"
    else:
        reason = _refuse(mended, foil, target, entries, allow_weak)
    if target is None or reason is not None:
        detail = f"{' '.join(foil.words)} | {' '.join(foil.negative_words)}"
        return Refusal(record_id=name, reason=str(reason), detail=detail)
    return _hard_positive(name, record, mended, foil, target)


def _hard_positive(
    name: str, record: VlChecklistRecord, mended: Mended, foil: Foil, target: _Target
) -> HardPositive:
    edited = apply_edits(mended.caption, _edits(mended.caption, target))
    return HardPositive(
        record_id=name,
        image=record.image,
        kind=target.entry.kind,
        group=target.entry.group,
        caption=mended.caption,
        hard_positive=edited.text,
        hard_negative=mended.negative,
        entry=target.entry,
        caption_spans=edited.spans_before,
        hard_positive_spans=edited.spans_after,
        foil_span=foil.span,
        hard_negative_span=foil.negative_span,
        repairs=mended.repairs,
    )


def mend_caption(text: str) -> tuple[str, tuple[str, ...]]:
    """Returns a Visual Genome caption with case, spacing and articles repaired, and the repairs.

    Raises:
      MissingExtra: inflect is not installed.
    """
    squeezed = " ".join(text.split())
    lower = squeezed.lower()
    agreed = apply_edits(lower, agree_articles(lower)).text
    steps = (("spacing", text, squeezed), ("case", squeezed, lower), ("article", lower, agreed))
    return agreed, tuple(repair for repair, before, after in steps if before != after)


def mend(caption: str, negative: str) -> Mended:
    """Repairs both captions, and restores a determiner that the negative lost with its foil."""
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
    """Returns the longest entry that the foiled words are or start with, and its span.

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
    """Returns an entry's word and replacement, and all words that another entry links to either."""
    words = {entry.word, entry.replacement}
    links = [{other.word, other.replacement} for other in entries]
    return words.union(*(link for link in links if link & words))


def _edits(caption: str, target: _Target) -> tuple[Edit, ...]:
    """Returns the edit of the foiled words, after that of an article that must agree with them."""
    start, replacement = target.span.start, target.entry.replacement
    edit = Edit(start=start, end=target.span.end, replacement=replacement)
    before = [token for token in find_tokens(caption) if token.end() <= start]
    right = article_for(replacement.split()[0])
    if not before or before[-1][0] not in ("a", "an") or right in (None, before[-1][0]):
        return (edit,)
    return (Edit(start=before[-1].start(), end=before[-1].end(), replacement=str(right)), edit)
