r"""Eq-YouCook2: the middle frames of any two steps of a cooking video (EqBen, appendix B.3).

    steps of a cooking video, each with its caption
      → the middle frame of each step; frames that show a face are dropped
      → every two frames of the video
      → corrected mode: drop black or blurred frames (camera cuts only with --min-histogram-change)

Example:
    eqforge build eq-youcook2 --annotations youcookii_annotations_trainval.json \
        --videos videos/ --output out/eq-youcook2 --workers 4
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.video import VIDEO_STAGES, VideoDataset, VideoPipeline
from eqforge.schemas.records.frames import Clip
from eqforge.sources.captioned_videos import read_files, read_youcook2
from eqforge.transforms.video.segments import SEGMENTS_STAGE, propose_segment_pairs


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(VideoDataset):
    """Build pairs of frames from YouCook2 that show different steps of a cooking video."""

    annotations: tuple[Path, ...]
    """YouCook2's youcookii_annotations_trainval.json, or several files in this format."""


class EqYouCook2(VideoPipeline[Config]):
    """The middle frames of any two steps of a cooking video (EqBen, appendix B.3)."""

    name = "eq-youcook2"
    Config = Config
    stages = (SEGMENTS_STAGE, *VIDEO_STAGES)
    drops_faces = ("paper", "corrected")

    def candidates(self) -> Iterator[Clip]:
        for _, video in read_files(self.config.annotations, read_youcook2):
            yield propose_segment_pairs(self.name, video, self.config.settings.captions)


main = Main(EqYouCook2)
