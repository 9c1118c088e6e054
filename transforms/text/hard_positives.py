"""Makes hard positives image by image, from VL-CheckList, text pairs and free captions.

In a balanced dataset, the hard negatives of all captions are drawn together, so that text alone
does not show if it is true; see `generators.text.balance`. Each caption's seed decides whether its
negative is made from the caption or from the hard positive, and which of these two becomes the
row's caption. So rewordings are as frequent in true texts as in false ones, and undone as often as
made.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Final

from eqforge.core.console import ticked
from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.identity import derive_seed, picture_key
from eqforge.generators.text.balance import NO_NEGATIVE, VERSION, Possible, draw_negatives
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.coordination.conjuncts import SWAP_REFUSALS
from eqforge.generators.text.hard_negatives.make import find_hard_negatives
from eqforge.generators.text.hard_positives.reconcile import REFUSALS, reconcile_image, text_key
from eqforge.schemas.records.judgements import Part
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject, Stage
from eqforge.schemas.records.values import CornerBox
from eqforge.schemas.tables.texts import HardPositiveSample, Judgement
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.sources.text_pairs import TextPair
from eqforge.transforms.dataset.failures import guarded
from eqforge.transforms.dataset.plan import is_wanted
from eqforge.transforms.dataset.tables import BatchWork
from eqforge.transforms.judges.decide import JUDGE_REASONS, JudgedTexts, ask_judges, judge_sample
from eqforge.transforms.judges.settings import Judging
from eqforge.transforms.text.caption_edits import (
    EDIT_REASONS,
    NO_HARD_NEGATIVE,
    CaptionEdit,
    EditedCaption,
    EditRules,
    RewordedCaption,
    edit_captions,
    reword_captions,
)
from eqforge.transforms.text.hard_positive_samples import (
    HardPositiveRules,
    Outcome,
    corrected_sample,
    free_sample,
    published_samples,
    swapped_sample,
)
from eqforge.transforms.text.image_texts import FoilRecord, Text, TextsBatch
from eqforge.transforms.text.perturb import analyse_captions
from eqforge.transforms.text.work import Admitted, admit_texts, reject

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
            image=each.edited.record.picture,
            true=each.edited.true,
            negatives=tuple(negative.edited.text for negative in each.negatives),
        )
        for each in ticked(possible, None, "captions", "listing possible negatives")
        if each.negatives
    ]
    places = draw_negatives(captions, rules.seed)
    return {each.name: place for each, place in zip(captions, places, strict=True)}


def edit_as_drawn(
    captions: Iterable[CaptionRecord], rules: EditRules, places: Mapping[str, int]
) -> Iterator[EditedCaption]:
    for each in possible_edits(captions, rules):
        place = places.get(each.edited.record.caption_id, NO_NEGATIVE)
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
        CaptionEdit(kind=kind, edited=edited)
        for kind in rules.kinds
        for edited in find_hard_negatives(analysis, kind, rng, known)
        if text_key(edited.text) not in caption.true
    )


HARD_POSITIVES_STAGE = Stage(
    "hard_positives",
    {
        "not_selected": "The published rule finds no word to replace in this record.",
        **EDIT_REASONS,
        UNBALANCED: "Balancing (--balance) dropped the row because its caption looked more "
        "likely than its negatives.",
        **SWAP_REFUSALS,
        **REFUSALS,
        **JUDGE_REASONS,
    },
)
LIMITS = CaptionSettings(max_tokens=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Made:
    """The results for one record: ids of possible samples, and samples or rejections."""

    record: Text
    candidates: tuple[str, ...]
    outcomes: tuple[Outcome, ...]


def make_hard_positives(batch: TextsBatch, rules: HardPositiveRules) -> BatchWork:
    """Make the hard positives of a batch of whole images.

    Source: Kamath et al., "The Hard Positive Truth about Vision-Language Compositionality",
      section 3.4 and appendix A.
    """
    records = [record for texts in batch.images for record in texts.records]
    admitted = admit_texts(records, LIMITS, rules.images, rules.only, language=rules.language)
    samples: list[HardPositiveSample] = []
    rejects: list[Reject] = list(admitted.rejects)
    candidates = 0
    works = tuple(_make(admitted.records, rules, batch.drawn))
    judged = {} if rules.judging is None else _judged(works, admitted, rules.judging)
    for work in works:
        record = work.record
        candidates += sum(is_wanted(name, rules.only) for name in work.candidates)
        for found in work.outcomes:
            if isinstance(found, HardPositiveSample):
                name, verdict = found.sample_id, judged.get(found.sample_id)
                if not is_wanted(name, rules.only):
                    continue
                if isinstance(verdict, Rejection):
                    rejects.append(reject(record, name, HARD_POSITIVES_STAGE, verdict))
                else:
                    # The digest of the file is set if a crop of it is used.
                    file = None if found.box is None else admitted.images.get(record.text_id)
                    sample = replace(
                        found,
                        image_id=admitted.image_id(record),
                        source_sha256=None if file is None else file.source_sha256,
                    )
                    samples.append(sample)
            elif is_wanted(record.text_id, rules.only):
                rejects.append(reject(record, record.text_id, HARD_POSITIVES_STAGE, found))
    verdicts = (judged.get(sample.sample_id) for sample in samples)
    return BatchWork(
        samples=tuple(samples),
        judgements=tuple(found for found in verdicts if isinstance(found, Judgement)),
        images=admitted.images_of(samples),
        rejects=tuple(rejects),
        tallies=(admitted.tally, HARD_POSITIVES_STAGE.tally(candidates, len(samples))),
    )


def captions_of(rules: HardPositiveRules, batch: TextsBatch) -> tuple[CaptionRecord, ...]:
    """Return the free captions of a batch to edit, before their images are looked up."""
    return admit_texts(_captions(batch), LIMITS, None, rules.only, language=rules.language).records


def _judged(
    works: Iterable[_Made], admitted: Admitted[Text], judging: Judging
) -> dict[str, Judgement | Rejection]:
    samples = [
        (work.record, found)
        for work in works
        for found in work.outcomes
        if isinstance(found, HardPositiveSample)
    ]
    texts = [
        JudgedTexts(
            key=sample.sample_id,
            picture=(picture_key(record.image, record.text_id), record.box),
            caption=sample.caption,
            hard_positive=sample.hard_positive,
            hard_negative=sample.hard_negative,
            image=admitted.image(record.text_id),
        )
        for record, sample in samples
    ]
    answers = ask_judges(texts, judging)
    kinds: dict[str, dict[Part, str]] = {
        sample.sample_id: {
            "hard_positive": sample.hard_positive_kind,
            "hard_negative": sample.hard_negative_kind,
        }
        for _, sample in samples
    }
    return {
        name: answer
        if isinstance(answer, Rejection)
        else judge_sample(name, answer, kinds[name], judging)
        for name, answer in answers.items()
    }


def check_balance(captions: object, model: str | None) -> None:
    """Check that rules make the hard negatives here, so that they can be drawn together."""
    if captions is None:
        raise InputError(
            "--balance text works only with --captions, because other sources have their own "
            "hard negatives; omit --balance"
        )
    if model is not None:
        raise InputError("--balance text works only with the built-in rules; omit --model")
    if find_spec("sklearn") is None:
        raise MissingExtra("scikit-learn", "text")


def draw_texts(batches: Iterable[TextsBatch], rules: HardPositiveRules) -> dict[str, int]:
    captions = (
        admit_texts(_captions(batch), LIMITS, None, language=rules.language).records
        for batch in batches
    )
    return draw_captions(captions, rules.edits)


def with_drawn(batches: Iterable[TextsBatch], places: Mapping[str, int]) -> Iterator[TextsBatch]:
    for batch in batches:
        names = [record.caption_id for record in _captions(batch)]
        yield replace(batch, drawn={name: places[name] for name in names if name in places})


def _captions(batch: TextsBatch) -> list[CaptionRecord]:
    return [record for texts in batch.images for record in texts.captions]


def _make(
    records: tuple[Text, ...], rules: HardPositiveRules, places: Mapping[str, int] | None
) -> Iterator[_Made]:
    rest: list[Text] = []
    for record in records:
        if rules.published and isinstance(record, FoilRecord):
            found = guarded(partial(published_samples, record, rules.lexicon))
            if isinstance(found, Rejection):
                yield _one(record, found)
            else:
                names = tuple(sample.sample_id for sample in found)
                yield _Made(record=record, candidates=names, outcomes=found)
        elif rules.published and isinstance(record, TextPair):
            yield _one(record, guarded(partial(swapped_sample, record, rules)))
        else:
            rest.append(record)
    free = [record for record in rest if isinstance(record, CaptionRecord)]
    edits = (
        edit_captions(free, rules.edits)
        if places is None
        else edit_as_drawn(free, rules.edits, places)
    )
    edited = {each.record.caption_id: each for each in edits}
    groups: dict[tuple[str, CornerBox | None], list[Text]] = {}  # by image, or part of one
    for record in rest:
        key = picture_key(record.image, record.text_id), record.box
        groups.setdefault(key, []).append(record)
    for group in groups.values():
        outcomes: dict[str, Outcome] = {}
        true: list[str | None] = []
        for record in group:
            if isinstance(record, FoilRecord):
                outcome = guarded(partial(corrected_sample, record, rules))
                true += record.record.positives
            elif isinstance(record, TextPair):
                outcome = guarded(partial(swapped_sample, record, rules))
                true += (record.positive, record.hard_positive)
            else:
                outcome = free_sample(edited[record.caption_id])
                true.append(record.caption)
            outcomes[record.text_id] = outcome
        samples = {
            name: each for name, each in outcomes.items() if isinstance(each, HardPositiveSample)
        }
        true_texts = [text for text in true if text is not None]
        refusals = guarded(partial(reconcile_image, samples, true_texts))
        if isinstance(refusals, Rejection):
            refusals = dict.fromkeys(samples, refusals)
        outcomes.update(refusals)
        yield from (_one(record, outcomes[record.text_id]) for record in group)


def _one(record: Text, outcome: Outcome) -> _Made:
    return _Made(record=record, candidates=(record.text_id,), outcomes=(outcome,))
