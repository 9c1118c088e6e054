r"""Eq-AG: frames between which a person's relations to an object change (EqBen, appendix B.1).

    scene graphs of a video's annotated frames
      → for each object, two frames in which a person's relations to it differ
      → captions of the relations in each frame
      → corrected mode: drop black or blurred frames (camera cuts only with --min-histogram-change)

Example:
    eqforge build eq-ag --objects object_bbox_and_relationship.pkl --persons person_bbox.pkl \
        --videos Charades_v1_480/ --output out/eq-ag
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.video import VIDEO_STAGES, VideoDataset, VideoPipeline
from eqforge.schemas.records.frames import Clip
from eqforge.sources.action_genome import RELATION_KINDS, read_action_genome
from eqforge.transforms.video.scene_graphs import (
    OBJECTS_STAGE,
    SceneGraphRules,
    propose_scene_graph_pairs,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(VideoDataset):
    """Build pairs of video frames in which a person's relations to an object differ."""

    objects: Path
    """Action Genome's object_bbox_and_relationship.pkl."""

    persons: Path | None = None
    """Action Genome's person_bbox.pkl, which adds person boxes to the annotations."""

    frame_list: Path | None = None
    """Action Genome's frame_list.txt, which limits the dataset to the listed frames."""

    min_changed_relations: int = 2
    """Minimum number of relation types that must change (attention, spatial, contacting)."""

    skip_frames: int = 1
    """Number of annotated frames to skip after each selected frame. The paper skips 2 (section
    4.1)."""

    def __post_init__(self) -> None:
        if not 1 <= self.min_changed_relations <= len(RELATION_KINDS):
            raise InputError(
                f"--min-changed-relations {self.min_changed_relations}: expected 1 to 3"
            )
        if self.skip_frames < 0:
            raise InputError(f"--skip-frames {self.skip_frames}: expected 0 or more")


class EqAg(VideoPipeline[Config]):
    """Frames between which a person's relations to an object change (EqBen, appendix B.1)."""

    name = "eq-ag"
    Config = Config
    stages = (OBJECTS_STAGE, *VIDEO_STAGES)

    def candidates(self) -> Iterator[Clip]:
        config = self.config
        rules = SceneGraphRules(
            dataset=self.name,
            min_changed_relations=config.min_changed_relations,
            skip_frames=config.skip_frames,
            english=config.mode == "corrected",
        )
        for video in read_action_genome(config.objects, config.persons, config.frame_list):
            yield propose_scene_graph_pairs(video, rules)


main = Main(EqAg)
