"""Makes hard positives image by image: of VL-CheckList's records, and of any text pairs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import apache_beam as beam

from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.coordination.swap import SwapRefusal, swap_coordination, swap_phrases
from eqforge.generators.text.hard_positives.corrected import reword_foil
from eqforge.generators.text.hard_positives.published import (
    PublishedTriple,
    replace_as_published,
)
from eqforge.generators.text.hard_positives.reconcile import reconcile_image
from eqforge.generators.text.hard_positives.records import HardPositive, Refusal
from eqforge.generators.text.inflection import with_inflections
from eqforge.generators.text.language import Language
from eqforge.generators.text.lexicon import Lexicon
from eqforge.generators.text.words import word_edit
from eqforge.schemas.caption_sources import CaptionRecord
from eqforge.schemas.clips import Tally
from eqforge.schemas.scores import Rejection
from eqforge.schemas.spans import Span
from eqforge.schemas.tables import Reject
from eqforge.schemas.text_pairs import TextPair
from eqforge.schemas.text_tables import HardPositiveSample
from eqforge.transforms import progress
from eqforge.transforms.caption_edits import CaptionEdit, EditedCaption, EditRules, edit_captions
from eqforge.transforms.image_texts import FoilRecord, Text, TextsBatch
from eqforge.transforms.images import ImageFolder
from eqforge.transforms.perturb import tagger_of
from eqforge.transforms.text_work import TextWork, admit_texts, guarded, is_wanted, reject

HARD_POSITIVES = "hard_positives"
GENERATOR = "eqforge.hard_positives 1"
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
                    samples.append(replace(found, image_id=admitted.image_id(record)))
            elif is_wanted(record.text_id, rules.only):
                rejects.append(reject(record, record.text_id, HARD_POSITIVES, found))
    return TextWork(
        samples=tuple(samples),
        images=admitted.images_of(samples),
        rejects=tuple(rejects),
        tallies=(
            admitted.tally,
            Tally(stage=HARD_POSITIVES, candidates=candidates, kept=len(samples)),
        ),
    )


def _make(records: tuple[Text, ...], rules: HardPositiveRules) -> Iterator[_Made]:
    foils = [record for record in records if isinstance(record, FoilRecord)]
    if rules.published:
        yield from (_published(foil, rules.lexicon) for foil in foils)
    else:
        for group in _by_image(foils).values():
            found = _corrected(group, rules)
            yield from (_one(foil, found.get(foil.text_id)) for foil in group)
    for pair in records:
        if isinstance(pair, TextPair):
            yield _one(pair, guarded(partial(_swapped, pair, rules)))
    free = [record for record in records if isinstance(record, CaptionRecord)]
    for edited in edit_captions(free, rules.edits):
        yield _one(edited.record, _free(edited))


def _by_image(foils: list[FoilRecord]) -> dict[str, list[FoilRecord]]:
    groups: dict[str, list[FoilRecord]] = {}
    for foil in foils:
        groups.setdefault(foil.image, []).append(foil)
    return groups


def _one(record: Text, outcome: Outcome | None) -> _Made:
    """Returns the books of a record that gives one sample; None, nothing, would not balance."""
    outcomes = () if outcome is None else (outcome,)
    return _Made(record=record, candidates=(record.text_id,), outcomes=outcomes)


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
    return HardPositiveSample(
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
        caption_spans=_spans(edit.spans_0),
        hard_positive_spans=_spans(edit.spans_1),
        foil_spans=_spans(foiled.spans_0),
        hard_negative_spans=_spans(foiled.spans_1),
        repairs=(),
        generator=f"{GENERATOR} paper",
    )


def _spans(pairs: tuple[tuple[int, int], ...]) -> tuple[Span, ...]:
    return tuple(Span(start=start, end=end) for start, end in pairs)


@lru_cache(maxsize=2)
def _inflected(lexicon: Lexicon) -> Lexicon:
    return with_inflections(lexicon)


def _corrected(foils: list[FoilRecord], rules: HardPositiveRules) -> dict[str, Outcome]:
    """Returns the outcome of each record of one image, by its id."""
    lexicon = _inflected(rules.lexicon)
    outcomes: dict[str, Outcome] = {}
    candidates: list[HardPositive] = []
    for foil in foils:
        make = partial(reword_foil, foil.record, foil.kind, foil.group, lexicon)
        found = guarded(partial(make, allow_weak=rules.allow_weak))
        if isinstance(found, HardPositive):
            candidates.append(found)
        else:
            outcomes[foil.text_id] = _rejection(found)
    true = [foil.record.positives[0] for foil in foils]
    reconciled = guarded(lambda: list(reconcile_image(candidates, true)))
    if isinstance(reconciled, Rejection):
        return outcomes | {candidate.record_id: reconciled for candidate in candidates}
    for result in reconciled:
        outcomes[result.record_id] = (
            _corrected_sample(result) if isinstance(result, HardPositive) else _rejection(result)
        )
    return outcomes


def _rejection(refusal: Refusal | Rejection) -> Rejection:
    if isinstance(refusal, Rejection):
        return refusal
    return Rejection(reason=refusal.reason, detail=refusal.detail)


def _corrected_sample(found: HardPositive) -> HardPositiveSample:
    return HardPositiveSample(
        sample_id=found.record_id,
        image=found.image,
        image_id=None,
        split="all",
        caption=found.caption,
        hard_positive=found.hard_positive,
        hard_negative=found.hard_negative,
        hard_positive_kind=f"replace/{found.kind}",
        hard_negative_kind=f"vl-checklist/{found.kind}",
        group=found.group,
        original=found.entry.word,
        replacement=found.entry.replacement,
        caption_spans=found.caption_spans,
        hard_positive_spans=found.hard_positive_spans,
        foil_spans=(found.foil_span,),
        hard_negative_spans=(found.hard_negative_span,),
        repairs=found.repairs,
        generator=f"{GENERATOR} corrected",
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
        foil_spans=_spans(foiled.spans_0),
        hard_negative_spans=_spans(foiled.spans_1),
        repairs=(),
        generator=f"{GENERATOR} swap",
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
    )


@dataclass
class MakeHardPositives(beam.PTransform):
    """Makes the hard positives of batches of images."""

    rules: HardPositiveRules
    progress_folder: str | None = None

    def expand(self, batches: beam.PCollection[TextsBatch]) -> beam.PCollection[TextWork]:
        return batches | "MakeBatch" >> beam.Map(self._make)

    def _make(self, batch: TextsBatch) -> TextWork:
        work = make_hard_positives(batch, self.rules)
        progress.count(self.progress_folder, "reworded")
        return work
