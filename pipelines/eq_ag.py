r"""Eq-AG: frames between which a person's relations to an object change (EqBen, appendix B.1).

Example:
    eqforge build eq-ag --objects object_bbox_and_relationship.pkl --persons person_bbox.pkl \
        --videos Charades_v1_480/ --output out/eq-ag
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eqforge.core.errors import InputError
from eqforge.pipelines.shared.building import build_command
from eqforge.pipelines.shared.pipeline import Target
from eqforge.pipelines.shared.settings import VideoDataset
from eqforge.pipelines.shared.video import rules_of, video_pipeline
from eqforge.schemas.records.clips import Clip
from eqforge.sources.action_genome import RELATION_KINDS, read_action_genome
from eqforge.transforms.video.propose.scene_graphs import (
    OBJECTS_STAGE,
    SceneGraphRules,
    propose_scene_graph_pairs,
)

if TYPE_CHECKING:
    import apache_beam as beam

NAME = "eq-ag"


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(VideoDataset):
    """Pairs of changing scene graphs, from Action Genome's annotations and Charades videos."""

    objects: Path
    """Action Genome's object_bbox_and_relationship.pkl."""

    persons: Path | None = None
    """Action Genome's person_bbox.pkl; with it the persons' boxes stand in the annotation."""

    frame_list: Path | None = None
    """Action Genome's frame_list.txt; with it only the listed frames are used."""

    min_changed_relations: int = 2
    """Of the three kinds of relation (attention, spatial, contacting), how many have to differ."""

    skip_frames: int = 1
    """Annotated frames skipped after a chosen one: 1 in the paper's appendix, 2 in section 4.1."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
          InputError: a setting is out of its range.
        """
        if not 1 <= self.min_changed_relations <= len(RELATION_KINDS):
            raise InputError("--min-changed-relations: expected 1, 2 or 3")
        if self.skip_frames < 0:
            raise InputError("--skip-frames: expected 0 or more")


def plan(config: Config) -> Iterator[Clip]:
    """Yields a clip per video: for each object, the frame pairs whose relations differ enough."""
    rules = SceneGraphRules(
        dataset=NAME,
        min_changed_relations=config.min_changed_relations,
        skip_frames=config.skip_frames,
        english=config.mode == "corrected",
    )
    for video in read_action_genome(config.objects, config.persons, config.frame_list):
        yield propose_scene_graph_pairs(video, rules)


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
    named = (config.objects, config.persons, config.frame_list)
    return tuple(path for path in named if path is not None)


PIPELINE = video_pipeline(
    name=NAME,
    config=Config,
    inputs=inputs,
    plan=plan,
    build=build,
    stage=OBJECTS_STAGE,
    drops_faces=(),
)


def main(argv: list[str]) -> int:
    """Builds the dataset as the command line says."""
    return build_command(PIPELINE, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
