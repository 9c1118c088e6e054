"""Corrected REPLACE: reword only the words of a caption that its negative changed.

The published rule (`published`) replaces the first word of its lexicon wherever its letters occur.
Here the user's lexicon replaces the foiled words, on word boundaries. Without a lexicon, the rules
of `rewordings` reword these words, so that the question stays about the foil. The negative then has
to exclude the words that it replaces (`contexts.is_excluded`). Caption and negative first get the
same repairs, so that neither can be recognised by its spelling; see REPAIRS in `reconcile`.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from eqforge.generators.text.analysis import Analysis, Range, Tagger, find_tokens, is_noun
from eqforge.generators.text.contexts import is_excluded
from eqforge.generators.text.coordination.conjuncts import is_living, listed
from eqforge.generators.text.edits import (
    Edit,
    EditedText,
    Span,
    agree_articles,
    apply_edits,
    article_for,
    common_ends,
)
from eqforge.generators.text.lexicon import Kind, Lexicon, LexiconEntry, select
from eqforge.generators.text.lints.word_edits import exchanged_words, stays_true, words_of
from eqforge.generators.text.rewordings.records import Rewording
from eqforge.generators.text.rewordings.rules import FAMILIES, KINDS, find_rewordings
from eqforge.generators.text.taggers import lemmatise
from eqforge.generators.text.words import is_in_fixed_expression, word_set
from eqforge.schemas.records.scores import Rejection
from eqforge.sources.vl_checklist import VlChecklistRecord

DETERMINERS = frozenset(("a", "an", "the", "his", "her", "their", "its"))
_PREPOSITIONS = word_set("corrected.prepositions")
_OF_ALL: Final = frozenset((*FAMILIES["existential"], "add_article"))
"""Rules that reword the caption as a whole, whatever it starts with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Foil:
    """The one span in which a caption and its negative differ, without determiners at its ends.

    Attributes:
      words: the foiled words of the caption, in lower case.
      span: of these words, in the caption; empty, after a word, if the negative only adds words.
      negative_words: the words that replace them, in lower case.
      negative_span: of those words, in the negative.
      lost_determiner: a determiner after the foiled words that the negative lacks: "a" in "on a
        bench" if the negative has "beside bench"; otherwise empty.
    """

    words: tuple[str, ...]
    span: Span
    negative_words: tuple[str, ...]
    negative_span: Span
    lost_determiner: str

    @property
    def detail(self) -> str:
        return f"{' '.join(self.words)} | {' '.join(self.negative_words)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RewordedFoil:
    """A caption of VL-CheckList, its rewording and its negative, after the repairs."""

    caption: str
    hard_negative: str
    repairs: tuple[str, ...]
    foil: Foil
    kind: str
    edited: EditedText
    entry: LexiconEntry | None = None

    @property
    def hard_positive(self) -> str:
        return self.edited.text


def find_foil(caption: str, negative: str) -> Foil | None:
    """Return the foil between a caption and its negative, None if they have the same words.

    Ignores letter case and the difference between "a" and "an". The span is the shortest one
    outside which the two captions have the same words.
    """
    tokens, negative_tokens = list(find_tokens(caption)), list(find_tokens(negative))
    words, negative_words = (
        ["a" if token[0].lower() == "an" else token[0].lower() for token in found]
        for found in (tokens, negative_tokens)
    )
    if words == negative_words:
        return None
    first, last = common_ends(words, negative_words)
    end, negative_end = len(words) - last, len(negative_words) - last
    lost = ""
    if end - first > 1 and words[end - 1] in DETERMINERS and negative_end > first:
        has_own = negative_words[negative_end - 1] in DETERMINERS
        lost = "" if has_own else words[end - 1]
    start, end = _without_determiners(words, first, end)
    negative_start, negative_end = _without_determiners(negative_words, first, negative_end)
    return Foil(
        words=tuple(words[start:end]),
        span=_span(tokens, start, end),
        negative_words=tuple(negative_words[negative_start:negative_end]),
        negative_span=_span(negative_tokens, negative_start, negative_end),
        lost_determiner=lost,
    )


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


def repair_caption(text: str) -> tuple[str, tuple[str, ...]]:
    squeezed = " ".join(text.split())
    lower = squeezed.lower()
    agreed = apply_edits(lower, agree_articles(lower)).text
    steps = (("spacing", text, squeezed), ("case", squeezed, lower), ("article", lower, agreed))
    return agreed, tuple(repair for repair, before, after in steps if before != after)


def _repair(record: VlChecklistRecord) -> tuple[str, str, tuple[str, ...]]:
    caption, repairs = repair_caption(record.positives[0])
    negative, more = repair_caption(record.negatives[0])
    foil = find_foil(caption, negative)
    if foil is not None and foil.lost_determiner:
        more = (*more, "restored_article")
        end = foil.negative_span.end
        edit = Edit(start=end, end=end, replacement=f" {foil.lost_determiner}")
        restored = apply_edits(negative, (edit,)).text
        negative = apply_edits(restored, agree_articles(restored)).text
    return caption, negative, tuple(dict.fromkeys((*repairs, *more)))


def reword_by_rules(
    record: VlChecklistRecord, tagger: Tagger, rng: random.Random
) -> RewordedFoil | Rejection:
    caption, negative, repairs = _repair(record)
    foil = find_foil(caption, negative)
    if foil is None:
        return Rejection(reason="negative_equals_positive", detail=record.negatives[0])
    (analysis,) = tagger.analyse([caption])
    if not _excludes(analysis, foil):
        return Rejection(reason="negative_not_clear", detail=foil.detail)
    # A rewording has to change the foiled words, or a word right before or after them.
    start, end = foil.span.start - 1, foil.span.end
    by_rule: dict[str, list[Rewording]] = {}
    for found in find_rewordings(analysis):
        touches = any(edit.start <= end and edit.end >= start for edit in found.edits)
        if found.rule not in _OF_ALL and touches:
            by_rule.setdefault(found.rule, []).append(found)
    if not by_rule:
        return Rejection(reason="foil_not_reworded", detail=foil.detail)
    chosen = rng.choice(by_rule[rng.choice(sorted(by_rule))])
    return RewordedFoil(
        caption=caption,
        hard_negative=negative,
        repairs=repairs,
        foil=foil,
        kind=KINDS[chosen.rule],
        edited=apply_edits(caption, chosen.edits),
    )


def _excludes(analysis: Analysis, foil: Foil) -> bool:
    here = [
        index
        for index, token in enumerate(analysis.tokens)
        if token.start < foil.span.end and token.end > foil.span.start
    ]
    if not here:
        return False
    span: Range = (here[0], here[-1] + 1)
    words, others = " ".join(foil.words), " ".join(foil.negative_words)
    before = {token.lemma for token in analysis.tokens[: span[0]] if is_noun(token)}
    behind = {token.lemma for token in analysis.tokens[span[1] :] if is_noun(token)}
    if before & behind:
        return False  # there may be more: "leaf next to leaf"
    has = next((i for i in range(span[0]) if analysis.word(i) in ("has", "have")), None)
    owner = analysis.phrase_to(has)
    if owner is not None and not is_living(analysis, owner):
        return False  # a part, of which there may be several: "has a black stripe"
    if any(is_excluded(analysis, span, kind, words, others) for kind in ("attribute", "relation")):
        return True
    if len(foil.negative_words) > 1 or len(foil.words) > 1:
        return False
    verbs = analysis.tokens[here[0]].lemma, lemmatise(others, "VBG")
    return is_excluded(analysis, span, "verb", *verbs)


def reword_foil(
    record: VlChecklistRecord, kind: Kind, group: str, lexicon: Lexicon, *, allow_weak: bool = True
) -> RewordedFoil | Rejection:
    caption, negative, repairs = _repair(record)
    foil = find_foil(caption, negative)
    if foil is None:
        return Rejection(reason="negative_equals_positive", detail=record.negatives[0])
    entries = select(lexicon, kind, group)
    target = _find_target(caption, foil, entries)
    if target is None:
        return Rejection(reason="foil_not_in_lexicon", detail=foil.detail)
    entry, start, end = target
    # The word and its replacement, and all words that another entry links to either.
    pair = {entry.word, entry.replacement}
    links = ({other.word, other.replacement} for other in entries)
    synonyms = pair.union(*(link for link in links if link & pair))
    reason: str | None = None
    if is_in_fixed_expression(caption, start, end):
        reason = "fixed_expression"
    elif entry.group == "color" and _describes_person(caption[end:]):
        reason = "skin_color"
    elif entry.synonymy == "weak" and not allow_weak:
        reason = "weak_replacement"
    elif " ".join(foil.negative_words) in synonyms or stays_true(
        words_of(caption), exchanged_words(caption, negative)
    ):
        reason = "negative_is_synonym"
    elif f" {entry.word} {entry.word} " in f" {caption} ":
        reason = "repeated_word"
    if reason is not None:
        return Rejection(reason=reason, detail=foil.detail)
    edits = [Edit(start=start, end=end, replacement=entry.replacement)]
    before = [token for token in find_tokens(caption) if token.end() <= start]
    right = article_for(entry.replacement.split()[0])
    if before and before[-1][0] in ("a", "an") and right not in (None, before[-1][0]):
        article = Edit(start=before[-1].start(), end=before[-1].end(), replacement=str(right))
        edits.insert(0, article)
    return RewordedFoil(
        caption=caption,
        hard_negative=negative,
        repairs=repairs,
        foil=foil,
        kind=f"replace/{kind}",
        edited=apply_edits(caption, edits),
        entry=entry,
    )


def _describes_person(behind: str) -> bool:
    """Return True if one of the next two words names a person: "black" of "black young man"."""
    nouns = (lemmatise(word, "NNS") for word in words_of(behind)[:2])
    return not listed("person_nouns.txt").isdisjoint(nouns)


def _find_target(
    caption: str, foil: Foil, entries: Sequence[LexiconEntry]
) -> tuple[LexiconEntry, int, int] | None:
    """Return the longest entry that the foiled words are or start with, and its start and end.

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
            return entry, foil.span.start, tokens[len(head) - 1].end()
    return None
