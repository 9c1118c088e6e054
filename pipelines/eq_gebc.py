"""Eq-GEBC: the frames before a boundary and after the next one (EqBen, appendix B.2).

Example:
    eqforge build eq-gebc --annotations val.json --videos videos/ --output out/eq-gebc
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from eqforge.core.files.trimmed_clips import TrimmedClips
from eqforge.generators.text.words import ACTION_WORDS, read_word_list
from eqforge.pipelines.shared.building import build_command
from eqforge.pipelines.shared.media import media_folder
from eqforge.pipelines.shared.pipeline import Target
from eqforge.pipelines.shared.settings import VideoDataset
from eqforge.pipelines.shared.video import rules_of, video_pipeline
from eqforge.schemas.records.clips import Clip
from eqforge.schemas.records.frames import VIDEO_SUFFIXES
from eqforge.sources.gebplus import read_gebplus
from eqforge.sources.several_files import read_files
from eqforge.transforms.video.propose.boundaries import (
    BOUNDARIES_STAGE,
    BoundaryRules,
    propose_boundary_pairs,
)

if TYPE_CHECKING:
    import apache_beam as beam

NAME = "eq-gebc"


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(VideoDataset):
    """Pairs around event boundaries, from GEB+'s boundary captions and Kinetics videos."""

    annotations: tuple[Path, ...]
    """GEB+'s train.json, val.json or test.json, or several; a file's name becomes the split."""

    action_words: Path | None = None
    """Word list, one a line: a caption with one of these words is dropped. Without it the five
    words of the paper: up, down, upward, downward, towards."""


def plan(config: Config) -> Iterator[Clip]:
    """Yields a clip per video, with the pairs of frames that have one boundary between them."""
    rules = {path: _rules(config, path.stem) for path in config.annotations}
    clips = TrimmedClips(media_folder(config.videos, config.run), VIDEO_SUFFIXES)
    for path, video in read_files(config.annotations, read_gebplus):
        clip = propose_boundary_pairs(video, rules[path])
        yield replace(clip, video=clips.find(clip.video))


def _rules(config: Config, split: str) -> BoundaryRules:
    return BoundaryRules(
        dataset=NAME,
        split=split,
        action_words=read_word_list(config.action_words or ACTION_WORDS),
        with_subject=config.mode == "corrected",
        at_middle=config.mode == "corrected",
        captions=config.settings.captions,
    )


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


def inputs(config: Config) -> tuple[Path, ...]:
    """Returns the annotation files and the word list."""
    return (*sorted(config.annotations), config.action_words or ACTION_WORDS)


PIPELINE = video_pipeline(
    name=NAME,
    config=Config,
    inputs=inputs,
    plan=plan,
    build=build,
    stage=BOUNDARIES_STAGE,
    drops_faces=(),
)


def main(argv: list[str]) -> int:
    """Builds the dataset as the command line says."""
    return build_command(PIPELINE, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
