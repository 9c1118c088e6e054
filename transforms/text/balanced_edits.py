"""Draws the hard negatives of captions together, so that text alone does not show if it is true.

`generators.text.balance` draws the negatives. Each caption's seed decides whether its negative is
made from the caption or from the hard positive, and which of these two becomes the row's caption.
So rewordings are as frequent in true texts as in false ones, and undone as often as made.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from eqforge.core.console import ticked
from eqforge.core.identity import derive_seed, picture_key
from eqforge.generators.text.balance import NO_NEGATIVE, VERSION, Possible, draw_negatives
from eqforge.generators.text.hard_negatives.make import find_hard_negatives
from eqforge.generators.text.hard_positives.reconcile import what_is_said
from eqforge.schemas.records.scores import Rejection
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.dataset.failures import guarded
from eqforge.transforms.text.caption_edits import (
    NO_HARD_NEGATIVE,
    CaptionEdit,
    EditedCaption,
    EditRules,
    RewordedCaption,
    reword_captions,
)
from eqforge.transforms.text.perturb import analyse_captions

UNBALANCED: Final = "unbalanced"
_STEP: Final = "balanced_edits"


@dataclass(frozen=True, kw_only=True, slots=True)
class PossibleEdits:
    """A caption without a drawn negative, and every hard negative it could get."""

    edited: EditedCaption
    negatives: tuple[CaptionEdit, ...] = ()


def draw_captions(batches: Iterable[Iterable[CaptionRecord]], rules: EditRules) -> dict[str, int]:
    """Draw the index of each caption's negative; captions without negatives are left out.

    The texts of all negatives are held in memory. Captions of an image must share a batch.
    """
    possible = (each for batch in batches for each in possible_edits(batch, rules))
    captions = [
        Possible(
            name=each.edited.record.caption_id,
            image=picture_key(each.edited.record.image, each.edited.record.caption_id),
            true=each.edited.true,
            negatives=tuple(negative.edited.text for negative in each.negatives),
        )
        for each in ticked(possible, None, "captions", "what negatives could be")
        if each.negatives
    ]
    drawn = draw_negatives(captions, rules.seed)
    return {each.name: place for each, place in zip(captions, drawn, strict=True)}


def edit_as_drawn(
    captions: Iterable[CaptionRecord], rules: EditRules, drawn: Mapping[str, int]
) -> Iterator[EditedCaption]:
    for each in possible_edits(captions, rules):
        place = drawn.get(each.edited.record.caption_id, NO_NEGATIVE)
        if not each.negatives:
            yield each.edited
        elif place == NO_NEGATIVE:
            yield replace(each.edited, negative=Rejection(reason=UNBALANCED))
        else:
            yield replace(each.edited, negative=each.negatives[place])


def possible_edits(captions: Iterable[CaptionRecord], rules: EditRules) -> list[PossibleEdits]:
    return [_possible(each, rules) for each in reword_captions(captions, rules)]


def _possible(caption: RewordedCaption, rules: EditRules) -> PossibleEdits:
    name, positive = caption.record.caption_id, caption.positive
    rng = random.Random(derive_seed(rules.seed, name, _STEP, VERSION))
    of_positive, exchanged = rng.random() < 0.5, rng.random() < 0.5
    found = guarded(partial(_negatives, caption, of_positive, rng, rules))
    negatives = () if isinstance(found, Rejection) else found
    refusal = found if isinstance(found, Rejection) else Rejection(reason=NO_HARD_NEGATIVE)
    return PossibleEdits(
        edited=EditedCaption(
            record=caption.record,
            positive=positive,
            negative=refusal,
            of_positive=of_positive,
            exchanged=exchanged,
        ),
        negatives=negatives,
    )


def _negatives(
    caption: RewordedCaption, of_positive: bool, rng: random.Random, rules: EditRules
) -> tuple[CaptionEdit, ...] | Rejection:
    positive, known, analysis = caption.positive, caption.known, caption.analysis
    if isinstance(positive, Rejection):
        return positive
    if of_positive:
        (analysis,) = analyse_captions([positive.edited.text], rules.spacy_model)
    if isinstance(analysis, Rejection):
        return analysis
    if isinstance(known, Rejection):
        return known
    return tuple(
        CaptionEdit(kind=kind, edited=made)
        for kind in rules.kinds
        for made in find_hard_negatives(analysis, kind, rng, known)
        if what_is_said(made.text) not in caption.true
    )
