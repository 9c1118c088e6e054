"""Makes hard positives image by image: from VL-CheckList, text pairs and free captions."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.coordination.conjuncts import SWAP_REFUSALS
from eqforge.generators.text.coordination.swap import SwapRefusal, swap_coordination, swap_phrases
from eqforge.generators.text.hard_positives.corrected import reword_foil
from eqforge.generators.text.hard_positives.published import (
    PublishedTriple,
    published_place,
    replace_as_published,
)
from eqforge.generators.text.hard_positives.reconcile import reconcile_image
from eqforge.generators.text.hard_positives.records import REFUSALS, HardPositive, Refusal
from eqforge.generators.text.inflection import with_inflections
from eqforge.generators.text.language import Language
from eqforge.generators.text.lexicon import Lexicon
from eqforge.generators.text.words import word_edit
from eqforge.schemas.records.books import Reject, Stage
from eqforge.schemas.records.boxes import CornerBox
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.spans import spans_of
from eqforge.schemas.sources.caption_sources import CaptionRecord
from eqforge.schemas.sources.text_pairs import TextPair
from eqforge.schemas.tables.texts import HardPositiveSample
from eqforge.transforms.dataset.books import guarded
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import is_wanted
from eqforge.transforms.engines.counted_step import CountedStep
from eqforge.transforms.text.caption_edits import (
    EDIT_REASONS,
    CaptionEdit,
    EditedCaption,
    EditRules,
    edit_captions,
)
from eqforge.transforms.text.image_texts import FoilRecord, Text, TextsBatch
from eqforge.transforms.text.perturb import tagger_of
from eqforge.transforms.text.work import Admitted, TextWork, admit_texts, reject

HARD_POSITIVES_STAGE = Stage(
    "hard_positives",
    {
        "not_selected": "The published rule selects no word of the record.",
        **EDIT_REASONS,
        **SWAP_REFUSALS,
        **REFUSALS,
    },
)
GENERATOR = "eqforge.hard_positives 2"
LIMITS = CaptionSettings(max_tokens=None)
Outcome = HardPositiveSample | Rejection


@dataclass(frozen=True, kw_only=True, slots=True)
class HardPositiveRules:
    """How hard positives are made.

    Attributes:
      published: whether the published rule is followed, defects included.
      lexicon: words and their replacements.
      allow_weak: whether weak synonyms are used, in corrected mode.
      edits: how free captions are edited, and with which tagger.
      images: the folder of images, where the user names one.
      only: ids of the samples to make; empty makes all.
      language: what the captions have to be written in.
    """

    published: bool
    lexicon: Lexicon
    allow_weak: bool
    edits: EditRules
    images: ImageFolder | None
    only: tuple[str, ...] = ()
    language: Language = "en"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Made:
    """What was made of one record.

    Attributes:
      record: the record.
      candidates: the ids of the samples that could be.
      outcomes: the samples, or why there is none.
    """

    record: Text
    candidates: tuple[str, ...]
    outcomes: tuple[Outcome, ...]


def make_hard_positives(batch: TextsBatch, rules: HardPositiveRules) -> TextWork:
    """Returns the hard positives of a batch of whole images.

    Source: Kamath et al., "The Hard Positive Truth about Vision-Language Compositionality",
      section 3.4 and appendix A.
    """
    records = [record for texts in batch.images for record in texts.records]
    admitted = admit_texts(records, LIMITS, rules.images, rules.only, language=rules.language)
    samples: list[HardPositiveSample] = []
    rejects: list[Reject] = list(admitted.rejects)
    candidates = 0
    for made in _make(admitted.records, rules):
        record = made.record
        candidates += sum(is_wanted(name, rules.only) for name in made.candidates)
        for found in made.outcomes:
            if isinstance(found, HardPositiveSample):
                if is_wanted(found.sample_id, rules.only):
                    samples.append(_with_image(found, record, admitted))
            elif is_wanted(record.text_id, rules.only):
                rejects.append(reject(record, record.text_id, HARD_POSITIVES_STAGE, found))
    return TextWork(
        samples=tuple(samples),
        images=admitted.images_of(samples),
        rejects=tuple(rejects),
        tallies=(
            admitted.tally,
            HARD_POSITIVES_STAGE.tally(candidates, len(samples)),
        ),
    )


def _with_image(
    sample: HardPositiveSample, record: Text, admitted: Admitted[Text]
) -> HardPositiveSample:
    """Returns the sample with its image, and with the file's digest where a part is cut out."""
    digest = None if sample.box is None else admitted.source_sha256(record)
    return replace(sample, image_id=admitted.image_id(record), source_sha256=digest)


def _make(records: tuple[Text, ...], rules: HardPositiveRules) -> Iterator[_Made]:
    """Makes the published rows record by record, and all others image by image."""
    rest: list[Text] = []
    for record in records:
        if rules.published and isinstance(record, FoilRecord):
            yield _published(record, rules.lexicon)
        elif rules.published and isinstance(record, TextPair):
            yield _one(record, guarded(partial(_swapped, record, rules)))
        else:
            rest.append(record)
    free = [record for record in rest if isinstance(record, CaptionRecord)]
    edited = {each.record.caption_id: each for each in edit_captions(free, rules.edits)}
    for group in _by_picture(rest):
        outcomes = {record.text_id: _outcome(record, edited, rules) for record in group}
        reconciled = _reconciled(outcomes, [text for one in group for text in _true_texts(one)])
        yield from (_one(record, reconciled[record.text_id]) for record in group)


def _by_picture(records: Iterable[Text]) -> Iterable[list[Text]]:
    """Returns the records of each picture: of an image, or of the same part of it."""
    groups: dict[tuple[str, CornerBox | None], list[Text]] = {}
    for record in records:
        groups.setdefault((record.image, record.box), []).append(record)
    return groups.values()


def _outcome(
    record: Text, edited: Mapping[str, EditedCaption], rules: HardPositiveRules
) -> Outcome:
    if isinstance(record, FoilRecord):
        return guarded(partial(_corrected, record, rules))
    if isinstance(record, TextPair):
        return guarded(partial(_swapped, record, rules))
    return _free(edited[record.caption_id])


def _true_texts(record: Text) -> tuple[str, ...]:
    """Returns what a source says to be true of an image."""
    if isinstance(record, FoilRecord):
        return record.record.positives
    if isinstance(record, CaptionRecord):
        return (record.caption,)
    return tuple(text for text in (record.positive, record.hard_positive) if text is not None)


def _reconciled(outcomes: dict[str, Outcome], true: list[str]) -> dict[str, Outcome]:
    """Returns the outcomes of one image by id, where each contradiction is a rejection."""
    samples = {
        name: found for name, found in outcomes.items() if isinstance(found, HardPositiveSample)
    }
    refusals = guarded(lambda: reconcile_image(samples, true))
    if isinstance(refusals, Rejection):
        return outcomes | dict.fromkeys(samples, refusals)
    return outcomes | {name: _rejection(refusal) for name, refusal in refusals.items()}


def _one(record: Text, outcome: Outcome) -> _Made:
    """Returns the books of a record that gives one sample."""
    return _Made(record=record, candidates=(record.text_id,), outcomes=(outcome,))


def _published(foil: FoilRecord, lexicon: Lexicon) -> _Made:
    rows = guarded(lambda: replace_as_published(foil.record, foil.kind, foil.group, lexicon))
    if isinstance(rows, Rejection):
        return _one(foil, rows)
    if not rows:
        return _one(foil, Rejection(reason="not_selected", detail=foil.record.positives[0]))
    samples = [_published_sample(foil, row) for row in rows]
    names = tuple(f"{foil.text_id}/{row.pass_number}" for row in rows)
    return _Made(record=foil, candidates=names, outcomes=tuple(samples))


def _published_sample(foil: FoilRecord, row: PublishedTriple) -> HardPositiveSample:
    edit = word_edit(row.caption, row.hard_positive)
    foiled = word_edit(row.caption, row.hard_negative)
    return _replaced(
        row,
        sample_id=f"{foil.text_id}/{row.pass_number}",
        caption_spans=spans_of(edit.spans_0),
        hard_positive_spans=spans_of(edit.spans_1),
        foil_spans=spans_of(foiled.spans_0),
        hard_negative_spans=spans_of(foiled.spans_1),
        repairs=(),
        generator=f"{GENERATOR} paper",
        source_order=row.order,
    )


def _replaced(made: PublishedTriple | HardPositive, **others: Any) -> HardPositiveSample:
    """Returns the sample of a replaced word, with the fields that are each mode's own."""
    return HardPositiveSample(
        image=made.image,
        image_id=None,
        split="all",
        caption=made.caption,
        hard_positive=made.hard_positive,
        hard_negative=made.hard_negative,
        hard_positive_kind=f"replace/{made.kind}",
        hard_negative_kind=f"vl-checklist/{made.kind}",
        group=made.group,
        original=made.entry.word,
        replacement=made.entry.replacement,
        **others,
    )


@lru_cache(maxsize=2)
def _inflected(lexicon: Lexicon) -> Lexicon:
    return with_inflections(lexicon)


def _corrected(foil: FoilRecord, rules: HardPositiveRules) -> Outcome:
    lexicon = _inflected(rules.lexicon)
    made = reword_foil(foil.record, foil.kind, foil.group, lexicon, allow_weak=rules.allow_weak)
    return _corrected_sample(made, foil) if isinstance(made, HardPositive) else _rejection(made)


def _rejection(refusal: Refusal) -> Rejection:
    return Rejection(reason=refusal.reason, detail=refusal.detail)


def _corrected_sample(found: HardPositive, foil: FoilRecord) -> HardPositiveSample:
    return _replaced(
        found,
        sample_id=found.record_id,
        caption_spans=found.caption_spans,
        hard_positive_spans=found.hard_positive_spans,
        foil_spans=(found.foil_span,),
        hard_negative_spans=(found.hard_negative_span,),
        repairs=found.repairs,
        generator=f"{GENERATOR} corrected",
        source_order=published_place(foil.kind, foil.group, foil.record.index),
    )


def _swapped(pair: TextPair, rules: HardPositiveRules) -> Outcome:
    """Returns a text pair with its positive swapped around "and", as in SWAP."""
    swap = swap_phrases(pair.positive)
    if isinstance(swap, SwapRefusal) and not rules.published:
        (analysis,) = tagger_of(rules.edits.spacy_model).analyse([pair.positive])
        swap = swap_coordination(analysis)
    if isinstance(swap, SwapRefusal):
        return Rejection(reason=swap.reason, detail=swap.detail)
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


def _free(made: EditedCaption) -> Outcome:
    """Returns a free caption with its hard positive and hard negative, or which is missing."""
    record = made.record
    for edit in (made.positive, made.negative):
        if isinstance(edit, Rejection):
            return edit
    assert isinstance(made.positive, CaptionEdit)
    assert isinstance(made.negative, CaptionEdit)
    return HardPositiveSample(
        sample_id=record.caption_id,
        image=record.image,
        image_id=None,
        split=record.split,
        caption=record.caption,
        hard_positive=made.positive.edited.text,
        hard_negative=made.negative.edited.text,
        hard_positive_kind=made.positive.kind,
        hard_negative_kind=made.negative.kind,
        group=None,
        original=made.positive.original,
        replacement=made.positive.replacement,
        caption_spans=made.positive.edited.spans_before,
        hard_positive_spans=made.positive.edited.spans_after,
        foil_spans=made.negative.edited.spans_before,
        hard_negative_spans=made.negative.edited.spans_after,
        repairs=(),
        generator=f"{GENERATOR} rules",
        source_order=(),
    )


class MakeHardPositives(CountedStep[HardPositiveRules]):
    """Makes the hard positives of batches of images."""

    counted = "reworded"

    def make(self, batch: TextsBatch) -> TextWork:
        return make_hard_positives(batch, self.rules)
