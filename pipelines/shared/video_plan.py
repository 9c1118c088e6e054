"""What `eqforge plan` reports about a dataset made of videos."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from eqforge.pipelines.shared.media import media_folder
from eqforge.pipelines.shared.pipeline import PilotCost
from eqforge.pipelines.shared.settings import VideoDataset
from eqforge.schemas.io.find_file import MissingFile
from eqforge.schemas.io.found_file import FoundFile
from eqforge.schemas.records.clips import Clip
from eqforge.schemas.records.frames import VIDEO_SUFFIXES
from eqforge.transforms.dataset.census import VIDEOS, Medium
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.video.clip_work import ClipWork, images_of
from eqforge.transforms.video.extract import extract_frames
from eqforge.transforms.video.images import drop_frames, score_images
from eqforge.transforms.video.oracle_pairs import score_matches
from eqforge.transforms.video.pair import drop_pairs, measure_pairs
from eqforge.transforms.video.propose.segments import TOO_FEW
from eqforge.transforms.video.rules import VideoPairRules

if TYPE_CHECKING:
    from eqforge.transforms.video.frames.extract import FrameExtractor

SHOWN_SAMPLES = 3


@dataclass(kw_only=True, slots=True)
class Summary:
    """Counts of a plan.

    Attributes:
      videos, missing, records, frames, pairs: by split; `missing` counts videos without a file.
      rejects: planning rejects by reason.
      samples: ids of the first candidate pairs.
    """

    videos: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)
    frames: Counter[str] = field(default_factory=Counter)
    pairs: Counter[str] = field(default_factory=Counter)
    rejects: Counter[str] = field(default_factory=Counter)
    samples: list[str] = field(default_factory=list)


def find_videos(
    config: VideoDataset, clips: Iterable[Clip]
) -> Iterator[tuple[Clip, FoundFile | MissingFile]]:
    """Yields clips, each with its video, or why there is none."""
    folder = media_folder(config.videos, config.run)
    return folder.find_all(clips, lambda clip: clip.video, VIDEO_SUFFIXES)


def media(config: VideoDataset, plan: PlanFiles) -> Iterator[Medium]:
    """Yields the videos of a plan; where no frame is wanted, a video need only exist."""
    clips = (clip for clip in read_plan(Clip, plan.files) if clip.video)
    for clip, found in find_videos(config, clips):
        file = None if isinstance(found, MissingFile) else found
        name = clip.video if file is None else file.name
        yield Medium(kind=VIDEOS, name=name, file=file, is_read=bool(clip.frames))


def has_pairs(config: VideoDataset, clip: Clip) -> bool:
    """Tells whether a clip has pairs and its video is there."""
    found = find_videos(config, [clip] if clip.pairs else [])
    return any(isinstance(video, FoundFile) for _, video in found)


def report(config: VideoDataset, clips: Iterable[Clip]) -> Iterator[str]:
    """Yields a plan's counts as lines."""
    summary = summarise(config, clips)
    headings = ("split", "videos", "missing", "records", "frames", "candidate pairs")
    yield "  ".join(f"{heading:>15}" for heading in headings)
    counters = (summary.videos, summary.missing, summary.records, summary.frames, summary.pairs)
    rows = [(split, [counter[split] for counter in counters]) for split in sorted(summary.videos)]
    rows.append(("total", [counter.total() for counter in counters]))
    for split, counts in rows:
        yield "  ".join([f"{split:>15}", *(f"{count:>15,}" for count in counts)])
    for reason, count in sorted(summary.rejects.items()):
        yield f"  rejected by the plan, {reason}: {count:,}"
    if any(reason.endswith(TOO_FEW.reason) for reason in summary.rejects):
        yield "  a pair needs two usable moments of one video: videos with fewer give none"
    if summary.samples:
        yield f"  first samples: {', '.join(summary.samples[:SHOWN_SAMPLES])}"


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
    return summary


def make_video_pairs(clip: Clip, rules: VideoPairRules, extractor: "FrameExtractor") -> ClipWork:
    """Returns a finished clip, made by the same steps without Beam."""
    media = rules.media
    work = extract_frames(clip, rules.videos, extractor, rules.ledger("extract"))
    work = score_images(work, media, rules.image_filters, rules.ledger("score"))
    work = drop_frames(work, rules.image_filters)
    work = measure_pairs(work, media, rules.pair_filters, rules.ledger("measure"))
    work = score_matches(work, media, rules.pair_filters, rules.ledger("match"))
    return drop_pairs(work, rules.pair_filters)


def run_pilot(rules: VideoPairRules, clips: Sequence[Clip], folder: str) -> PilotCost:
    """Builds some clips in a temporary folder and measures what that takes."""
    temporary = replace(rules, work=folder, videos=replace(rules.videos, index=None))
    extractor = temporary.extractor()
    started = time.perf_counter()
    try:
        finished = [make_video_pairs(clip, temporary, extractor) for clip in clips]
    finally:
        extractor.close()
    return PilotCost(
        seconds=time.perf_counter() - started,
        num_bytes=sum(image.num_bytes for work in finished for image in images_of(work)),
    )
