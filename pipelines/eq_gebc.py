"""Eq-GEBC: the frames before a boundary and after the next one (EqBen, appendix B.2).

    boundaries of a video, each with captions of what comes before and after it
      → the frame before a boundary and the frame after the next one
      → captions with a word of movement are dropped
      → corrected mode: drop black or blurred frames (camera cuts only with --min-histogram-change)

Example:
    eqforge build eq-gebc --annotations val.json --videos videos/ --output out/eq-gebc

With --grounding, the pairs are all adjacent frames of a video (appendix A.6).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from tyro.conf import FlagCreatePairsOff

from eqforge.core.errors import InputError
from eqforge.core.files.found_frames import TrimmedClips
from eqforge.generators.text.words import ACTION_WORDS, read_word_list
from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.pipeline import Input
from eqforge.pipelines.base.video import VIDEO_STAGES, VideoDataset, VideoPipeline
from eqforge.schemas.records.frames import VIDEO_SUFFIXES, Clip
from eqforge.sources.captioned_videos import read_files, read_gebplus
from eqforge.transforms.video.boundaries import (
    BOUNDARIES_STAGE,
    BoundaryRules,
    propose_adjacent_pairs,
    propose_boundary_pairs,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(VideoDataset):
    """Build pairs of frames before and after event boundaries (GEB+ and Kinetics)."""

    annotations: tuple[Path, ...]
    """One or more GEB+ files, such as train.json, val.json or test.json. The file names become the
    split names."""

    action_words: Path | None = None
    """File of words, one per line. Captions that contain one of these words are rejected. The
    default is the paper's list: up, down, upward, downward, towards."""

    grounding: Annotated[bool, FlagCreatePairsOff] = False
    """Build samples for boundary grounding. eqforge takes 5 frames per second of video. Each
    sample combines two adjacent frames with the captions that describe the video before and after
    a boundary. Every pair of adjacent frames is used. This option requires --mode paper, because
    the filters of corrected mode would drop frames."""


class EqGebc(VideoPipeline[Config]):
    """The frames before a boundary and after the next one (EqBen, appendix B.2)."""

    name = "eq-gebc"
    Config = Config
    stages = (BOUNDARIES_STAGE, *VIDEO_STAGES)

    def inputs(self) -> Iterator[Input]:
        yield from (*sorted(self.config.annotations), self.config.action_words or ACTION_WORDS)

    def candidates(self) -> Iterator[Clip]:
        config, is_corrected = self.config, self.config.mode == "corrected"
        if config.grounding and is_corrected:
            raise InputError("--grounding works only with --mode paper, which keeps all frames")
        action_words = read_word_list(config.action_words or ACTION_WORDS)
        rules = BoundaryRules(
            dataset=self.name,
            split="",
            action_words=() if config.grounding else action_words,
            with_subject=is_corrected,
            at_middle=is_corrected,
            captions=config.settings.captions,
        )
        propose = propose_adjacent_pairs if config.grounding else propose_boundary_pairs
        clips = TrimmedClips(self.folder("videos"), VIDEO_SUFFIXES)
        for path, video in read_files(config.annotations, read_gebplus):
            clip = propose(video, replace(rules, split=path.stem))
            yield replace(clip, video=clips.find(clip.video))


main = Main(EqGebc)
