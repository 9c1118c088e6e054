r"""Eq-YouCook2: the middle frames of any two steps of a cooking video (EqBen, appendix B.3).

Example:
    eqforge build eq-youcook2 --annotations youcookii_annotations_trainval.json \
        --videos videos/ --output out/eq-youcook2 --workers 4
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eqforge.pipelines.shared.building import build_command
from eqforge.pipelines.shared.pipeline import Target
from eqforge.pipelines.shared.settings import VideoDataset
from eqforge.pipelines.shared.video import rules_of, video_pipeline
from eqforge.schemas.records.clips import Clip
from eqforge.sources.several_files import read_files
from eqforge.sources.youcook2 import read_youcook2
from eqforge.transforms.video.propose.segments import SEGMENTS_STAGE, propose_segment_pairs

if TYPE_CHECKING:
    import apache_beam as beam

NAME = "eq-youcook2"


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(VideoDataset):
    """Pairs of steps of a cooking video, from YouCook2's annotations and videos."""

    annotations: tuple[Path, ...]
    """YouCook2's youcookii_annotations_trainval.json, or several files of its form."""


def plan(config: Config) -> Iterator[Clip]:
    """Yields a clip per video: the middle frame of each step, and all pairs of steps."""
    for _, video in read_files(config.annotations, read_youcook2):
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


def inputs(config: Config) -> tuple[Path, ...]:
    """Returns the annotation files."""
    return tuple(sorted(config.annotations))


PIPELINE = video_pipeline(
    name=NAME,
    config=Config,
    inputs=inputs,
    plan=plan,
    build=build,
    stage=SEGMENTS_STAGE,
    drops_faces=("paper", "corrected"),
)


def main(argv: list[str]) -> int:
    """Builds the dataset as the command line says."""
    return build_command(PIPELINE, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
