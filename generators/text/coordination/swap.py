"""Swaps the two sides of an "and".

Source: Kamath et al. 2024, section 3.4 (SWAP) and appendix C.1, whose five worked examples are
  used as tests; Yuksekgonul et al. 2023 (ARO) for the captions of Visual Genome Attribution.
"""

import re
from dataclasses import dataclass

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.articles import agree_articles
from eqforge.generators.text.coordination.conjuncts import (
    CannotTell,
    Conjuncts,
    Level,
    is_fixed_pair,
    refuse,
    refuse_mentions,
    tag_at,
    word_at,
    words_of,
)
from eqforge.generators.text.coordination.noun_phrases import join_noun_phrases
from eqforge.generators.text.coordination.verb_phrases import (
    join_adjectives,
    join_clauses,
    join_verb_phrases,
)
from eqforge.generators.text.edits import Edit, EditedText, apply_edits
from eqforge.generators.text.exchange import exchange_phrases

_BE = frozenset(("is", "are", "was", "were"))
_ARO = re.compile(r"(the .+?)( and )(the .+)", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class Swap:
    """A caption whose sides around an "and" are exchanged.

    Attributes:
      edited: the caption after the swap, and the spans of both sides before and after; the span of
        an article before the left side comes first if it had to change.
      level: what the sides are.
    """

    edited: EditedText
    level: Level


@dataclass(frozen=True, kw_only=True, slots=True)
class SwapRefusal:
    """Why a caption is not swapped.

    Attributes:
      reason: a key of SWAP_REFUSALS.
      detail: the words around the "and".
    """

    reason: str
    detail: str


def swap_phrases(caption: str) -> Swap | SwapRefusal:
    """Swaps the two phrases of an ARO caption: "the crouched cat and the open door".

    Args:
      caption: "the ATTRIBUTE OBJECT and the ATTRIBUTE OBJECT", as in Visual Genome Attribution.
    """
    found = _ARO.fullmatch(caption)
    if found is None or " and the " in found[3]:
        return SwapRefusal(reason="unlike_parts" if "and" in caption else "no_and", detail=caption)
    if found[1] == found[3]:
        return SwapRefusal(reason="same_words", detail=caption)
    edits = (
        Edit(start=0, end=found.end(1), replacement=found[3]),
        Edit(start=found.start(3), end=len(caption), replacement=found[1]),
    )
    return Swap(edited=apply_edits(caption, edits), level="noun_phrase")


def swap_coordination(analysis: Analysis) -> Swap | SwapRefusal:
    """Swaps the two sides of an "and" where that keeps the caption's meaning.

    Noun phrases, adjectives, verb phrases and whole clauses are swapped with their own modifiers,
    around the first "and" whose sides are unambiguous; if there is none, the first "and" gives the
    reason.

    Args:
      analysis: the caption's analysis.
    """
    refusal: SwapRefusal | None = None
    for index, token in enumerate(analysis.tokens):
        if token.text.lower() != "and":
            continue
        try:
            conjuncts = _find_conjuncts(analysis, index)
            return Swap(
                edited=apply_edits(analysis.text, _edits(analysis, conjuncts)),
                level=conjuncts.level,
            )
        except CannotTell as error:
            around = analysis.text[max(0, token.start - 30) : token.end + 30]
            refusal = refusal or SwapRefusal(reason=error.reason, detail=around)
    return refusal or SwapRefusal(reason="no_and", detail=analysis.text[:60])


def _find_conjuncts(analysis: Analysis, conjunction: int) -> Conjuncts:
    if not 0 < conjunction < len(analysis.tokens) - 1:
        refuse("end_of_caption")
    token = analysis.tokens[conjunction]
    if is_fixed_pair(analysis.text, token.start):
        refuse("fixed_expression")
    conjuncts = _join(analysis, conjunction)
    refuse_mentions(analysis, conjuncts.left, conjuncts.right)
    if word_at(analysis, conjuncts.left[0] - 1) in _BE and not _are_alike(analysis, conjuncts):
        refuse("agreement")
    if words_of(analysis, conjuncts.left) == words_of(analysis, conjuncts.right):
        refuse("same_words")
    return conjuncts


def _are_alike(analysis: Analysis, conjuncts: Conjuncts) -> bool:
    """Tells whether both sides start with nouns of the same number, with which a verb agrees."""
    sides = (conjuncts.left, conjuncts.right)
    tags = [[tag_at(analysis, index) for index in range(*side)] for side in sides]
    numbers = [next((tag for tag in own if tag in ("NN", "NNS")), "") for own in tags]
    return numbers[0] == numbers[1]


def _join(analysis: Analysis, conjunction: int) -> Conjuncts:
    before, behind = tag_at(analysis, conjunction - 1), tag_at(analysis, conjunction + 1)
    if (clauses := join_clauses(analysis, conjunction)) is not None:
        return clauses
    if before.startswith("JJ") and behind.startswith("JJ"):
        return join_adjectives(analysis, conjunction)
    if behind.startswith("VB"):
        return join_verb_phrases(analysis, conjunction)
    return join_noun_phrases(analysis, conjunction)


def _edits(analysis: Analysis, conjuncts: Conjuncts) -> tuple[Edit, ...]:
    """Returns the edits that exchange the sides, after that of an article before both, if any."""
    left, right = exchange_phrases(analysis, conjuncts.left, conjuncts.right)
    return (*_shared_article(analysis.text, left.start, left.replacement), left, right)


def _shared_article(text: str, left_start: int, right: str) -> tuple[Edit, ...]:
    """Returns the edit of an article before the left side that must agree with the right side."""
    swapped = text[:left_start] + right
    return tuple(edit for edit in agree_articles(swapped) if text[edit.end : left_start].isspace())
