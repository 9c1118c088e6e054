"""Times a build on the local runner against the same work in a plain multiprocessing script.

    python benchmarks/pipeline.py --videos 120 --workers 2

Both make the pairs of the same clips with the same functions in the same number of processes; the
plain script maps a pool over the videos and writes the tables with pyarrow alone. They run in
turn, each in a process of its own; the medians' ratio is printed. Goal: at most 1.25.
"""

import argparse
import json
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.generators.demo.workspace import make_workspace
from eqforge.pipelines import eq_video
from eqforge.pipelines.base.pipeline import RunSettings
from eqforge.pipelines.base.video import video_settings
from eqforge.schemas.records.frames import Clip
from eqforge.schemas.tables.pairs import IMAGES_TABLE, PAIRS_TABLE
from eqforge.transforms.video.clip_work import ClipWork, images_of, samples_of
from eqforge.transforms.video.extract import extract_frames
from eqforge.transforms.video.pair import (
    drop_frames,
    drop_pairs,
    measure_pairs,
    score_images,
    score_matches,
)
from eqforge.transforms.video.rules import VideoPairRules

CLIPS = ("demoCoffee1.mp4", "demoKitchn2.mp4", "demoGuests3.mp4")
MOMENTS = 10


def make_inputs(folder: Path, videos: int) -> None:
    """Copies the demo's clips under many names and captions ten moments of each."""
    workspace = make_workspace(folder / "workspace")
    sources = [path for path in sorted(workspace.videos.glob("*.mp4")) if path.name in CLIPS]
    (folder / "videos").mkdir()
    with open(folder / "captions.jsonl", "w", encoding="utf-8") as stream:
        for number in range(videos):
            name = f"video{number:04d}.mp4"
            shutil.copy(sources[number % len(sources)], folder / "videos" / name)
            for moment in range(MOMENTS):
                line = {
                    "video": name,
                    "timestamp_s": 0.5 + moment,
                    "caption": f"moment {moment} of video {number}",
                }
                stream.write(json.dumps(line) + "\n")


def configuration(folder: Path, output: Path) -> eq_video.Config:
    """Returns the configuration both sides use: the paper's construction."""
    return eq_video.Config(
        captions=folder / "captions.jsonl",
        videos=str(folder / "videos"),
        mode="paper",
        settings=video_settings("paper", drops_faces=True),
        run=RunSettings(output=str(output)),
    )


def build_plain(folder: Path, output: Path, workers: int) -> None:
    """Does the work in a pool of processes and writes two Parquet files."""
    config = configuration(folder, output)
    pipeline = eq_video.EqVideo(config)
    rules, clips = pipeline.rules(), list(pipeline.plan())
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        works = pool.map(partial(_make, rules), clips, chunksize=1)
    media = rules.media
    samples = [PAIRS_TABLE.row(s) for work in works for s in samples_of(work, pipeline.name)]
    images = {image.image_id: image for work in works for image in images_of(work)}
    rows = [IMAGES_TABLE.row(i, media.get(i.image_id, i.suffix)) for i in images.values()]
    pq.write_table(
        pa.Table.from_pylist(samples, schema=PAIRS_TABLE.schema), output / "samples.parquet"
    )
    pq.write_table(
        pa.Table.from_pylist(rows, schema=IMAGES_TABLE.schema), output / "images.parquet"
    )


_EXTRACTORS: list = []


def _make(rules: VideoPairRules, clip: Clip) -> ClipWork:
    if not _EXTRACTORS:
        _EXTRACTORS.append(rules.extractor())
    media, filters = rules.media, rules.pair_filters
    videos, fps = rules.videos, rules.frames_fps
    work = extract_frames(clip, videos, _EXTRACTORS[0], rules.ledger("extract"), fps)
    work = score_images(work, media, rules.image_filters, rules.ledger("score"))
    work = drop_frames(work, rules.image_filters)
    work = measure_pairs(work, media, filters, rules.ledger("measure"))
    return drop_pairs(score_matches(work, media, filters, rules.ledger("match")), filters)


def time_beam(folder: Path, output: Path, workers: int) -> float:
    """Returns the seconds of `eqforge build` in a process of its own."""
    command = [
        *(sys.executable, "-m", "eqforge", "build", "eq-video", "--mode", "paper"),
        *("--captions", str(folder / "captions.jsonl"), "--videos", str(folder / "videos")),
        *("--output", str(output), "--workers", str(workers)),
    ]
    return _timed(command)


def time_plain(folder: Path, output: Path, workers: int) -> float:
    """Returns the seconds of the plain script in a process of its own."""
    output.mkdir()
    command = [sys.executable, __file__, "--plain", str(folder), str(output)]
    return _timed([*command, "--workers", str(workers)])


def _timed(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    """Runs the comparison and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--videos", type=int, default=120, help="videos of ten captioned moments")
    parser.add_argument("--workers", type=int, default=2, help="processes of each side")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side")
    parser.add_argument("--plain", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.plain:
        build_plain(Path(args.plain[0]), Path(args.plain[1]), args.workers)
        return
    with tempfile.TemporaryDirectory(prefix="eqforge-bench-") as name:
        folder = Path(name)
        make_inputs(folder, args.videos)
        runs: dict[str, list[float]] = {"eqforge": [], "multiprocessing": []}
        for turn in range(args.rounds):
            runs["eqforge"].append(time_beam(folder, folder / f"a{turn}", args.workers))
            runs["multiprocessing"].append(time_plain(folder, folder / f"b{turn}", args.workers))
    medians = {side: round(statistics.median(found), 1) for side, found in runs.items()}
    ratio = round(medians["eqforge"] / medians["multiprocessing"], 2)
    print(json.dumps({"videos": args.videos, "seconds": medians, "ratio": ratio}))


if __name__ == "__main__":
    main()
