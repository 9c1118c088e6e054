"""`eqforge plan`: what a build would make, and what it would cost."""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eqforge.pipelines.command import parse, reported_errors
from eqforge.pipelines.driver import Pipeline
from eqforge.pipelines.header import check_output, manifest_header
from eqforge.pipelines.settings import VideoDataset
from eqforge.pipelines.video import rules_of
from eqforge.schemas.clips import Clip
from eqforge.schemas.errors import InputError
from eqforge.schemas.frames import MissedVideo
from eqforge.transforms.clip_work import images_of
from eqforge.transforms.frames.locate import resolve_video
from eqforge.transforms.video_pairs import make_video_pairs

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


def plan_command(pipeline: Pipeline[Any], argv: Sequence[str]) -> int:
    """Prints what a build would make and cost; returns the exit status."""
    with reported_errors():
        own, pilots = _take_pilots(list(argv))
        has_output = any(text.partition("=")[0] == "--output" for text in own)
        # A plan writes nothing; with the folder of the build it also says whether that is free.
        named = own if has_output else ["--output", "out", *own]
        program = f"eqforge plan {pipeline.name}"
        config, _ = parse(pipeline.config, pipeline.defaults, named, program, _PILOT_HELP)
        pipeline.check(config)
        header = manifest_header(pipeline.name, pipeline.inputs(config), config)
        if has_output:
            check_output(config.run, header)
        records = pipeline.plan(config)
        if isinstance(config, VideoDataset):
            _print_video_plan(pipeline.name, config, records, pilots)
        else:
            _print_counts(pipeline, records)
        return 0
    return 2


_PILOT_HELP = (
    "Shows counts, missing videos and rejects without opening a video. With --pilot N it also "
    "builds N videos in a temporary folder, to estimate time and storage. --output may be left out."
)


def _take_pilots(arguments: list[str]) -> tuple[list[str], int]:
    """Returns the arguments without `--pilot N`, and N."""
    if "--pilot" not in arguments:
        return arguments, 0
    place = arguments.index("--pilot")
    number = "".join(arguments[place + 1 : place + 2])
    if not number.isdigit():
        raise InputError(f"--pilot {number}: expected a number of videos")
    return arguments[:place] + arguments[place + 2 :], int(number)


def _print_counts(pipeline: Pipeline[Any], records: Iterable[Any]) -> None:
    counts: Counter[str] = Counter()
    for record in records:
        counts.update(pipeline.measure(record))
    print(f"{pipeline.name}: what a build would try")
    for what, count in counts.items():
        print(f"{what:>20}  {count:>12,}")


def _print_video_plan(name: str, config: VideoDataset, clips: Iterable[Clip], pilots: int) -> None:
    summary = summarise(clips, str(config.videos), pilots)
    print("\n".join(report(name, summary)))
    if summary.pilots:
        print("\n".join(forecast(summary, run_pilot(name, config, summary.pilots))))


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
    rows.append(("total", [counter.total() for counter in counters]))
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
    yield f"pilot: {cost.clips} videos, {cost.frames} frames in {cost.seconds:.1f} s on one core"
    time_needed, size = _duration(cost.seconds * scale), _size(cost.num_bytes * scale)
    yield f"all: about {time_needed} and {size} of images"
    print(
        "the pilot's first videos may not be typical; its frames were thrown away", file=sys.stderr
    )


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} core hours" if seconds > 3600 else f"{seconds:.0f} core seconds"


def _size(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:.1f} GB" if num_bytes > 1e9 else f"{num_bytes / 1e6:.1f} MB"
