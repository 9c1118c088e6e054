"""Makes hard positives image by image: of VL-CheckList's records, and of any text pairs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import apache_beam as beam

from eqforge.generators.text.coordination.swap import SwapRefusal, swap_coordination, swap_phrases
from eqforge.generators.text.hard_positives.corrected import record_id, reword_foil
from eqforge.generators.text.hard_positives.published import replace_as_published
from eqforge.generators.text.hard_positives.reconcile import reconcile_image
from eqforge.generators.text.hard_positives.records import HardPositive, Refusal
from eqforge.generators.text.inflection import with_inflections
from eqforge.generators.text.lexicon import Kind, Lexicon
from eqforge.generators.text.words import word_edit
from eqforge.schemas.caption_sources import CaptionRecord
from eqforge.schemas.clips import Tally
from eqforge.schemas.scores import Rejection
from eqforge.schemas.spans import Span
from eqforge.schemas.tables import ImageRow, Reject
from eqforge.schemas.text_pairs import TextPair
from eqforge.schemas.text_tables import HardPositiveSample
from eqforge.schemas.vl_checklist import VlChecklistRecord
from eqforge.transforms import progress
from eqforge.transforms.caption_edits import CaptionEdit, EditedCaption, EditRules, edit_captions
from eqforge.transforms.images import ImageFolder
from eqforge.transforms.perturb import tagger_of
from eqforge.transforms.text_work import CAPTIONS, TextWork

HARD_POSITIVES = "hard_positives"
GENERATOR = "eqforge.hard_positives 1"


@dataclass(frozen=True, kw_only=True, slots=True)
class FoilRecord:
    """A record of VL-CheckList and the file it stands in."""

    kind: Kind
    group: str
    record: VlChecklistRecord

    @property
    def image(self) -> str:
        """The image as the source names it."""
        return self.record.image

    @property
    def text_id(self) -> str:
        """The id of the record; its samples' ids begin with it."""
        return record_id(self.record, self.kind, self.group)


@dataclass(frozen=True, kw_only=True, slots=True)
class PairRecord:
    """A text pair of a file."""

    pair: TextPair

    @property
    def image(self) -> str:
        """The image as the source names it."""
        return self.pair.image

    @property
    def text_id(self) -> str:
        """The id of the pair, and of its sample."""
        return self.pair.pair_id


@dataclass(frozen=True, kw_only=True, slots=True)
class FreeRecord:
    """A caption without a negative."""

    caption: CaptionRecord

    @property
    def image(self) -> str:
        """The image as the source names it."""
        return self.caption.image

    @property
    def text_id(self) -> str:
        """The id of the caption, and of its sample."""
        return self.caption.caption_id


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageTexts:
    """All that a source says of one image."""

    image: str
    foils: tuple[FoilRecord, ...] = ()
    pairs: tuple[TextPair, ...] = ()
    captions: tuple[CaptionRecord, ...] = ()

    @property
    def text_ids(self) -> list[str]:
        """The ids of everything said of the image."""
        return [
            *(foil.text_id for foil in self.foils),
            *(pair.pair_id for pair in self.pairs),
            *(caption.caption_id for caption in self.captions),
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class TextsBatch:
    """Images that are worked on together."""

    images: tuple[ImageTexts, ...]


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
    """

    published: bool
    lexicon: Lexicon
    allow_weak: bool
    edits: EditRules
    images: ImageFolder | None
    only: tuple[str, ...] = ()


def make_hard_positives(batch: TextsBatch, rules: HardPositiveRules) -> TextWork:
    """Returns the hard positives of a batch of images.

    Source: Kamath et al., "The Hard Positive Truth about Vision-Language Compositionality",
      section 3.4 and appendix A.
    """
    samples: list[HardPositiveSample] = []
    rejects: list[Reject] = []
    images: dict[str, ImageRow] = {}
    records = admitted = 0
    free = [caption for texts in batch.images for caption in texts.captions]
    edited = {made.record.caption_id: made for made in edit_captions(free, rules.edits)}
    for texts in batch.images:
        names = texts.text_ids
        found = None if rules.images is None else rules.images.find(texts.image)
        records += len(names)
        if isinstance(found, Rejection):
            rejects += (_reject(texts.image, name, CAPTIONS, found) for name in names)
            continue
        admitted += len(names)
        if found is not None:
            images[found.image_id] = found
        free_results = (_free(edited[caption.caption_id]) for caption in texts.captions)
        for result in (*_results(texts, rules), *free_results):
            if isinstance(result, Refusal):
                refusal = Rejection(reason=result.reason, detail=result.detail)
                rejects.append(_reject(texts.image, result.record_id, HARD_POSITIVES, refusal))
            else:
                samples.append(_with_image(result, found))
    kept = [sample for sample in samples if not rules.only or sample.sample_id in rules.only]
    refused = sum(reject.stage == HARD_POSITIVES for reject in rejects)
    return TextWork(
        samples=tuple(kept),
        images=tuple(images.values()),
        rejects=tuple(rejects),
        tallies=(
            Tally(stage=CAPTIONS, candidates=records, kept=admitted),
            Tally(stage=HARD_POSITIVES, candidates=len(kept) + refused, kept=len(kept)),
        ),
    )


def _reject(image: str, candidate_id: str, stage: str, rejection: Rejection) -> Reject:
    return Reject(
        candidate_id=candidate_id,
        stage=stage,
        reason=rejection.reason,
        value=rejection.value,
        threshold=rejection.threshold,
        detail=rejection.detail,
        source_id=image,
        source_path=image,
    )


def _with_image(sample: HardPositiveSample, image: ImageRow | None) -> HardPositiveSample:
    return sample if image is None else replace(sample, image_id=image.image_id)


def _results(texts: ImageTexts, rules: HardPositiveRules) -> Iterator[HardPositiveSample | Refusal]:
    if rules.published:
        for foil in texts.foils:
            yield from _published(foil, rules.lexicon)
    else:
        yield from _corrected(texts, rules)
    for pair in texts.pairs:
        yield _swapped(pair, rules)


def _published(foil: FoilRecord, lexicon: Lexicon) -> Iterator[HardPositiveSample | Refusal]:
    name = foil.text_id
    rows = replace_as_published(foil.record, foil.kind, foil.group, lexicon)
    if not rows:
        yield Refusal(record_id=name, reason="not_selected", detail=foil.record.positives[0])
    for row in rows:
        edit = word_edit(row.caption, row.hard_positive)
        foiled = word_edit(row.caption, row.hard_negative)
        yield HardPositiveSample(
            sample_id=f"{name}/{row.pass_number}",
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


def _corrected(
    texts: ImageTexts, rules: HardPositiveRules
) -> Iterator[HardPositiveSample | Refusal]:
    candidates: list[HardPositive] = []
    lexicon = _inflected(rules.lexicon)
    for foil in texts.foils:
        result = reword_foil(
            foil.record, foil.kind, foil.group, lexicon, allow_weak=rules.allow_weak
        )
        if isinstance(result, Refusal):
            yield result
        else:
            candidates.append(result)
    true = [foil.record.positives[0] for foil in texts.foils]
    for reconciled in reconcile_image(candidates, true):
        yield reconciled if isinstance(reconciled, Refusal) else _corrected_sample(reconciled)


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


def _swapped(pair: TextPair, rules: HardPositiveRules) -> HardPositiveSample | Refusal:
    """Returns a text pair with its positive swapped around "and", as in SWAP."""
    swap = swap_phrases(pair.positive)
    if isinstance(swap, SwapRefusal) and not rules.published:
        (analysis,) = tagger_of(rules.edits.spacy_model).analyse([pair.positive])
        swap = swap_coordination(analysis)
    if isinstance(swap, SwapRefusal):
        return Refusal(record_id=pair.pair_id, reason=swap.reason, detail=swap.detail)
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


def _free(made: EditedCaption) -> HardPositiveSample | Refusal:
    """Returns a free caption with its hard positive and hard negative, or which is missing."""
    record = made.record
    for edit in (made.positive, made.negative):
        if isinstance(edit, Rejection):
            return Refusal(record_id=record.caption_id, reason=edit.reason, detail=edit.detail)
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
