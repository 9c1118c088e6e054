"""Makes ladders of captions: at each level one more rewording, and one more false edit."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from eqforge.core.identity import derive_seed, picture_key
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.edits import EditedText
from eqforge.generators.text.graded.climb import Climber, Offers
from eqforge.generators.text.graded.records import (
    FEW_NEGATIVES,
    FEW_REWORDINGS,
    LADDER_REFUSALS,
    SHORT_LADDER,
    Step,
    compose,
)
from eqforge.generators.text.graded.steps import (
    false_steps,
    offers_negative,
    offers_rewording,
    rewording_steps,
)
from eqforge.generators.text.hard_negatives.make import known_words
from eqforge.generators.text.hard_positives.reconcile import what_is_said
from eqforge.generators.text.language import Language
from eqforge.schemas.records.books import Reject, Stage
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.tables.graded import MIXED, GradedCaption
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.dataset.books import guarded
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import is_wanted
from eqforge.transforms.text.distances import TextModels
from eqforge.transforms.text.perturb import analyse_captions, tagger_of
from eqforge.transforms.text.work import CaptionBatch, TextWork, admit_texts, reject

LADDERS_STAGE = Stage("ladders", LADDER_REFUSALS)
VERSION = 1
GENERATOR = f"eqforge.graded_captions {VERSION}"


@dataclass(frozen=True, kw_only=True, slots=True)
class LadderRules:
    """How ladders are made.

    Attributes:
      seed: of the run.
      levels: the most levels of a ladder.
      least: ladders of fewer levels are refused.
      positive_families, negative_kinds: what steps may be of.
      spacy_model: a spaCy pipeline for the tags; None uses the lexicon tagger.
      captions: which captions are refused.
      images: the folder of images, where the user names one.
      models: what measures the texts besides words and characters.
      only: ids of the samples to make; empty makes all.
      language: what the captions have to be written in.
    """

    seed: int
    levels: int
    least: int
    positive_families: tuple[str, ...]
    negative_kinds: tuple[str, ...]
    spacy_model: str | None
    captions: CaptionSettings
    images: ImageFolder | None
    models: TextModels
    only: tuple[str, ...] = ()
    language: Language = "en"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Side:
    """The rewordings, or the false edits.

    Attributes:
      name: of its random numbers.
      find: yields the steps that a caption offers.
      offers: tells whether a text offers a step that makes another text of it.
    """

    name: str
    find: Callable[[Analysis, random.Random], Iterable[Step]]
    offers: Offers


Found = tuple[Step, ...] | Rejection


def make_ladders(batch: CaptionBatch, rules: LadderRules) -> TextWork:
    """Returns the ladders of a batch of whole images; each caption is a candidate at each level."""
    admitted = admit_texts(
        batch.captions, rules.captions, rules.images, rules.only, language=rules.language
    )
    samples: list[GradedCaption] = []
    rejects: list[Reject] = list(admitted.rejects)
    candidates = 0
    for record, positive, negative in _ladders(admitted.records, rules):
        made = guarded(partial(_levels, record, positive, negative, rules))
        for level in range(1, rules.levels + 1):
            name = f"{record.caption_id}/{level}"
            if not is_wanted(name, rules.only):
                continue
            candidates += 1
            outcome = made if isinstance(made, Rejection) else made[level - 1]
            if isinstance(outcome, Rejection):
                rejects.append(reject(record, name, LADDERS_STAGE, outcome))
            else:
                samples.append(replace(outcome, image_id=admitted.image_id(record)))
    return TextWork(
        samples=tuple(samples),
        images=admitted.images_of(samples),
        rejects=tuple(rejects),
        tallies=(admitted.tally, LADDERS_STAGE.tally(candidates, len(samples))),
    )


def _ladders(
    records: Sequence[CaptionRecord], rules: LadderRules
) -> Iterator[tuple[CaptionRecord, Found, Found]]:
    """Yields each caption with its rewordings and its false edits, as many as were found."""
    analyses = analyse_captions([record.caption for record in records], rules.spacy_model)
    images: dict[str, list[tuple[CaptionRecord, Analysis | Rejection]]] = {}
    for record, analysis in zip(records, analyses, strict=True):
        key = picture_key(record.image, record.caption_id)
        images.setdefault(key, []).append((record, analysis))
    for found in images.values():
        yield from _of_image(found, rules)


def _of_image(
    captions: Sequence[tuple[CaptionRecord, Analysis | Rejection]], rules: LadderRules
) -> Iterator[tuple[CaptionRecord, Found, Found]]:
    """Yields the steps of an image's captions; no two of its texts say the same.

    Rewordings come first: no false text may say what any true one does. A word of another caption
    of the image is never put in, as what it names is likely to be there.
    """
    known = known_words(record.caption for record, _ in captions)
    sides = (
        _Side(
            name="rewordings",
            find=lambda analysis, _: (
                step
                for step in rewording_steps(analysis)
                if step.kind.partition("/")[0] in rules.positive_families
            ),
            offers=offers_rewording,
        ),
        _Side(
            name="negatives",
            find=lambda analysis, rng: (
                step
                for step in false_steps(analysis, known, rng)
                if step.kind in rules.negative_kinds
            ),
            offers=offers_negative,
        ),
    )
    said = {what_is_said(record.caption) for record, _ in captions}
    found = [[_climb(*caption, side, said, rules) for caption in captions] for side in sides]
    yield from ((record, *both) for (record, _), *both in zip(captions, *found, strict=True))


def _climb(
    record: CaptionRecord,
    analysis: Analysis | Rejection,
    side: _Side,
    said: set[str],
    rules: LadderRules,
) -> Found:
    """Returns the steps of a caption on one side, and adds what its texts say to `said`."""
    if isinstance(analysis, Rejection):
        return analysis
    rng = random.Random(derive_seed(rules.seed, record.caption_id, side.name, VERSION))
    climber = Climber(
        analyse=lambda text: tagger_of(rules.spacy_model).analyse([text])[0],
        offers=side.offers,
        takes=lambda text: what_is_said(text) not in said,
    )
    found = guarded(lambda: climber.climb(analysis, side.find(analysis, rng), rules.levels, rng))
    if not isinstance(found, Rejection):
        said |= {what_is_said(text.text) for text in _texts(record.caption, found)}
    return found


def _texts(caption: str, steps: tuple[Step, ...]) -> list[EditedText]:
    """Returns the texts of the levels."""
    return [compose(caption, steps[:level]) for level in range(1, len(steps) + 1)]


def _levels(
    record: CaptionRecord, positive: Found, negative: Found, rules: LadderRules
) -> list[GradedCaption | Rejection]:
    """Returns for each level its row, without the image, or why there is none."""
    if isinstance(positive, Rejection):
        return [positive] * rules.levels
    if isinstance(negative, Rejection):
        return [negative] * rules.levels
    height = min(len(positive), len(negative))
    detail = f"{len(positive)} rewordings, {len(negative)} false edits"
    missing = [
        Rejection(reason=FEW_REWORDINGS if len(positive) < level else FEW_NEGATIVES, detail=detail)
        for level in range(height + 1, rules.levels + 1)
    ]
    if height < rules.least:
        return [*[Rejection(reason=SHORT_LADDER, detail=detail)] * height, *missing]
    return [*_rows(record, positive[:height], negative[:height], rules.models), *missing]


def _rows(
    record: CaptionRecord,
    positive: tuple[Step, ...],
    negative: tuple[Step, ...],
    models: TextModels,
) -> Iterator[GradedCaption]:
    sides = [
        list(zip(texts, models.measure(record.caption, [text.text for text in texts]), strict=True))
        for texts in (_texts(record.caption, steps) for steps in (positive, negative))
    ]
    for level, ((reworded, near), (false, far)) in enumerate(zip(*sides, strict=True), start=1):
        true_kinds, false_kinds = (
            tuple(step.kind for step in steps[:level]) for steps in (positive, negative)
        )
        yield GradedCaption(
            sample_id=f"{record.caption_id}/{level}",
            caption_id=record.caption_id,
            image=record.image,
            image_id=None,
            split=record.split,
            level=level,
            levels=len(positive),
            caption=record.caption,
            hard_positive=reworded.text,
            hard_negative=false.text,
            hard_positive_kind=_one_of(true_kinds),
            hard_negative_kind=_one_of(false_kinds),
            hard_positive_kinds=true_kinds,
            hard_negative_kinds=false_kinds,
            hard_positive_words=near.words,
            hard_negative_words=far.words,
            hard_positive_characters=near.characters,
            hard_negative_characters=far.characters,
            hard_positive_embedding=near.embedding,
            hard_negative_embedding=far.embedding,
            hard_positive_entailment=near.entailment,
            hard_negative_entailment=far.entailment,
            embedding_model=models.embedding_name,
            entailment_model=models.entailment_name,
            caption_spans=reworded.spans_before,
            hard_positive_spans=reworded.spans_after,
            foil_spans=false.spans_before,
            hard_negative_spans=false.spans_after,
            generator=GENERATOR,
        )


def _one_of(kinds: tuple[str, ...]) -> str:
    return kinds[0] if len(set(kinds)) == 1 else MIXED
