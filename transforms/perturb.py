"""Perturbs captions in all 13 ways, and measures each caption once."""

from dataclasses import asdict, dataclass
from functools import lru_cache

import apache_beam as beam

from eqforge.generators.text.analysis import Analysis, Tagger
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.granularity import measure_granularity
from eqforge.generators.text.perturbations.perturb import perturb_all
from eqforge.generators.text.perturbations.record import PerturbationSettings
from eqforge.generators.text.taggers import load_tagger
from eqforge.schemas.caption_sources import CaptionRecord
from eqforge.schemas.clips import Tally
from eqforge.schemas.tables import ImageRow
from eqforge.schemas.text_tables import MeasuredCaption, PerturbedCaption
from eqforge.transforms import progress
from eqforge.transforms.images import ImageFolder
from eqforge.transforms.text_work import CaptionBatch, TextWork, admit_captions

PERTURBATIONS = "perturbations"


@dataclass(frozen=True, kw_only=True, slots=True)
class PerturbationRules:
    """How captions are perturbed.

    Attributes:
      seed: of the run.
      spacy_model: a spaCy pipeline for the tags; None uses the lexicon tagger.
      perturbations: mode and strength.
      captions: which captions are refused.
      images: the folder of images, where the user names one.
      only: ids of the samples to make; empty makes all.
    """

    seed: int
    spacy_model: str | None
    perturbations: PerturbationSettings
    captions: CaptionSettings
    images: ImageFolder | None
    only: tuple[str, ...] = ()


@lru_cache(maxsize=2)
def tagger_of(spacy_model: str | None) -> Tagger:
    """Returns a tagger, loaded once in every process."""
    return load_tagger(spacy_model)


def perturb_batch(batch: CaptionBatch, rules: PerturbationRules) -> TextWork:
    """Returns the perturbed and the measured captions of a batch; each is analysed once.

    Source: Hendriksen et al., "Benchmark Granularity and Model Robustness for Image-Text
      Retrieval", sections 3 and 4.
    """
    admitted = admit_captions(batch.captions, rules.captions, rules.images)
    tagger = tagger_of(rules.spacy_model)
    analyses = tagger.analyse([record.caption for record, _ in admitted.captions])
    samples: list[PerturbedCaption] = []
    measured: list[MeasuredCaption] = []
    for (record, image), analysis in zip(admitted.captions, analyses, strict=True):
        samples += _perturbed(record, image, analysis, rules)
        measured.append(_measured(record, image, analysis))
    kept = [sample for sample in samples if not rules.only or sample.sample_id in rules.only]
    return TextWork(
        samples=tuple(kept),
        captions=tuple(measured),
        images=admitted.images,
        rejects=admitted.rejects,
        tallies=(
            admitted.tally,
            Tally(stage=PERTURBATIONS, candidates=len(kept), kept=len(kept)),
        ),
    )


def _perturbed(
    record: CaptionRecord, image: ImageRow | None, analysis: Analysis, rules: PerturbationRules
) -> list[PerturbedCaption]:
    found = perturb_all(analysis, record.caption_id, rules.seed, rules.perturbations)
    return [
        PerturbedCaption(
            sample_id=f"{record.caption_id}/{perturbation.name}",
            caption_id=record.caption_id,
            image=record.image,
            image_id=None if image is None else image.image_id,
            split=record.split,
            perturbation=perturbation.name,
            mode=perturbation.mode,
            version=perturbation.version,
            caption=record.caption,
            perturbed_caption=perturbation.text,
            applied=perturbation.applied,
            reason=perturbation.reason,
            spans=perturbation.spans_before,
            perturbed_spans=perturbation.spans_after,
        )
        for perturbation in found
    ]


def _measured(record: CaptionRecord, image: ImageRow | None, analysis: Analysis) -> MeasuredCaption:
    return MeasuredCaption(
        caption_id=record.caption_id,
        image=record.image,
        image_id=None if image is None else image.image_id,
        split=record.split,
        caption=record.caption,
        tagger=analysis.tagger,
        **asdict(measure_granularity(analysis)),
    )


@dataclass
class PerturbCaptions(beam.PTransform):
    """Perturbs and measures batches of captions."""

    rules: PerturbationRules
    progress_folder: str | None = None

    def expand(self, batches: beam.PCollection[CaptionBatch]) -> beam.PCollection[TextWork]:
        return batches | "PerturbBatch" >> beam.Map(self._perturb)

    def _perturb(self, batch: CaptionBatch) -> TextWork:
        work = perturb_batch(batch, self.rules)
        progress.count(self.progress_folder, "perturbed")
        return work
