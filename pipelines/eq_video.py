"""Eq-Video: Eq-YouCook2's construction for your own captioned videos.

    captioned frames or segments of a video
      → the middle frame of each
      → every two frames of the video
      → corrected mode: drop black or blurred frames, and pairs that are not minimal (camera cuts
        only with --min-histogram-change)

Example:
    eqforge build eq-video --captions captions.jsonl --videos videos/ --output out/eq-video
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from eqforge.pipelines.base.command import Main
from eqforge.pipelines.base.pipeline import Input, files_of
from eqforge.pipelines.base.video import VIDEO_STAGES, VideoDataset, VideoPipeline
from eqforge.schemas.records.frames import Clip
from eqforge.sources.moment_files import moment_files
from eqforge.sources.video_captions import read_captioned_videos
from eqforge.transforms.filters.minimality_score import MinimalitySettings
from eqforge.transforms.video.segments import SEGMENTS_STAGE, propose_segment_pairs


@dataclass(frozen=True, kw_only=True, slots=True)
class Config(VideoDataset):
    """Build pairs of captioned frames from your own videos."""

    captions: Path
    """File or folder of timed captions, in one of several formats. In JSON Lines or a JSON array, a
    record has the form {"video": "a.mp4", "start_s": 0.0, "end_s": 2.5, "caption": "..."}. The
    field timestamp_s or frame can replace start_s and end_s. The fields id, split and licence are
    optional. Write times in seconds, or as text such as 0:01.5. Tables (.csv, .tsv, Hugging Face
    folders) have columns with the same names as the fields. Subtitles have the extension .srt or
    .vtt. Text files (.txt) have a time at the start of each line. Pass one file of subtitles or
    text, or a folder with one file per video, such as talk.vtt or talk.en.vtt. You can also pass
    the published JSON files of ActivityNet Captions, YouCook2 and Ego4D."""

    subtitle_language: str | None = None
    """Language of the subtitles to use, such as `en`. Needed if a video has subtitles in several
    languages."""


class EqVideo(VideoPipeline[Config]):
    """Eq-YouCook2's construction for your own captioned videos."""

    name = "eq-video"
    Config = Config
    stages = (SEGMENTS_STAGE, *VIDEO_STAGES)
    drops_faces = ("paper",)
    # docs/datasets/eq-video.md states its error rates on labelled clips.
    minimal = MinimalitySettings(min_minimality=0.18)
    registers = True
    basics = ("min-minimality", "keep-best", "face-policy", "max-side", "workers", "mode")

    def inputs(self) -> Iterator[Input]:
        captions = self.config.captions
        yield from files_of(captions, moment_files(captions, self.config.subtitle_language))

    def candidates(self) -> Iterator[Clip]:
        """Yield a clip per video: the middle frame of each caption, and all pairs of captions."""
        config = self.config
        share, language = config.run.max_error_rate, config.subtitle_language
        for video in read_captioned_videos(config.captions, share, language):
            yield propose_segment_pairs(self.name, video, config.settings.captions)


main = Main(EqVideo)
