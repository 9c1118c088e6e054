"""Makes the hard positives of one record of VL-CheckList, text pairs or free captions."""

import random
from dataclasses import dataclass
from functools import lru_cache

from eqforge.core.identity import derive_seed
from eqforge.generators.text.coordination.swap import swap_coordination, swap_phrases
from eqforge.generators.text.hard_positives.corrected import reword_by_rules, reword_foil
from eqforge.generators.text.hard_positives.published import (
    published_place,
    record_id,
    replace_as_published,
)
from eqforge.generators.text.language import Language
from eqforge.generators.text.lexicon import Lexicon, with_inflections
from eqforge.generators.text.words import word_edit
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.values import spans_of
from eqforge.schemas.tables.texts import HardPositiveSample
from eqforge.sources.text_pairs import TextPair
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.judges.settings import Judging
from eqforge.transforms.text.caption_edits import WRITTEN, EditedCaption, EditRules
from eqforge.transforms.text.image_texts import FoilRecord
from eqforge.transforms.text.perturb import tagger_of

VERSION = 8
GENERATOR = f"eqforge.hard_positives {VERSION}"
_DRAWS = 3
REVERSED = "/reversed"
"""Suffix of the kind if the source's caption is the hard positive and its rewording the caption."""
Outcome = HardPositiveSample | Rejection


@dataclass(frozen=True, kw_only=True, slots=True)
class HardPositiveRules:
    """How hard positives are made.

    Attributes:
      published: whether to follow the published rule, defects included.
      lexicon: words and their replacements in paper mode; corrected mode has them in `edits`.
      allow_weak: whether weak synonyms are used, in corrected mode with a lexicon.
    """

    published: bool
    lexicon: Lexicon
    allow_weak: bool
    edits: EditRules
    images: ImageFolder | None
    only: tuple[str, ...] = ()
    language: Language = "en"
    judging: Judging | None = None


def published_samples(
    foil: FoilRecord, lexicon: Lexicon
) -> tuple[HardPositiveSample, ...] | Rejection:
    samples = []
    for row in replace_as_published(foil.record, foil.kind, foil.group, lexicon):
        edit = word_edit(row.caption, row.hard_positive)
        foiled = word_edit(row.caption, row.hard_negative)
        sample = HardPositiveSample(
            sample_id=f"{foil.text_id}/{row.pass_number}",
            image=row.image,
            image_id=None,
            split="all",
            caption=row.caption,
            hard_positive=row.hard_positive,
            hard_negative=row.hard_negative,
            hard_positive_kind=f"replace/{row.kind}",
            hard_negative_kind=f"vl-checklist/{row.kind}",
            group=row.group,
            original=row.entry.word,
            replacement=row.entry.replacement,
            caption_spans=spans_of(edit.spans_0),
            hard_positive_spans=spans_of(edit.spans_1),
            foil_spans=spans_of(foiled.spans_0),
            hard_negative_spans=spans_of(foiled.spans_1),
            repairs=(),
            generator=f"{GENERATOR} paper",
            source_order=row.order,
        )
        samples.append(sample)
    if not samples:
        return Rejection(reason="not_selected", detail=foil.record.positives[0])
    return tuple(samples)


@lru_cache(maxsize=2)
def _inflected(lexicon: Lexicon) -> Lexicon:
    return with_inflections(lexicon)


def corrected_sample(foil: FoilRecord, rules: HardPositiveRules) -> Outcome:
    name = record_id(foil.record, foil.kind, foil.group)
    if rules.edits.lexicon is None:
        rng = random.Random(derive_seed(rules.edits.seed, name, "hard_positive", _DRAWS))
        rewording = reword_by_rules(foil.record, tagger_of(rules.edits.spacy_model), rng)
    else:
        lexicon = _inflected(rules.edits.lexicon)
        rewording = reword_foil(
            foil.record, foil.kind, foil.group, lexicon, allow_weak=rules.allow_weak
        )
    if isinstance(rewording, Rejection):
        return rewording
    return HardPositiveSample(
        sample_id=name,
        image=foil.record.image,
        image_id=None,
        split="all",
        caption=rewording.caption,
        hard_positive=rewording.hard_positive,
        hard_negative=rewording.hard_negative,
        hard_positive_kind=rewording.kind,
        hard_negative_kind=f"vl-checklist/{foil.kind}",
        group=foil.group,
        original=None if rewording.entry is None else rewording.entry.word,
        replacement=None if rewording.entry is None else rewording.entry.replacement,
        caption_spans=rewording.edited.spans_before,
        hard_positive_spans=rewording.edited.spans_after,
        foil_spans=(rewording.foil.span,),
        hard_negative_spans=(rewording.foil.negative_span,),
        repairs=rewording.repairs,
        generator=f"{GENERATOR} corrected",
        source_order=published_place(foil.kind, foil.group, foil.record.index),
    )


def swapped_sample(pair: TextPair, rules: HardPositiveRules) -> Outcome:
    swap = swap_phrases(pair.positive)
    if isinstance(swap, Rejection) and not rules.published:
        (analysis,) = tagger_of(rules.edits.spacy_model).analyse([pair.positive])
        swap = swap_coordination(analysis)
    if isinstance(swap, Rejection):
        return swap
    foiled = word_edit(pair.positive, pair.negative)
    return HardPositiveSample(
        sample_id=pair.pair_id,
        image=pair.image,
        image_id=None,
        split="all",
        caption=pair.positive,
        hard_positive=swap.edited.text,
        hard_negative=pair.negative,
        hard_positive_kind=f"swap/{swap.level}",
        hard_negative_kind="source" if pair.kind is None else f"source/{pair.kind}",
        group=pair.kind,
        original=None,
        replacement=None,
        caption_spans=swap.edited.spans_before,
        hard_positive_spans=swap.edited.spans_after,
        foil_spans=spans_of(foiled.spans_0),
        hard_negative_spans=spans_of(foiled.spans_1),
        repairs=(),
        generator=f"{GENERATOR} swap",
        source_order=(pair.number,),
        box=pair.box,
    )


def free_sample(edited: EditedCaption) -> Outcome:
    record, positive, negative = edited.record, edited.positive, edited.negative
    if isinstance(positive, Rejection):
        return positive
    if isinstance(negative, Rejection):
        return negative
    true = (record.caption, positive.edited.text)
    replaced = (positive.original, positive.replacement)
    spans = (positive.edited.spans_before, positive.edited.spans_after)
    step = -1 if edited.exchanged else 1
    caption, hard_positive = true[::step]
    foiled = (negative.edited.spans_before, negative.edited.spans_after)
    if caption != edited.base:
        edit = word_edit(caption, negative.edited.text)
        foiled = (spans_of(edit.spans_0), spans_of(edit.spans_1))
    generator = f"{GENERATOR} rules"
    if positive.kind.startswith(WRITTEN):
        generator = f"{positive.generator}; {generator}"
    return HardPositiveSample(
        sample_id=record.caption_id,
        image=record.image,
        image_id=None,
        split=record.split,
        caption=caption,
        hard_positive=hard_positive,
        hard_negative=negative.edited.text,
        hard_positive_kind=f"{positive.kind}{REVERSED if edited.exchanged else ''}",
        hard_negative_kind=negative.kind,
        group=None,
        original=replaced[::step][0],
        replacement=replaced[::step][1],
        caption_spans=spans[::step][0],
        hard_positive_spans=spans[::step][1],
        foil_spans=foiled[0],
        hard_negative_spans=foiled[1],
        repairs=(),
        generator=generator,
        source_order=(),
    )
