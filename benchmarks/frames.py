"""Times taking frames out of videos against other packages, and counts how many are the right ones.

    python benchmarks/frames.py
    python benchmarks/frames.py --videos clip.mp4 other.webm --wanted 10 100

All methods get the same times of the same clips, in turn, in one process with one decoding thread
each, and return RGB pixels. Times are of the processor, so that they hold on a busy machine too,
medians over the rounds, with their ratio to ours.

  eqforge      decode_frames: only what the frames need is decoded
  pyav         PyAV, decoding from the start to the last frame wanted
  pyav-exact   the same, with eqforge's conversion to RGB, which is slower but rounds as it should
  torchcodec   its exact mode
  decord       its timestamps, then get_batch
  opencv       CAP_PROP_POS_FRAMES for each time
  ffmpeg       one process with -ss for each time; only up to 30 times

A frame is right if it is the one whose interval holds the time. That is counted on clips made for
the purpose, whose frames show their number, 24 times each at the middle of a frame and at its very
timestamp. benchmarks/requirements.txt names the peers; those that are missing are left out and
named. Goals: always right; no slower than torchcodec; 1.3 times as fast as decoding through.
"""

import argparse
import importlib
import itertools
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
from av.video.reformatter import VideoReformatter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from eqforge.schemas.records.frames import FrameSettings
from eqforge.transforms.video.frames.answers import DecodedFrame, upright_rgb
from eqforge.transforms.video.frames.decode import decode_frames
from tests import clips

Pixels = npt.NDArray[np.uint8]
GRACE_S = 1e-5  # a float may lie just below the timestamp it stands for
MOST_PROCESSES = 30
RIGHT_CLIPS = (
    "constant rate",
    "open GOP",
    "variable rate, jitter",
    "variable rate, switching",
    "starting at 1.5 s",
    "starting at 1.5 s, Matroska",
    "HEVC with B-frames",
    "VP9",
    "MPEG-TS",
)
SPEED_CLIPS = {
    "H.264, long groups": clips.Clip(options={"preset": "veryfast", "g": "250"}),
    "H.264, short groups": clips.Clip(options={"preset": "veryfast", "g": "12"}),
    "H.264, no B-frames": clips.Clip(options={"preset": "veryfast", "g": "250", "bf": "0"}),
    "HEVC": clips.Clip(
        codec="libx265", options={"preset": "ultrafast", "x265-params": "keyint=60:log-level=none"}
    ),
    "VP9": clips.Clip(
        suffix=".webm",
        codec="libvpx-vp9",
        options={"g": "60", "deadline": "realtime", "cpu-used": "8"},
    ),
}


@dataclass(frozen=True)
class Task:
    """Times asked of a video, in seconds after the container's start, ascending.

    Attributes:
      path: the video.
      start_s: the container's start on the stream's own clock, which some packages count from.
      times_s: the times.
    """

    path: str
    start_s: float
    times_s: Sequence[float]


Method = Callable[[Task], list[Pixels]]


def with_eqforge(task: Task) -> list[Pixels]:
    """Takes the frames as the pipelines do, but for encoding them."""
    found: dict[int, Pixels] = {}
    for answer in decode_frames(task.path, task.times_s, FrameSettings()):
        if isinstance(answer, DecodedFrame):
            found[answer.request] = answer.pixels
    return [found[request] for request in range(len(task.times_s))]


def with_pyav(task: Task) -> list[Pixels]:
    """Decodes from the start and converts as PyAV does unless told otherwise."""

    def convert(frame: av.VideoFrame) -> Pixels:
        return np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)

    return decode_through(task, convert)


def with_pyav_exactly(task: Task) -> list[Pixels]:
    """Decodes from the start and converts as eqforge does."""
    reformatter = VideoReformatter()
    return decode_through(task, lambda frame: upright_rgb(frame, reformatter))


def decode_through(task: Task, convert: Callable[[av.VideoFrame], Pixels]) -> list[Pixels]:
    """Decodes from the start, keeping each frame until the next one tells when it ends."""
    found: list[Pixels] = []
    due = [time_s + task.start_s + GRACE_S for time_s in task.times_s]
    with av.open(task.path) as container:
        stream = video_stream(container)
        stream.codec_context.thread_count = 1
        shown: av.VideoFrame | None = None
        for frame in container.decode(stream):
            while len(found) < len(due) and shown and frame.time and due[len(found)] < frame.time:
                found.append(convert(shown))
            if len(found) == len(due):
                return found
            shown = frame
    assert shown is not None
    return found + [convert(shown)] * (len(due) - len(found))


def video_stream(container: av.container.InputContainer) -> av.VideoStream:
    """Returns the stream that FFmpeg ranks first."""
    stream = container.streams.best("video")
    assert isinstance(stream, av.VideoStream)
    return stream


def with_torchcodec(task: Task) -> list[Pixels]:
    """Asks torchcodec for the frames played at the times."""
    from torchcodec.decoders import VideoDecoder

    decoder = VideoDecoder(
        task.path, dimension_order="NHWC", num_ffmpeg_threads=1, seek_mode="exact"
    )
    due = [time_s + task.start_s + GRACE_S for time_s in task.times_s]
    return list(decoder.get_frames_played_at(due).data.numpy())


def with_decord(task: Task) -> list[Pixels]:
    """Looks the times up among decord's timestamps."""
    import decord

    reader = decord.VideoReader(task.path, num_threads=1)
    starts = reader.get_frame_timestamp(range(len(reader)))[:, 0]
    due = np.array(task.times_s) + 1e-4  # its clock starts at 0, in 32-bit floats
    numbers = np.clip(np.searchsorted(starts, due, side="right") - 1, 0, None)
    return list(reader.get_batch(numbers.tolist()).asnumpy())


def with_opencv(task: Task) -> list[Pixels]:
    """Seeks to the number that the frame has at the clip's average rate."""
    import cv2

    found = []
    capture = cv2.VideoCapture(task.path, cv2.CAP_FFMPEG)
    rate = capture.get(cv2.CAP_PROP_FPS)
    for time_s in task.times_s:
        capture.set(cv2.CAP_PROP_POS_FRAMES, int(time_s * rate + 1e-4))
        is_read, frame = capture.read()
        if not is_read:
            raise EOFError(f"no frame at {time_s}")
        found.append(np.asarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB), dtype=np.uint8))
    capture.release()
    return found


def with_ffmpeg(task: Task) -> list[Pixels]:
    """Starts an ffmpeg for each time."""
    with av.open(task.path) as container:
        codec = video_stream(container).codec_context
        shape = (codec.height, codec.width, 3)
    found = []
    for time_s in task.times_s:
        command = ["ffmpeg", "-v", "error", "-threads", "1", "-ss", f"{time_s:.6f}"]
        command += ["-i", "file:" + task.path, "-frames:v", "1", "-f", "rawvideo"]
        result = subprocess.run([*command, "-pix_fmt", "rgb24", "-"], capture_output=True)
        found.append(np.frombuffer(result.stdout, dtype=np.uint8).reshape(shape))
    return found


METHODS: dict[str, Method] = {
    "eqforge": with_eqforge,
    "pyav": with_pyav,
    "pyav-exact": with_pyav_exactly,
    "torchcodec": with_torchcodec,
    "decord": with_decord,
    "opencv": with_opencv,
    "ffmpeg": with_ffmpeg,
}


def installed_methods(names: Sequence[str]) -> dict[str, Method]:
    """Returns the methods whose packages are there, and names the others."""
    found = {}
    for name in names:
        reason = why_not(name)
        if reason is None:
            found[name] = METHODS[name]
        else:
            print(f"{name} is left out: {reason}\n")
    return found


def why_not(name: str) -> str | None:
    """Returns why a method cannot run, None if it can; puts its package on one thread."""
    if name == "ffmpeg":
        return None if shutil.which("ffmpeg") else "there is no such program"
    try:
        if name == "torchcodec":
            importlib.import_module("torchcodec.decoders")
            importlib.import_module("torch").set_num_threads(1)
        elif name == "opencv":
            os.environ["OPENCV_FFMPEG_CAPTURE_OPTIONS"] = "threads;1"
            importlib.import_module("cv2").setNumThreads(1)
        elif name == "decord":
            importlib.import_module("decord")
    except (ImportError, OSError, RuntimeError) as error:
        return str(error).strip().splitlines()[0]
    return None


def start_of(path: str) -> float:
    """Returns the start of a container on its streams' clock, in seconds."""
    with av.open(path) as container:
        return (container.start_time or 0) / 1e6


def numbered_tasks(folder: Path, name: str) -> Iterator[tuple[Task, list[int]]]:
    """Yields two tasks on a clip that shows its numbers, each with the numbers that are right."""
    clip = clips.CLIPS[name]
    path = str(clips.write_clip(folder / f"{RIGHT_CLIPS.index(name)}{clip.suffix}", clip))
    starts = [start - clip.starts_ms[0] for start in clip.starts_ms]
    numbers = sorted(random.Random(name).sample(range(len(starts) - 1), 24))
    exact = [starts[number] / 1000 for number in numbers]
    middle = [(starts[number] + starts[number + 1]) / 2000 for number in numbers]
    for times_s in (middle, exact):
        yield Task(path, start_of(path), times_s), numbers


def share_right(method: Method, task: Task, numbers: Sequence[int]) -> float | None:
    """Returns the share of right frames, None if the method gives up on the clip."""
    try:
        frames = method(task)
    except Exception:
        return None
    shown = [clips.read_number(frame.astype(int)) for frame in frames]
    return statistics.mean(a == b for a, b in zip(shown, numbers, strict=True))


def count_right(methods: dict[str, Method], folder: Path) -> None:
    """Prints the share of right frames of each method on each kind of clip."""
    print("Right frames, in the middle of a frame / at its timestamp\n")
    print_row(["clip", *methods])
    print_row(["---"] * (len(methods) + 1))
    for name in RIGHT_CLIPS:
        tasks = list(numbered_tasks(folder, name))
        cells = []
        for method in methods.values():
            shares = [share_right(method, task, numbers) for task, numbers in tasks]
            cells.append(
                " / ".join("error" if share is None else f"{share:.0%}" for share in shares)
            )
        print_row([name, *cells])
    print()


def print_row(cells: Sequence[str]) -> None:
    """Prints a row of a Markdown table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def spread_task(path: str, wanted: int) -> Task:
    """Returns the middles of so many frames of a video, evenly spread over it."""
    with av.open(path) as container:
        stream = video_stream(container)
        start = Fraction(container.start_time or 0, 1_000_000)
        packets = (packet for packet in container.demux(stream) if packet.size)
        shown = sorted(p.pts * p.time_base - start for p in packets if p.pts is not None)
    middles = [float((a + b) / 2) for a, b in itertools.pairwise(shown)]
    wanted = min(wanted, len(middles))
    chosen = [middles[(2 * n + 1) * len(middles) // (2 * wanted)] for n in range(wanted)]
    return Task(path, float(start), chosen)


def cpu_seconds() -> float:
    """Returns the processor time this process and the children it waited for have used."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def time_methods(methods: dict[str, Method], task: Task, rounds: int) -> dict[str, float]:
    """Returns the median processor time of each method that can do the task, taking turns."""
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(rounds):
        for name in list(seconds):
            if name == "ffmpeg" and len(task.times_s) > MOST_PROCESSES:
                continue
            started = cpu_seconds()
            try:
                frames = methods[name](task)
            except Exception:
                del seconds[name]
                continue
            seconds[name].append(cpu_seconds() - started)
            assert len(frames) == len(task.times_s)
    return {name: statistics.median(taken) for name, taken in seconds.items() if taken}


def compare_speed(methods: dict[str, Method], videos: dict[str, str], options: Any) -> None:
    """Prints the time of each method and, over all tasks, the mean of their ratios to ours."""
    ratios: dict[str, list[float]] = {name: [] for name in methods}
    print(f"Milliseconds of one core, medians of {options.rounds} rounds, and ratio to eqforge\n")
    print_row(["clip", "frames", *methods])
    print_row(["---"] * (len(methods) + 2))
    for label, path in videos.items():
        for wanted in options.wanted:
            task = spread_task(path, wanted)
            taken = time_methods(methods, task, options.rounds)
            cells = [
                f"{taken[name] * 1e3:.1f} ({taken[name] / taken['eqforge']:.2f})"
                if name in taken
                else "-"
                for name in methods
            ]
            for name in taken:
                ratios[name].append(taken[name] / taken["eqforge"])
            print_row([label, str(len(task.times_s)), *cells])
    means = [f"{statistics.geometric_mean(r):.2f}" if r else "-" for r in ratios.values()]
    print_row(["**geometric mean of the ratios**", "", *means])


def speed_clips(folder: Path, frames: int) -> dict[str, str]:
    """Writes the clips whose decoding is timed, and returns their paths by name."""
    written = {}
    for number, (name, clip) in enumerate(SPEED_CLIPS.items()):
        path = folder / f"speed{number}{clip.suffix}"
        long = replace(clip, size=(640, 360), starts_ms=range(0, frames * 40, 40))
        written[name] = str(clips.write_clip(path, long))
    return written


def main() -> None:
    """Parses the command line and prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--videos", nargs="+", metavar="FILE", help="time these clips instead")
    parser.add_argument(
        "--wanted", nargs="+", type=int, default=[10, 30, 100], help="frames of each clip"
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds; medians are printed")
    parser.add_argument("--frames", type=int, default=750, help="length of the clips made here")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), help="what to compare"
    )
    options = parser.parse_args()
    methods = installed_methods(["eqforge", *(m for m in options.methods if m != "eqforge")])
    with tempfile.TemporaryDirectory() as name:
        count_right(methods, Path(name))
        if options.videos:
            videos = {Path(path).name: path for path in options.videos}
        else:
            videos = speed_clips(Path(name), options.frames)
        compare_speed(methods, videos, options)


if __name__ == "__main__":
    main()
