"""`eqforge plan`: what a build would make, and what it would cost."""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from eqforge.pipelines.command import parse, reported_errors
from eqforge.pipelines.driver import Pipeline, rules_of, selected_clips
from eqforge.pipelines.header import check_folders, manifest_header
from eqforge.pipelines.settings import VideoDataset
from eqforge.schemas.clips import Clip
from eqforge.schemas.frames import MissedVideo
from eqforge.transforms.clip_work import images_of
from eqforge.transforms.frames.locate import resolve_video
from eqforge.transforms.video_pairs import make_video_pairs

Configured = TypeVar("Configured", bound=VideoDataset)
SHOWN_SAMPLES = 3


@dataclass(kw_only=True, slots=True)
class Summary:
    """Counts of a plan.

    Attributes:
      videos, missing, records, frames, pairs: by split; `missing` are videos whose file is not
        there.
      rejects: planning rejects by reason.
      pilots: the first clips whose video is there.
      samples: ids of the first candidate pairs.
    """

    videos: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    records: Counter[str] = field(default_factory=Counter)
    frames: Counter[str] = field(default_factory=Counter)
    pairs: Counter[str] = field(default_factory=Counter)
    rejects: Counter[str] = field(default_factory=Counter)
    pilots: list[Clip] = field(default_factory=list)
    samples: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a pilot took: seconds, and encoded bytes of its frames, for so many frames and pairs."""

    clips: int
    frames: int
    seconds: float
    num_bytes: int


def plan_command(pipeline: Pipeline[Configured], argv: Sequence[str]) -> int:
    """Prints what a build would make and cost; returns the exit status."""
    with reported_errors():
        own, pilot = _take_pilot(argv)
        config, _ = parse(
            pipeline.config, pipeline.drops_faces, own, f"eqforge plan {pipeline.name}", _PILOT_HELP
        )
        check_folders(config, manifest_header(pipeline.name, pipeline.inputs(config), config))
        summary = summarise(selected_clips(pipeline, config), str(config.videos), pilot)
        print("\n".join(report(pipeline.name, summary)))
        if summary.pilots:
            cost = run_pilot(pipeline.name, config, summary.pilots)
            print("\n".join(forecast(summary, cost)))
        return 0
    return 2


_PILOT_HELP = (
    "Shows counts, missing videos and rejects without opening a video, and with --pilot N (first "
    "argument) builds N videos in a temporary folder to estimate time and storage."
)


def _take_pilot(argv: Sequence[str]) -> tuple[list[str], int]:
    arguments = list(argv)
    if arguments[:1] == ["--pilot"] and arguments[1:2] and arguments[1].isdigit():
        return arguments[2:], int(arguments[1])
    return arguments, 0


def summarise(clips: Iterable[Clip], videos: str, pilots: int) -> Summary:
    """Counts a plan; looks which videos are there, and opens none."""
    summary = Summary()
    for clip in clips:
        summary.videos[clip.split] += 1
        summary.records[clip.split] += sum(tally.candidates for tally in clip.tallies)
        summary.frames[clip.split] += len(clip.frames)
        summary.pairs[clip.split] += len(clip.pairs)
        summary.rejects.update(f"{reject.stage}: {reject.reason}" for reject in clip.rejects)
        summary.samples += [pair.sample_id for pair in clip.pairs[:1]][:SHOWN_SAMPLES]
        if clip.frames and isinstance(resolve_video(videos, clip.video), MissedVideo):
            summary.missing[clip.split] += 1
        elif clip.pairs and len(summary.pilots) < pilots:
            summary.pilots.append(clip)
    return summary


def report(name: str, summary: Summary) -> Iterator[str]:
    """Yields the lines of a plan's counts."""
    yield f"{name}: what a build would try"
    headings = ("split", "videos", "missing", "records", "frames", "candidate pairs")
    yield "  ".join(f"{heading:>15}" for heading in headings)
    counters = (summary.videos, summary.missing, summary.records, summary.frames, summary.pairs)
    rows = [(split, [counter[split] for counter in counters]) for split in sorted(summary.videos)]
    rows.append(("all", [counter.total() for counter in counters]))
    for split, counts in rows:
        yield "  ".join([f"{split:>15}", *(f"{count:>15,}" for count in counts)])
    for reason, count in sorted(summary.rejects.items()):
        yield f"  rejected by the plan, {reason}: {count:,}"
    if summary.samples:
        yield f"  first samples: {', '.join(summary.samples[:SHOWN_SAMPLES])}"


def run_pilot(name: str, config: VideoDataset, clips: Sequence[Clip]) -> Cost:
    """Builds some clips in a temporary folder and measures what that takes."""
    with tempfile.TemporaryDirectory(prefix="eqforge-pilot-") as folder:
        rules = replace(rules_of(name, config), work=folder)
        extractor = rules.extractor()
        started = time.perf_counter()
        try:
            finished = [make_video_pairs(clip, rules, extractor) for clip in clips]
        finally:
            extractor.close()
        return Cost(
            clips=len(clips),
            frames=sum(len(clip.frames) for clip in clips),
            seconds=time.perf_counter() - started,
            num_bytes=sum(image.num_bytes for work in finished for image in images_of(work)),
        )


def forecast(summary: Summary, cost: Cost) -> Iterator[str]:
    """Yields the lines of a cost estimate: the pilot's time and bytes per frame, scaled up."""
    scale = summary.frames.total() / max(1, cost.frames)
    hours, gigabytes = cost.seconds * scale / 3600, cost.num_bytes * scale / 1e9
    yield f"pilot: {cost.clips} videos, {cost.frames} frames in {cost.seconds:.1f} s on one core"
    yield f"all: about {hours:.2f} core hours and {gigabytes:.2f} GB of images"
    print(
        "the pilot's first videos may not be typical; its frames were thrown away", file=sys.stderr
    )
