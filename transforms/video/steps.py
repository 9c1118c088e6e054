"""The steps of a pipeline over videos: each wires the function of its name."""

import abc
from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam

from eqforge.schemas.records.frames import Clip
from eqforge.transforms.engines import progress
from eqforge.transforms.engines.counted_step import WithResource
from eqforge.transforms.engines.placement import on_gpu
from eqforge.transforms.video.clip_work import ClipWork
from eqforge.transforms.video.extract import extract_frames
from eqforge.transforms.video.frames.extract import FrameExtractor
from eqforge.transforms.video.pair import (
    drop_frames,
    drop_pairs,
    measure_pairs,
    score_images,
    score_matches,
)
from eqforge.transforms.video.rules import VideoPairRules


@dataclass
class ExtractFrames(beam.PTransform):
    """Stores the frames of every clip, in one decoding pass per video."""

    rules: VideoPairRules

    def expand(self, clips: beam.PCollection[Clip]) -> beam.PCollection[ClipWork]:
        decode = beam.ParDo(WithResource(self.rules.extractor(), self._extract))
        return clips | "DecodeOnce" >> decode.with_output_types(ClipWork)

    def _extract(self, clip: Clip, extractor: FrameExtractor) -> Iterator[ClipWork]:
        rules, ledger = self.rules, self.rules.ledger("extract")
        yield extract_frames(clip, rules.videos, extractor, ledger, rules.frames_fps)
        progress.count(rules.notes, "extracted")


@dataclass
class ClipStep(beam.PTransform):
    """Turns each clip's work into its next state, independently."""

    rules: VideoPairRules

    def expand(self, clips: beam.PCollection[ClipWork]) -> beam.PCollection[ClipWork]:
        return clips | "Make" >> beam.Map(self.make)

    @abc.abstractmethod
    def make(self, work: ClipWork) -> ClipWork: ...


class ScoreImages(ClipStep):
    """Scores every frame of every clip."""

    def make(self, work: ClipWork) -> ClipWork:
        rules = self.rules
        scored = score_images(work, rules.media, rules.image_filters, rules.ledger("score"))
        progress.count(rules.notes, "judged", len(work.clip.frames))
        return scored


class DropFrames(ClipStep):
    """Drops the frames with a rejected score."""

    def make(self, work: ClipWork) -> ClipWork:
        return drop_frames(work, self.rules.image_filters)


class MeasurePairs(ClipStep):
    """Measures every candidate pair of every clip."""

    def make(self, work: ClipWork) -> ClipWork:
        rules = self.rules
        return measure_pairs(work, rules.media, rules.pair_filters, rules.ledger("measure"))


@dataclass
class MatchCaptions(beam.PTransform):
    """Scores the pairs of every clip by the oracle, if requested."""

    rules: VideoPairRules

    def expand(self, clips: beam.PCollection[ClipWork]) -> beam.PCollection[ClipWork]:
        score = beam.Map(self._score)
        if self.rules.pair_filters.oracle.uses_gpu:
            score = on_gpu(score, clips.pipeline)
        return clips | "ScorePairsByOracle" >> score

    def _score(self, work: ClipWork) -> ClipWork:
        rules = self.rules
        scored = score_matches(work, rules.media, rules.pair_filters, rules.ledger("match"))
        progress.count(rules.notes, "paired", len(work.clip.pairs))
        return scored


class DropPairs(ClipStep):
    """Drops the pairs with a rejected score, and those beyond the limit of a video."""

    def make(self, work: ClipWork) -> ClipWork:
        return drop_pairs(work, self.rules.pair_filters)
