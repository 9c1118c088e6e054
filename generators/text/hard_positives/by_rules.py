"""Corrected REPLACE by rules: rewords what a negative that is false for sure has changed.

The negative has to exclude the words that it replaces (`contexts.is_excluded`), and the caption
is reworded by those of the rules of `rewordings` that touch these words, so that a model is asked
about what the negative changed.
"""

import random
from typing import Final

from eqforge.generators.text.analysis import Analysis, Range, Tagger, is_noun
from eqforge.generators.text.contexts import is_excluded
from eqforge.generators.text.coordination.conjuncts import is_living
from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.hard_positives.corrected import Foil, RewordedFoil, find_foil, mend
from eqforge.generators.text.rewordings.records import Rewording
from eqforge.generators.text.rewordings.rules import FAMILIES, KINDS, find_rewordings
from eqforge.generators.text.taggers import lemmatise
from eqforge.schemas.records.scores import Rejection
from eqforge.sources.vl_checklist import VlChecklistRecord

_OF_ALL: Final = frozenset((*(rule.name for rule in FAMILIES["existential"]), "add_article"))
"""Rules that reword the caption as a whole, whatever it starts with."""


def reword_by_rules(
    record: VlChecklistRecord, tagger: Tagger, rng: random.Random
) -> RewordedFoil | Rejection:
    """Return a record's caption with its foiled words reworded, or why that is not possible."""
    mended = mend(record.positives[0], record.negatives[0])
    foil = find_foil(mended.caption, mended.negative)
    if foil is None:
        return Rejection(reason="negative_equals_positive", detail=record.negatives[0])
    detail = f"{' '.join(foil.words)} | {' '.join(foil.negative_words)}"
    (analysis,) = tagger.analyse([mended.caption])
    if not _excludes(analysis, foil):
        return Rejection(reason="negative_not_clear", detail=detail)
    by_rule: dict[str, list[Rewording]] = {}
    for found in find_rewordings(analysis):
        if found.rule not in _OF_ALL and _touches(found, foil):
            by_rule.setdefault(found.rule, []).append(found)
    if not by_rule:
        return Rejection(reason="foil_not_reworded", detail=detail)
    chosen = rng.choice(by_rule[rng.choice(sorted(by_rule))])
    edited = apply_edits(mended.caption, chosen.edits)
    return RewordedFoil(mended=mended, foil=foil, kind=KINDS[chosen.rule], edited=edited)


def _excludes(analysis: Analysis, foil: Foil) -> bool:
    """Say whether the foiled words exclude those of the negative, where they stand."""
    here = [
        index
        for index, token in enumerate(analysis.tokens)
        if token.start < foil.span.end and token.end > foil.span.start
    ]
    if not here:
        return False
    span: Range = (here[0], here[-1] + 1)
    words, others = " ".join(foil.words), " ".join(foil.negative_words)
    if _joins_alike(analysis, span) or _is_part(analysis, span):
        return False
    if any(is_excluded(analysis, span, kind, words, others) for kind in ("attribute", "relation")):
        return True
    if len(foil.negative_words) > 1 or len(foil.words) > 1:
        return False
    verbs = analysis.tokens[here[0]].lemma, lemmatise(others, "VBG")
    return is_excluded(analysis, span, "verb", *verbs)


def _joins_alike(analysis: Analysis, span: Range) -> bool:
    """Say whether words join two of a kind, of which there may be more: "leaf next to leaf"."""
    before = {token.lemma for token in analysis.tokens[: span[0]] if is_noun(token)}
    behind = {token.lemma for token in analysis.tokens[span[1] :] if is_noun(token)}
    return bool(before & behind)


def _is_part(analysis: Analysis, span: Range) -> bool:
    """Say whether words are of what a thing has, which may be several: "has a black stripe"."""
    has = next((i for i in range(span[0]) if analysis.word(i) in ("has", "have")), None)
    owner = analysis.phrase_to(has)
    return owner is not None and not is_living(analysis, owner)


def _touches(found: Rewording, foil: Foil) -> bool:
    """Say whether an edit changes the foiled words, or stands right before or behind them."""
    start, end = foil.span.start - 1, foil.span.end
    return any(edit.start <= end and edit.end >= start for edit in found.edits)
