"""Perturbs captions in all 13 ways, and measures each caption once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from eqforge.generators.text.analysis import Analysis, Tagger
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.granularity import measure_granularity
from eqforge.generators.text.language import Language
from eqforge.generators.text.perturbations.catalogue import names_of, perturb_all
from eqforge.generators.text.perturbations.record import PerturbationSettings
from eqforge.generators.text.taggers import load_tagger
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject, Stage
from eqforge.schemas.tables.texts import MeasuredCaption, PerturbedCaption
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.dataset.failures import error_rejection, guarded
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import is_wanted
from eqforge.transforms.dataset.tables import BatchWork
from eqforge.transforms.text.work import CaptionBatch, admit_texts, reject

PERTURBATIONS_STAGE = Stage("perturbations")


@dataclass(frozen=True, kw_only=True, slots=True)
class PerturbationRules:
    """How captions are perturbed."""

    seed: int
    spacy_model: str | None
    perturbations: PerturbationSettings
    captions: CaptionSettings
    images: ImageFolder | None
    only: tuple[str, ...] = ()
    language: Language = "en"


@lru_cache(maxsize=2)
def tagger_of(spacy_model: str | None) -> Tagger:
    return load_tagger(spacy_model)


def analyse_captions(
    captions: Sequence[str], spacy_model: str | None
) -> list[Analysis | Rejection]:
    try:
        return list(tagger_of(spacy_model).analyse(captions))
    except Exception as error:
        if len(captions) == 1:
            return [error_rejection(error)]
        return [found for text in captions for found in analyse_captions([text], spacy_model)]


def perturb_batch(batch: CaptionBatch, rules: PerturbationRules) -> BatchWork:
    """Perturb and measure the captions of a batch; each is analysed once.

    Source: Hendriksen et al., "Benchmark Granularity and Model Robustness for Image-Text
      Retrieval", sections 3 and 4.
    """
    admitted = admit_texts(
        batch.captions, rules.captions, rules.images, rules.only, language=rules.language
    )
    analyses = analyse_captions([r.caption for r in admitted.records], rules.spacy_model)
    samples: list[PerturbedCaption] = []
    measured: list[MeasuredCaption] = []
    rejects: list[Reject] = list(admitted.rejects)
    candidates, every = 0, names_of(rules.perturbations.mode)
    for record, analysis in zip(admitted.records, analyses, strict=True):
        names = [f"{record.caption_id}/{name}" for name in every]
        wanted = [name for name in names if is_wanted(name, rules.only)]
        candidates += len(wanted)
        result = guarded(partial(_make, record, admitted.image_id(record), analysis, rules))
        if isinstance(result, Rejection):
            rejects += (reject(record, name, PERTURBATIONS_STAGE, result) for name in wanted)
            continue
        samples += (sample for sample in result[0] if is_wanted(sample.sample_id, rules.only))
        measured.append(result[1])
    return BatchWork(
        samples=tuple(samples),
        captions=tuple(measured),
        images=admitted.images_of([*samples, *measured]),
        rejects=tuple(rejects),
        tallies=(admitted.tally, PERTURBATIONS_STAGE.tally(candidates, len(samples))),
    )


def _make(
    record: CaptionRecord,
    image_id: str | None,
    analysis: Analysis | Rejection,
    rules: PerturbationRules,
) -> tuple[list[PerturbedCaption], MeasuredCaption] | Rejection:
    if isinstance(analysis, Rejection):
        return analysis
    samples = [
        PerturbedCaption(
            sample_id=f"{record.caption_id}/{perturbation.name}",
            caption_id=record.caption_id,
            image=record.image,
            image_id=image_id,
            split=record.split,
            perturbation=perturbation.name,
            mode=perturbation.mode,
            version=perturbation.version,
            caption=record.caption,
            perturbed_caption=perturbation.text,
            applied=perturbation.applied,
            words_changed=perturbation.words_changed,
            reason=perturbation.reason,
            spans=perturbation.spans_before,
            perturbed_spans=perturbation.spans_after,
        )
        for perturbation in perturb_all(
            analysis, record.caption_id, rules.seed, rules.perturbations
        )
    ]
    return samples, MeasuredCaption(
        caption_id=record.caption_id,
        image=record.image,
        image_id=image_id,
        split=record.split,
        caption=record.caption,
        tagger=analysis.tagger,
        **measure_granularity(analysis),
    )
