"""The steps of a pipeline over videos: each wires the function of its name."""

from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam

from eqforge.schemas.records.frames import Clip
from eqforge.transforms.engines import progress
from eqforge.transforms.engines.counted_step import CountedStep, WithResource
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
    progress_folder: str | None = None

    def expand(self, clips: beam.PCollection[Clip]) -> beam.PCollection[ClipWork]:
        decode = beam.ParDo(WithResource(self.rules.extractor(), self.make))
        return clips | "DecodeOnce" >> decode.with_output_types(ClipWork)

    def make(self, clip: Clip, extractor: FrameExtractor) -> Iterator[ClipWork]:
        rules, ledger = self.rules, self.rules.ledger("extract")
        yield extract_frames(clip, rules.videos, extractor, ledger, rules.frames_fps)
        progress.count(self.progress_folder, "extracted")


class ScoreImages(CountedStep[VideoPairRules]):
    """Scores every frame of every clip."""

    counted = "judged"

    def size(self, work: ClipWork) -> int:
        return len(work.clip.frames)

    def make(self, work: ClipWork) -> ClipWork:
        rules = self.rules
        return score_images(work, rules.media, rules.image_filters, rules.ledger("score"))


class DropFrames(CountedStep[VideoPairRules]):
    """Drops the frames with a rejected score."""

    def make(self, work: ClipWork) -> ClipWork:
        return drop_frames(work, self.rules.image_filters)


class MeasurePairs(CountedStep[VideoPairRules]):
    """Measures every candidate pair of every clip."""

    def make(self, work: ClipWork) -> ClipWork:
        rules = self.rules
        return measure_pairs(work, rules.media, rules.pair_filters, rules.ledger("measure"))


class MatchCaptions(CountedStep[VideoPairRules]):
    """Scores the pairs of every clip by the oracle, if requested."""

    counted = "paired"

    @property
    def uses_gpu(self) -> bool:
        return self.rules.pair_filters.oracle.uses_gpu

    def size(self, work: ClipWork) -> int:
        return len(work.clip.pairs)

    def make(self, work: ClipWork) -> ClipWork:
        rules = self.rules
        return score_matches(work, rules.media, rules.pair_filters, rules.ledger("match"))


class DropPairs(CountedStep[VideoPairRules]):
    """Drops the pairs with a rejected score, and those beyond the limit of a video."""

    def make(self, work: ClipWork) -> ClipWork:
        return drop_pairs(work, self.rules.pair_filters)
