"""Eq-Video: Eq-YouCook2's construction for your own captioned videos.

Example:
    eqforge build eq-video --captions captions.jsonl --videos videos/ --output out/eq-video
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eqforge.pipelines.shared.building import build_command
from eqforge.pipelines.shared.pipeline import Input, Target, files_of
from eqforge.pipelines.shared.settings import VideoDataset
from eqforge.pipelines.shared.video import rules_of, video_pipeline
from eqforge.schemas.records.clips import Clip
from eqforge.sources.moment_files import moment_files
from eqforge.sources.video_captions import read_captioned_videos
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.video.propose.segments import SEGMENTS_STAGE, propose_segment_pairs

if TYPE_CHECKING:
    import apache_beam as beam

NAME = "eq-video"

MINIMAL = GateSettings(min_changed_area=0.02, max_changed_area=0.3)
"""Two moments of a video differ in one thing where this share of the picture changes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(VideoDataset):
    """Pairs of captioned moments of a video, from your own captions in any of several forms."""

    captions: Path
    """JSON lines (.jsonl): {"video": "a.mp4", "start_s": 0.0, "end_s": 2.5, "caption": "..."}, or
    with timestamp_s instead of start_s and end_s; optional id, split, licence; others are carried
    along. Or a .json array of these, a .csv or .tsv table with these columns, or subtitles, .srt
    or .vtt, named like their video, as in talk.vtt or talk.en.vtt: one file, or a folder. Or a
    folder of Hugging Face's with these columns: of Dataset.save_to_disk, a snapshot of the hub, or
    with a metadata file. Records that are no captioned moment are refused, at most --max-error-rate
    of them."""

    subtitle_language: str | None = None
    """Which subtitles to take of a video that has several: en takes talk.en.vtt, or else
    talk.en-US.vtt. Those whose names say no language are taken where there are no others."""


def plan(config: Config) -> Iterator[Clip]:
    """Yields a clip per video: the middle frame of each moment, and all pairs of moments."""
    share, language = config.run.max_error_rate, config.subtitle_language
    for video in read_captioned_videos(config.captions, share, language):
        yield propose_segment_pairs(NAME, video, config.settings.captions)


def build(root: "beam.Pipeline", target: Target[Config]) -> None:
    """Wires the pipeline."""
    from eqforge.transforms.dataset.steps import ReadPlan, WriteDataset
    from eqforge.transforms.video.steps import (
        DropFrames,
        DropPairs,
        ExtractFrames,
        MatchCaptions,
        MeasurePairs,
        ScoreImages,
    )

    rules = rules_of(target.config, target.notes)
    _ = (
        root
        | ReadPlan(target.plan_files, Clip)
        | ExtractFrames(rules)
        | ScoreImages(rules)
        | DropFrames(rules)
        | MeasurePairs(rules)
        | MatchCaptions(rules)
        | DropPairs(rules)
        | WriteDataset(target.dataset)
    )


def inputs(config: Config) -> Iterator[Input]:
    """Yields the caption file, or those of the folder."""
    yield from files_of(config.captions, moment_files(config.captions, config.subtitle_language))


PIPELINE = video_pipeline(
    name=NAME,
    config=Config,
    inputs=inputs,
    plan=plan,
    build=build,
    stage=SEGMENTS_STAGE,
    drops_faces=("paper",),
    gates=MINIMAL,
)


def main(argv: list[str]) -> int:
    """Builds the dataset as the command line says."""
    return build_command(PIPELINE, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
