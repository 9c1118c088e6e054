"""What `eqforge plan` reports about a dataset made of videos."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from eqforge.core.files import storage
from eqforge.core.files.find_file import MISSING, MissingFile
from eqforge.core.files.found_file import FoundFile
from eqforge.core.files.found_frames import FoundFrames, FoundVideo, or_frames
from eqforge.core.files.namesakes import namesakes
from eqforge.pipelines.shared.media import media_folder
from eqforge.pipelines.shared.pilot_report import yield_of
from eqforge.pipelines.shared.pipeline import PilotCost
from eqforge.pipelines.shared.settings import VideoDataset
from eqforge.schemas.records.clips import Clip
from eqforge.schemas.records.frames import VIDEO_SUFFIXES
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.transforms.dataset.census import VIDEOS, Medium
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.video.clip_work import ClipWork, images_of
from eqforge.transforms.video.extract import extract_frames
from eqforge.transforms.video.frame_numbers import needs_rate, rate_missing
from eqforge.transforms.video.images import drop_frames, score_images
from eqforge.transforms.video.oracle_pairs import score_matches
from eqforge.transforms.video.pair import drop_pairs, measure_pairs
from eqforge.transforms.video.pictures import FrameFolder, FramePicture
from eqforge.transforms.video.propose.segments import TOO_FEW
from eqforge.transforms.video.rules import VideoPairRules

if TYPE_CHECKING:
    from eqforge.transforms.video.frames.extract import FrameExtractor

SHOWN_SAMPLES, SHOWN_MISSING = 3, 10
_ENDINGS = "an ending such as .mp4"


@dataclass(kw_only=True, slots=True)
class Summary:
    """Counts of a plan.

    Attributes:
      videos, missing, records, frames, pairs: by split; `missing` counts videos without a file.
      rejects: planning rejects by reason.
      samples: ids of the first candidate pairs.
      lost: the first videos that are missing, each with the reason.
      unrated: a folder of frames whose rate is needed and not given; empty if there is none.
    """

    videos: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)
    frames: Counter[str] = field(default_factory=Counter)
    pairs: Counter[str] = field(default_factory=Counter)
    rejects: Counter[str] = field(default_factory=Counter)
    samples: list[str] = field(default_factory=list)
    lost: list[tuple[str, MissingFile]] = field(default_factory=list)
    unrated: str = ""


def find_videos(
    config: VideoDataset, clips: Iterable[Clip]
) -> Iterator[tuple[Clip, FoundVideo | MissingFile]]:
    """Yields clips, each with its video, or why there is none."""
    folder = media_folder(config.videos, config.run)
    for clip, found in folder.find_all(clips, lambda clip: clip.video, VIDEO_SUFFIXES):
        yield clip, or_frames(folder, clip.video, VIDEO_SUFFIXES, found)


def media(config: VideoDataset, plan: PlanFiles) -> Iterator[Medium]:
    """Yields the videos of a plan; where no frame is wanted, a video need only exist.

    Of a folder of frames, it yields the pictures that are wanted.
    """
    clips = (clip for clip in read_plan(Clip, plan.files) if clip.video)
    for clip, found in find_videos(config, clips):
        if isinstance(found, FoundFrames):
            yield from _pictures(config, clip, found)
            continue
        file = None if isinstance(found, MissingFile) else found
        name = clip.video if file is None else file.name
        yield Medium(kind=VIDEOS, name=name, file=file, is_read=bool(clip.frames))


def _pictures(config: VideoDataset, clip: Clip, frames: FoundFrames) -> Iterator[Medium]:
    folder = FrameFolder(
        frames=frames,
        videos=media_folder(config.videos, config.run),
        frames_fps=config.frames_fps,
        end_tolerance_s=config.settings.frames.end_tolerance_s,
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


def none_there(config: VideoDataset, clips: Iterable[Clip]) -> str:
    """Returns what is wrong if none of the videos that clips need is there, else ""."""
    first: tuple[str, MissingFile] | None = None
    for clip, found in find_videos(config, (clip for clip in clips if clip.frames)):
        if not isinstance(found, MissingFile):
            return ""
        first = first or (clip.video, found)
    if first is None:
        return ""
    name, why = first
    looked_for = f"looked for {storage.join(config.videos, name)}, also with {_ENDINGS}"
    advice = looked_for if why == MISSING else why.detail
    hint = _hints(config, [name]).get(name, "")
    return f"--videos {config.videos}: none of the plan's videos is there; {advice}{hint}"


def lacks_rate(config: VideoDataset, clips: Iterable[Clip]) -> str:
    """Returns what is missing if moments of folders of frames are given in seconds, else ""."""
    if config.frames_fps is not None:
        return ""
    for _, found in find_videos(config, (clip for clip in clips if needs_rate(clip.frames))):
        if isinstance(found, FoundFrames):
            return f"--videos {config.videos}: {rate_missing(found.name)}"
    return ""


def has_pairs(config: VideoDataset, clip: Clip) -> bool:
    """Tells whether a clip has pairs and its video is there."""
    found = find_videos(config, [clip] if clip.pairs else [])
    return any(not isinstance(video, MissingFile) for _, video in found)


def report(config: VideoDataset, clips: Iterable[Clip]) -> Iterator[str]:
    """Yields a plan's counts as lines."""
    kept: list[Clip] = []
    summary = summarise(config, _kept(clips, kept))
    headings = ("split", "videos", "missing", "records", "frames", "candidate pairs")
    yield "  ".join(f"{heading:>15}" for heading in headings)
    counters = (summary.videos, summary.missing, summary.records, summary.frames, summary.pairs)
    rows = [(split, [counter[split] for counter in counters]) for split in sorted(summary.videos)]
    rows.append(("total", [counter.total() for counter in counters]))
    for split, counts in rows:
        yield "  ".join([f"{split:>15}", *(f"{count:>15,}" for count in counts)])
    yield from _missing_lines(config, summary)
    for reason, count in sorted(summary.rejects.items()):
        yield f"  rejected by the plan, {reason}: {count:,}"
    if any(reason.endswith(TOO_FEW.reason) for reason in summary.rejects):
        yield "  a pair needs two usable moments of one video: videos with fewer give none"
    if summary.samples:
        yield f"  first samples: {', '.join(summary.samples[:SHOWN_SAMPLES])}"
    if summary.missing.total() == summary.videos.total() and (wrong := none_there(config, kept)):
        yield f"  WARNING: a build would refuse this: {wrong}"
    if summary.unrated and config.frames_fps is None:
        yield f"  WARNING: a build would refuse this: {rate_missing(summary.unrated)}"


def _hints(config: VideoDataset, names: Sequence[str]) -> dict[str, str]:
    return namesakes(media_folder(config.videos, config.run), names, VIDEO_SUFFIXES)


def _missing_lines(config: VideoDataset, summary: Summary) -> Iterator[str]:
    """Yields the first videos that are missing, with reasons and what may be meant."""
    if summary.lost:
        yield f"  missing below --videos {config.videos}:"
    hints = _hints(config, [name for name, _ in summary.lost])
    for name, why in summary.lost:
        yield f"    {name}: {why.detail}{hints.get(name, '')}"
    if more := summary.missing.total() - len(summary.lost):
        yield f"    and {more:,} more"


def _kept(clips: Iterable[Clip], kept: list[Clip]) -> Iterator[Clip]:
    """Yields clips, and keeps the first that needs its video, for an example."""
    for clip in clips:
        if clip.frames and not kept:
            kept.append(clip)
        yield clip


def summarise(config: VideoDataset, clips: Iterable[Clip]) -> Summary:
    """Counts what a plan holds; looks for the videos, but opens none."""
    summary = Summary()
    for clip, video in find_videos(config, clips):
        summary.videos[clip.split] += 1
        summary.records[clip.split] += sum(tally.candidates for tally in clip.tallies)
        summary.frames[clip.split] += len(clip.frames)
        summary.pairs[clip.split] += len(clip.pairs)
        summary.rejects.update(f"{reject.stage}: {reject.reason}" for reject in clip.rejects)
        summary.samples += [pair.sample_id for pair in clip.pairs[:1]][:SHOWN_SAMPLES]
        if clip.video and isinstance(video, MissingFile):
            summary.missing[clip.split] += 1
            summary.lost += [(clip.video, video)][: SHOWN_MISSING - len(summary.lost)]
        if isinstance(video, FoundFrames) and needs_rate(clip.frames):
            summary.unrated = summary.unrated or video.name
    return summary


def make_video_pairs(clip: Clip, rules: VideoPairRules, extractor: "FrameExtractor") -> ClipWork:
    """Returns a finished clip, made by the same steps without Beam."""
    scored = _scored(clip, rules, extractor)
    return drop_pairs(_measured(scored, rules), rules.pair_filters)


def _scored(clip: Clip, rules: VideoPairRules, extractor: "FrameExtractor") -> ClipWork:
    """Returns a clip with all its frames scored."""
    work = extract_frames(clip, rules.videos, extractor, rules.ledger("extract"), rules.frames_fps)
    return score_images(work, rules.media, rules.image_filters, rules.ledger("score"))


def _measured(scored: ClipWork, rules: VideoPairRules) -> ClipWork:
    """Returns a clip with the pairs of its usable frames measured."""
    work = drop_frames(scored, rules.image_filters)
    work = measure_pairs(work, rules.media, rules.pair_filters, rules.ledger("measure"))
    return score_matches(work, rules.media, rules.pair_filters, rules.ledger("match"))


def run_pilot(rules: VideoPairRules, clips: Sequence[Clip], folder: str) -> PilotCost:
    """Builds some clips in a temporary folder and measures what that takes."""
    temporary = replace(rules, work=folder, videos=replace(rules.videos, index=None))
    extractor = temporary.extractor()
    started = time.perf_counter()
    try:
        scored = [_scored(clip, temporary, extractor) for clip in clips]
    finally:
        extractor.close()
    measured = [_measured(work, temporary) for work in scored]
    finished = [drop_pairs(work, temporary.pair_filters) for work in measured]
    images = {row.image_id: row.scores for work in scored for row in _rows(work)}
    return PilotCost(
        seconds=time.perf_counter() - started,
        num_bytes=sum(image.num_bytes for work in finished for image in images_of(work)),
        made=yield_of(
            sum(len(work.pairs) for work in finished),
            (reject for work in finished for reject in work.rejects),
            images.values(),
            ((pair.measures, pair.scores) for work in measured for pair in work.pairs),
        ),
    )


def _rows(scored: ClipWork) -> Iterator[ImageRow]:
    return (frame.image for frame in scored.frames if frame.image is not None)
