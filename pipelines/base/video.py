"""Base of datasets made of videos: settings and pipeline."""

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.files import storage
from eqforge.core.files.find_file import MISSING, MissingFile
from eqforge.core.files.found_file import FoundFile
from eqforge.core.files.found_frames import FoundFrames, FoundVideo, or_frames
from eqforge.core.files.source_folder import namesakes
from eqforge.core.identity import Trace
from eqforge.core.ranges import expect
from eqforge.core.shell import MediaRoot
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.pipelines.base.pipeline import (
    DatasetConfig,
    Mode,
    PilotCost,
    PilotUnit,
    Pipeline,
    Target,
)
from eqforge.schemas.records.frames import VIDEO_SUFFIXES, Clip, FrameSettings
from eqforge.schemas.tables.pairs import IMAGES_TABLE, PAIRS_TABLE
from eqforge.transforms.dataset.census import VIDEOS, Medium
from eqforge.transforms.dataset.plan import PlanFiles, read_plan, select
from eqforge.transforms.dataset.tables import Table, files_for, rejects_table, table_of
from eqforge.transforms.filters.cuts import CutSettings
from eqforge.transforms.filters.faces import FACES, FaceSettings
from eqforge.transforms.filters.image_filter import import_cv2
from eqforge.transforms.filters.images import ImageFilters
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.filters.minimality_score import MinimalitySettings
from eqforge.transforms.filters.pairs import PAIRS_STAGE
from eqforge.transforms.oracle.judges import OracleSettings, oracle_warnings, prepare_oracle
from eqforge.transforms.video.clip_work import FRAMES_STAGE, images_of
from eqforge.transforms.video.pictures import FrameFolder, FramePicture, needs_rate, rate_missing
from eqforge.transforms.video.rules import FramePairFilters, VideoPairRules
from eqforge.transforms.video.segments import TOO_FEW

if TYPE_CHECKING:
    import apache_beam as beam


VIDEO_STAGES = (FRAMES_STAGE, PAIRS_STAGE)
"""The stages after the one that proposes pairs."""
SHOWN_SAMPLES, SHOWN_MISSING = 3, 10


@dataclass(frozen=True, kw_only=True)
class _Frames:
    """Extraction and storage of frames; it comes first."""

    frames: OmitArgPrefixes[FrameSettings] = field(default_factory=FrameSettings)


@dataclass(frozen=True, kw_only=True)
class VideoSettings(ImageFilters, _Frames):
    """Filters for captions, and number of pairs per video."""

    cuts: OmitArgPrefixes[CutSettings] = field(default_factory=CutSettings)
    gates: OmitArgPrefixes[GateSettings] = field(default_factory=GateSettings)
    minimal: Annotated[OmitArgPrefixes[MinimalitySettings], Trace.IF_CHANGED] = field(
        default_factory=MinimalitySettings
    )
    captions: OmitArgPrefixes[CaptionSettings] = field(default_factory=CaptionSettings)
    oracle: OmitArgPrefixes[OracleSettings] = field(default_factory=OracleSettings)

    distinct_captions: bool = True
    """Reject pairs with two identical captions. --no-distinct-captions keeps them."""

    max_pairs_per_video: int | None = None
    """Maximum number of pairs per video. If a video has more pairs, eqforge selects pairs by a hash
    of their ids."""

    def __post_init__(self) -> None:
        most = self.max_pairs_per_video
        expect(self, "max_pairs_per_video", most is None or most >= 0, "0 or more")


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoDataset(DatasetConfig):
    """Settings shared by all video datasets; each dataset adds its own annotations."""

    videos: MediaRoot
    """Folder or URL of the videos, or tar shards such as 'shards/*.tar'. Captions and annotations
    refer to videos by file name, with or without an extension such as .mp4."""

    frames_fps: float | None = None
    """Frame rate of videos stored as folders of frames. Required if the captions have times in
    seconds. The frame at t seconds is frame t * RATE + 1, rounded down. For example, the
    frame at 0 seconds is VIDEO/00001.jpg."""

    decoder_timeout_s: Annotated[float, Trace.NONE] = 300.0
    """Stop decoding a video after this number of seconds without progress."""

    settings: OmitArgPrefixes[VideoSettings] = field(default_factory=VideoSettings)

    def __post_init__(self) -> None:
        expect(self, "decoder_timeout_s", self.decoder_timeout_s > 0, "more than 0 seconds")
        is_rate = self.frames_fps is None or 0 < self.frames_fps < math.inf
        expect(self, "frames_fps", is_rate, "more than 0 frames a second")


def video_settings(
    mode: Mode, drops_faces: bool, minimal: MinimalitySettings | None = None
) -> VideoSettings:
    """Return the defaults of a mode; paper mode turns off all checks that the papers lack."""
    if mode == "corrected":
        return VideoSettings(
            faces=FaceSettings() if drops_faces else FACES.off,
            minimal=minimal or MinimalitySettings(),
        )
    return VideoSettings.off(
        faces=FaceSettings(face_policy="paper") if drops_faces else FACES.off,
        frames=FrameSettings(stored_pixels=True),
        captions=CaptionSettings(max_tokens=None),
        distinct_captions=False,
    )


Videos = TypeVar("Videos", bound=VideoDataset)


class VideoPipeline(Pipeline[Videos, Clip]):
    """A dataset of pairs of frames of a video; a subclass proposes them, clip by clip.

    `candidates` implements a dataset's paper. `build` wires the following steps, which all datasets
    share.

    Attributes:
      drops_faces: the modes in which frames with faces are discarded.
      minimal: the limits on minimality in corrected mode.
      registers: whether corrected mode separates changes from camera motion and light.
    """

    drops_faces: tuple[Mode, ...] = ()
    minimal: MinimalitySettings = MinimalitySettings()
    registers: bool = False
    basics = ("min-changed-area", "max-changed-area", "face-policy", "max-side", "workers", "mode")
    steps = (("extracted", "videos"), ("judged", "frames"), ("paired", "candidate pairs"))
    pilot = PilotUnit(records="videos", number=0, unit="frames", clock="one core")

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        return {"settings": video_settings(mode, mode in cls.drops_faces, cls.minimal)}

    def candidates(self) -> Iterator[Clip]:
        """Yield the clips of the whole plan; the run settings select from them."""
        raise NotImplementedError

    def plan(self) -> Iterator[Clip]:
        return select(self.candidates(), self.run.selection)

    def check(self) -> None:
        """Check the videos folder, and load decoders and judges before any work."""
        folder = self.folder("videos")
        folder.check("videos")
        if self.config.frames_fps is not None and not folder.is_on_disk and folder.names is None:
            raise InputError(
                f"--videos {folder.root}: with --frames-fps, eqforge cannot read folders on a web "
                "server. Copy the folders to this machine, or put the frames into tar shards."
            )
        if find_spec("av") is None:
            raise MissingExtra("av", "video")
        import_cv2()
        self.config.settings.prepare()
        prepare_oracle(self.config.settings.oracle)

    def confirm(self, plan: PlanFiles) -> None:
        """Check that the folder holds one of the videos, and that the frame rate is known."""
        for wrong in (self._none_there, self._lacks_rate):
            if fault := wrong(read_plan(Clip, plan.files)):
                raise InputError(fault)

    def warnings(self) -> Iterator[str]:
        yield from oracle_warnings(prepare_oracle(self.config.settings.oracle))

    def measure(self, clip: Clip) -> dict[str, int]:
        return {
            "videos": 1,
            "frames": len(clip.frames),
            "candidate pairs": len(clip.pairs),
            "rejects": len(clip.rejects),
        }

    def tables(self, plan: PlanFiles) -> tuple[Table, ...]:
        run, counts = self.run, plan.counts
        frames, pairs = counts.get("frames", 0), counts.get("candidate pairs", 0)
        return (
            table_of(PAIRS_TABLE, files_for(pairs, run.samples_per_file)),
            table_of(IMAGES_TABLE, files_for(frames, run.images_per_file), self.rules().media),
            rejects_table(frames + pairs + counts.get("rejects", 0)),
        )

    def rules(self) -> VideoPairRules:
        settings = self.config.settings
        return VideoPairRules(
            videos=self.shared_folder("videos"),
            work=self.work,
            frames=settings.frames,
            decoder_timeout_s=self.config.decoder_timeout_s,
            image_filters=settings,
            pair_filters=FramePairFilters(
                cuts=settings.cuts,
                gates=settings.gates,
                distinct_captions=settings.distinct_captions,
                max_pairs_per_video=settings.max_pairs_per_video,
                oracle=prepare_oracle(settings.oracle),
                minimal=settings.minimal,
                registers=(self.registers and self.config.mode == "corrected")
                or settings.minimal != MinimalitySettings(),
            ),
            frames_fps=self.config.frames_fps,
        )

    def build(self, root: "beam.Pipeline", target: Target) -> None:
        from eqforge.transforms.dataset import steps as dataset
        from eqforge.transforms.video import steps as video

        rules, notes = self.rules(), target.notes
        _ = (
            root
            | dataset.ReadPlan(target.plan_files, Clip)
            | video.ExtractFrames(rules, notes)
            | video.ScoreImages(rules, notes)
            | video.DropFrames(rules)
            | video.MeasurePairs(rules)
            | video.MatchCaptions(rules, notes)
            | video.DropPairs(rules)
            | dataset.WriteDataset(target.dataset)
        )

    def media(self, plan: PlanFiles) -> Iterator[Medium]:
        """Yield the videos of a plan, or the wanted images of folders of frames.

        Videos from which no frame is wanted need only exist.
        """
        for clip, found in self._find(clip for clip in read_plan(Clip, plan.files) if clip.video):
            if isinstance(found, FoundFrames):
                yield from self._pictures(clip, found)
                continue
            file = None if isinstance(found, MissingFile) else found
            name = clip.video if file is None else file.name
            yield Medium(kind=VIDEOS, name=name, file=file, is_read=bool(clip.frames))

    def _pictures(self, clip: Clip, frames: FoundFrames) -> Iterator[Medium]:
        folder = FrameFolder(
            frames=frames,
            videos=self.folder("videos"),
            frames_fps=self.config.frames_fps,
            end_tolerance_s=self.config.settings.frames.end_tolerance_s,
        )
        if not clip.frames:
            here = FoundFile(name=frames.name, place=frames.name)
            yield Medium(kind=VIDEOS, name=frames.name, file=here, is_read=False)
        for request in clip.frames:
            found = folder.find(request)
            if isinstance(found, FramePicture):
                yield Medium(kind=VIDEOS, name=found.file.name, file=found.file)
            else:
                yield Medium(kind=VIDEOS, name=request.frame_id, file=None)

    def _find(self, clips: Iterable[Clip]) -> Iterator[tuple[Clip, FoundVideo | MissingFile]]:
        folder = self.folder("videos")
        for clip, found in folder.find_all(clips, lambda clip: clip.video, VIDEO_SUFFIXES):
            yield clip, or_frames(folder, clip.video, VIDEO_SUFFIXES, found)

    def _none_there(self, clips: Iterable[Clip]) -> str:
        """Describe the problem if all videos that clips need are missing; else return ""."""
        videos, first = self.config.videos, None
        for clip, found in self._find(clip for clip in clips if clip.frames):
            if not isinstance(found, MissingFile):
                return ""
            first = first or (clip.video, found)
        if first is None:
            return ""
        name, why = first
        looked_for = f"{storage.join(videos, name)}, with or without an added ending such as .mp4"
        advice = f"eqforge looked for {looked_for}" if why == MISSING else why.detail
        hint = namesakes(self.folder("videos"), [name], VIDEO_SUFFIXES).get(name, "")
        return f"--videos {videos}: the folder contains none of the planned videos; {advice}{hint}"

    def _lacks_rate(self, clips: Iterable[Clip]) -> str:
        """Describe the problem if folders of frames need a missing frame rate; else return ""."""
        if self.config.frames_fps is None:
            for _, found in self._find(clip for clip in clips if needs_rate(clip.frames)):
                if isinstance(found, FoundFrames):
                    return f"--videos {self.config.videos}: {rate_missing(found.name)}"
        return ""

    def report(self, clips: Iterable[Clip]) -> Iterator[str]:
        """Yield a plan's counts by split, and missing videos; open no videos."""
        counts: dict[str, Counter[str]] = {}
        rejects: Counter[str] = Counter()
        samples: list[str] = []
        lost: list[tuple[str, MissingFile]] = []
        example: list[Clip] = []
        unrated = ""
        for clip, video in self._find(clips):
            is_missing = bool(clip.video) and isinstance(video, MissingFile)
            counts.setdefault(clip.split, Counter()).update(
                {
                    "videos": 1,
                    "missing": int(is_missing),
                    "records": sum(tally.candidates for tally in clip.tallies),
                    "frames": len(clip.frames),
                    "candidate pairs": len(clip.pairs),
                }
            )
            rejects.update(f"{reject.stage}: {reject.reason}" for reject in clip.rejects)
            samples += [pair.sample_id for pair in clip.pairs[:1]][:SHOWN_SAMPLES]
            if is_missing and isinstance(video, MissingFile):
                lost += [(clip.video, video)][: SHOWN_MISSING - len(lost)]
            if isinstance(video, FoundFrames) and needs_rate(clip.frames):
                unrated = unrated or video.name
            if clip.frames and not example:
                example.append(clip)
        total = sum(counts.values(), Counter())
        headings = ("videos", "missing", "records", "frames", "candidate pairs")
        yield "  ".join(f"{heading:>15}" for heading in ("split", *headings))
        for split, found in (*sorted(counts.items()), ("total", total)):
            numbers = (f"{found[heading]:>15,}" for heading in headings)
            yield "  ".join([f"{split:>15}", *numbers])
        yield from self._missing_lines(lost, total["missing"])
        for reason, count in sorted(rejects.items()):
            yield f"  rejected by the plan, {reason}: {count:,}"
        if any(reason.endswith(TOO_FEW.reason) for reason in rejects):
            yield (
                "  a pair needs two usable frames from one video; videos with fewer frames "
                "give no pairs"
            )
        if samples:
            yield f"  first samples: {', '.join(samples[:SHOWN_SAMPLES])}"
        wrong = self._none_there(example) if total["missing"] == total["videos"] else ""
        if wrong:
            yield f"  WARNING: a build would fail: {wrong}"
        if unrated and self.config.frames_fps is None:
            yield f"  WARNING: a build would fail: {rate_missing(unrated)}"

    def _missing_lines(self, lost: Sequence[tuple[str, MissingFile]], number: int) -> Iterator[str]:
        if lost:
            yield f"  missing from --videos {self.config.videos}:"
        hints = namesakes(self.folder("videos"), [name for name, _ in lost], VIDEO_SUFFIXES)
        for name, why in lost:
            yield f"    {name}: {why.detail}{hints.get(name, '')}"
        if more := number - len(lost):
            yield f"    and {more:,} more"

    def is_fit(self, clip: Clip) -> bool:
        found = self._find([clip] if clip.pairs else [])
        return any(not isinstance(video, MissingFile) for _, video in found)

    def try_records(self, clips: Sequence[Clip], folder: str) -> PilotCost:
        from eqforge.transforms.video import steps

        rules = self.rules()
        rules = replace(rules, work=folder, videos=replace(rules.videos, index=None))
        extract, started = steps.ExtractFrames(rules), time.perf_counter()
        with rules.extractor() as extractor:
            stored = [work for clip in clips for work in extract.make(clip, extractor)]
        scored = [steps.ScoreImages(rules).make(work) for work in stored]
        clean = [steps.DropFrames(rules).make(work) for work in scored]
        measured = [steps.MeasurePairs(rules).make(work) for work in clean]
        matched = [steps.MatchCaptions(rules).make(work) for work in measured]
        finished = [steps.DropPairs(rules).make(work) for work in matched]
        rows = (frame.image for work in scored for frame in work.frames)
        images = {row.image_id: row.scores for row in rows if row is not None}
        return PilotCost(
            seconds=time.perf_counter() - started,
            num_bytes=sum(image.num_bytes for work in finished for image in images_of(work)),
            kept=sum(len(work.pairs) for work in finished),
            rejects=[reject for work in finished for reject in work.rejects],
            images=list(images.values()),
            pairs=[(pair.measures, pair.scores) for work in matched for pair in work.pairs],
        )
