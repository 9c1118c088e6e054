"""Measures how plan, pair and write grow with the number of records, in time and in memory.

    python benchmarks/scale.py --records 1000 10000 100000 --rounds 3
    python benchmarks/scale.py --records 1000 10000 100000 1000000 --stages plan pair --workers 2
    python benchmarks/scale.py --annotations youcookii_annotations_trainval.json

Records are candidate pairs of YouCook2's shape: videos of eight captioned segments, 28 pairs each.
`plan` reads such annotations and writes the plan; `pair` reads a plan, and scores and measures
its pairs on the local engine, with the frames in the media store already; `write` writes samples,
a quarter as many images and a tenth as many rejects; `captions` is a whole build of
retrieval-perturbations, 13 rows for each caption. What is synthetic: the annotations of all four,
the frames (random patches on a gradient, 160 x 90, 64 distinct ones) and the captions.

Every stage, size and round runs in a process of its own. Times are seconds of processor time, of
the process and its workers, medians of the rounds; memory is the highest resident set of any one
process. The smallest size stands for what every run costs; growth is the exponent n in time ~
records^n of what the two largest take beyond it. Goals: 0.9 to 1.1, and the memory of the largest
size within 1.25 times that of the one before it.

With `--annotations`, the whole plan of YouCook2's real annotations is built end to end with
synthetic frames of 640 x 360; only decoding and faces are left out.
"""

import argparse
import io
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
from PIL import Image

from eqforge.core.identity import bucket, sha256_hex
from eqforge.generators.text.perturbations.catalogue import PERTURBATIONS
from eqforge.pipelines import eq_youcook2, retrieval_perturbations
from eqforge.pipelines.base.pipeline import RunSettings
from eqforge.pipelines.base.runner import build_dataset
from eqforge.pipelines.base.video import VideoSettings
from eqforge.schemas.dataset.manifest import Manifest, load_manifest
from eqforge.schemas.records.frames import Clip, FrameRequest, FrameSettings, StoredFrame
from eqforge.schemas.records.stages import Reject
from eqforge.schemas.tables.pairs import (
    IMAGES_TABLE,
    PAIRS_TABLE,
    ImageRow,
    Origin,
    PairSample,
)
from eqforge.transforms.dataset.finish import DatasetTarget
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.plan import PlanFiles, read_plan, write_plan
from eqforge.transforms.dataset.steps import ReadPlan, WriteTables
from eqforge.transforms.dataset.tables import files_for, rejects_table, table_of
from eqforge.transforms.engines import run as runners
from eqforge.transforms.engines.options import pipeline_options
from eqforge.transforms.filters.faces import FaceSettings
from eqforge.transforms.filters.pairs import PAIRS_STAGE
from eqforge.transforms.video.extract import extract_frames
from eqforge.transforms.video.pair import score_images
from eqforge.transforms.video.rules import VideoPairRules
from eqforge.transforms.video.steps import (
    DropFrames,
    DropPairs,
    ExtractFrames,
    MatchCaptions,
    MeasurePairs,
    ScoreImages,
)

SEGMENTS = 8
PAIRS_OF_A_VIDEO = math.comb(SEGMENTS, 2)
DISTINCT_FRAMES = 64
EQBEN_PAIRS = 250_000
CORES = (1, 16, 256)
START_S = 5.0
_SIZED = ("records", "stages", "rounds", "workers")


# --- synthetic input


def make_annotations(path: Path, videos: int) -> None:
    """Writes annotations in YouCook2's format, as many videos as asked for."""
    database = {
        f"video{number:07d}": {
            "duration": 300.0,
            "subset": "training",
            "recipe_type": str(number % 89),
            "video_url": "",
            "annotations": [
                {
                    "id": segment,
                    "segment": [30 * segment, 30 * segment + 20],
                    "sentence": f"add spoon {segment} of ingredient {number} to the hot pan",
                }
                for segment in range(SEGMENTS)
            ],
        }
        for number in range(videos)
    }
    path.write_text(json.dumps({"database": database}), encoding="utf-8")


def make_captions(path: Path, captions: int) -> None:
    """Writes JSON lines of made-up captions, five of an image."""
    rng = np.random.default_rng(0)
    subjects = ("man", "woman", "dog", "child", "cat", "horse", "player", "chef", "girl", "boy")
    colours = ("red", "small", "old", "green", "wooden", "large", "blue", "young", "black", "wet")
    verbs = ("holding", "watching", "riding", "near", "under", "beside", "carrying", "behind")
    places = ("street", "kitchen", "beach", "field", "table", "park", "river", "room", "car")
    with open(path, "w", encoding="utf-8") as stream:
        for number in range(captions):
            words = [rng.choice(some) for some in (colours, subjects, verbs, colours, subjects)]
            caption = "A {} {} is {} a {} {} on the {}".format(*words, rng.choice(places))
            line = {"image": f"{number // 5}.jpg", "caption": caption, "id": str(number)}
            stream.write(json.dumps(line) + "\n")


def make_picture(number: int, width_px: int, height_px: int) -> bytes:
    """Returns a JPEG of a gradient with patches; every number gives another."""
    rng = np.random.default_rng(number)
    across, down = np.linspace(0, 200, width_px), np.linspace(0, 55, height_px)
    pixels = np.repeat((across + down[:, None])[..., None], 3, axis=2)
    for _ in range(6):
        left, top = rng.integers(0, width_px * 3 // 4), rng.integers(0, height_px * 3 // 4)
        patch = pixels[top : top + height_px // 4, left : left + width_px // 4]
        patch[:] = rng.integers(0, 256, 3) + rng.normal(0, 8, patch.shape)
    stream = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(stream, "JPEG", quality=95)
    return stream.getvalue()


@dataclass(frozen=True, kw_only=True)
class SyntheticFrames:
    """Stands for the decoder while the store is filled: it draws what is asked of a video.

    Attributes:
      store: where the pictures go.
      settings: the frame settings of the build that follows.
      distinct: how many pictures there are; None draws others for every video.
      width_px, height_px: their size.
    """

    store: MediaStore
    settings: FrameSettings
    distinct: int | None
    width_px: int
    height_px: int

    def extract(self, path: str, wanted: Sequence[FrameRequest]) -> Iterator[StoredFrame]:
        """Yields the answers of one video."""
        videos = 2**30 if self.distinct is None else self.distinct // SEGMENTS
        video = bucket(os.path.basename(path), videos)
        for place, request in enumerate(wanted):
            data = _picture(video * SEGMENTS + place, self.width_px, self.height_px)
            yield StoredFrame(
                frame_id=request.frame_id,
                image_id=self.store.put(data, ".jpg"),
                suffix=".jpg",
                width_px=self.width_px,
                height_px=self.height_px,
                num_bytes=len(data),
                requested_timestamp_s=request.timestamp_s or 0.0,
                timestamp_s=request.timestamp_s or 0.0,
                pts=place,
                time_base="1/1000",
                frame_index=place,
                rotation_deg=0,
            )


_picture = lru_cache(maxsize=DISTINCT_FRAMES)(make_picture)


def configuration(folder: Path, annotations: Path) -> eq_youcook2.Config:
    """Returns the configuration of the builds: the corrected mode, without faces."""
    return eq_youcook2.Config(
        annotations=(annotations,),
        videos=str(folder / "videos"),
        settings=VideoSettings(faces=FaceSettings(face_policy="off")),
        run=RunSettings(output=str(folder / "out")),
    )


def store_frames(config: eq_youcook2.Config, frames: SyntheticFrames, scored: bool) -> None:
    """Fills the media store, and the ledger as if the videos had been decoded."""
    rules = eq_youcook2.EqYouCook2(config).rules()
    videos = Path(config.videos)
    videos.mkdir()
    for clip in eq_youcook2.EqYouCook2(config).plan():
        (videos / f"{clip.video}.mp4").write_bytes(b"no video")
        stand_in: Any = frames
        work = extract_frames(clip, rules.videos, stand_in, rules.ledger("extract"))
        if scored:
            score_images(work, frames.store, rules.image_filters, rules.ledger("score"))


def drawn_frames(config: eq_youcook2.Config, distinct: int | None, side: int) -> SyntheticFrames:
    """Returns the synthetic frames of a configuration."""
    return SyntheticFrames(
        store=eq_youcook2.EqYouCook2(config).rules().media,
        settings=config.settings.frames,
        distinct=distinct,
        width_px=side,
        height_px=side * 9 // 16,
    )


# --- the stages: what is prepared, and what is measured


def prepare_plan(records: int, folder: Path) -> None:
    """Makes annotations of so many pairs."""
    make_annotations(folder / "annotations.json", max(1, records // PAIRS_OF_A_VIDEO))


def run_plan(_: int, folder: Path, __: int) -> None:
    """Reads annotations and writes the plan."""
    plan_of(configuration(folder, folder / "annotations.json"), folder)


def plan_of(config: eq_youcook2.Config, folder: Path) -> PlanFiles:
    """Writes the plan of a configuration."""
    pipeline = eq_youcook2.EqYouCook2(config)
    return write_plan(pipeline.plan(), str(folder / "plan"), pipeline.measure)


def prepare_pair(records: int, folder: Path) -> None:
    """Makes annotations, a plan, frames and their scores."""
    prepare_plan(records, folder)
    config = configuration(folder, folder / "annotations.json")
    store_frames(config, drawn_frames(config, DISTINCT_FRAMES, 160), scored=True)
    plan_of(config, folder)


def run_pair(_: int, folder: Path, workers: int) -> None:
    """Makes the pairs of a plan on the local engine, and lets them go."""
    config = configuration(folder, folder / "annotations.json")
    rules = eq_youcook2.EqYouCook2(config).rules()
    files = tuple(sorted(str(path) for path in (folder / "plan").iterdir()))
    run_local(partial(_wire_pairs, files, rules), folder, workers)
    subprocess.run(["rm", "-r", folder / "out" / "_work" / "done" / "measure"], check=True)


def _wire_pairs(files: tuple[str, ...], rules: VideoPairRules, root: beam.Pipeline) -> None:
    made = (
        root
        | ReadPlan(files, Clip)
        | ExtractFrames(rules)
        | ScoreImages(rules)
        | DropFrames(rules)
        | MeasurePairs(rules)
        | MatchCaptions(rules)
        | DropPairs(rules)
    )
    for table in ("samples", "images", "rejects"):
        rows = made | table >> beam.FlatMap(lambda work, table: work.rows(table, "d"), table)
        _ = rows | f"count {table}" >> beam.combiners.Count.Globally()


def prepare_write(records: int, folder: Path) -> None:
    """Stores a picture for every four records."""
    store = MediaStore(str(folder / "media"))
    picture = make_picture(0, 160, 90)
    for number in range(records // 4):
        store.put(picture + number.to_bytes(4, "big"), ".jpg")


def run_write(records: int, folder: Path, workers: int) -> None:
    """Writes samples, images and rejects on the local engine."""
    store = MediaStore(str(folder / "media"))
    rejects = records // 10
    target = DatasetTarget(
        output=str(folder / "out"),
        header=Manifest(
            dataset="d", mode="paper", config={}, inputs=[], versions={}, stages={}, tables={}
        ),
        stages=(PAIRS_STAGE,),
        tables=(
            table_of(PAIRS_TABLE, files_for(records, 50_000)),
            table_of(IMAGES_TABLE, files_for(records // 4, 4_000), store),
            rejects_table(rejects),
        ),
        max_error_rate=0.0,
    )
    books = (PAIRS_STAGE.name, (records + rejects, records))
    run_local(partial(_wire_write, records, store, books, target), folder, workers)


def _wire_write(
    records: int, store: MediaStore, books: Any, target: DatasetTarget, root: beam.Pipeline
) -> None:
    dealt = root | beam.Create(range(0, records, 1_000), reshuffle=False) | beam.Reshuffle()
    inputs = (
        dealt | "samples" >> beam.FlatMap(some_samples),
        dealt | "images" >> beam.FlatMap(some_images, make_picture(0, 160, 90)),
        dealt | "rejects" >> beam.FlatMap(some_rejects),
        root | "books" >> beam.Create([books]),
    )
    _ = inputs | WriteTables(target)


def some_samples(first: int) -> Iterator[PairSample]:
    """Yields a thousand samples."""
    for number in range(first, first + 1_000):
        video, pair = divmod(number, PAIRS_OF_A_VIDEO)
        origin = Origin(
            frame_id=f"eq-youcook2/video{video:07d}/{pair:03d}",
            source_path=f"video{video:07d}.mp4",
            source_sha256="0" * 64,
            licence=None,
            requested_timestamp_s=pair * 1.5,
            timestamp_s=pair * 1.48,
            pts=1480 * pair,
            time_base="1/1000",
            frame_index=37 * pair,
            rotation_deg=0,
            parameters='{"image_format": "jpeg", "jpeg_quality": 95}',
        )
        yield PairSample(
            sample_id=f"eq-youcook2/video{video:07d}/{pair:03d}",
            dataset="eq-youcook2",
            split="training",
            source_id=f"video{video:07d}",
            caption_0=f"add spoon {pair} of ingredient {video} to the hot pan",
            caption_1=f"take spoon {pair} of ingredient {video} out of the hot pan",
            captions_0=(f"add spoon {pair} of ingredient {video} to the hot pan",),
            captions_1=(f"take spoon {pair} of ingredient {video} out of the hot pan",),
            image_0_id=f"{number:064x}",
            image_1_id=f"{number + 1:064x}",
            origin_0=origin,
            origin_1=origin,
            annotation='{"duration_s": "300.0", "recipe_type": "7"}',
            changed_area_fraction=number % 997 / 997,
            ssim=number % 991 / 991,
            background_ssim=number % 983 / 983,
            luminance_shift=number % 977 / 7,
            phash_distance=number % 64,
            word_edit_distance=number % 9,
            edited_spans_0=(),
            edited_spans_1=(),
            scores=(),
        )


def some_images(first: int, picture: bytes) -> Iterator[ImageRow]:
    """Yields the images of a thousand samples, which are in the store."""
    for number in range(first // 4, first // 4 + 250):
        data = picture + number.to_bytes(4, "big")
        yield ImageRow(
            image_id=sha256_hex(data),
            suffix=".jpg",
            width_px=160,
            height_px=90,
            num_bytes=len(data),
            phash=f"{number:048x}",
            scores=(),
        )


def some_rejects(first: int) -> Iterator[Reject]:
    """Yields the rejects beside a thousand samples."""
    for number in range(first // 10, first // 10 + 100):
        yield Reject(
            candidate_id=f"eq-youcook2/reject{number:07d}",
            stage=PAIRS_STAGE.name,
            reason="frame_rejected",
            detail=f"eq-youcook2/frame{number:07d}",
            source_id=f"video{number:07d}",
        )


def prepare_captions(records: int, folder: Path) -> None:
    """Makes as many captions as give so many rows."""
    make_captions(folder / "captions.jsonl", max(1, records // len(PERTURBATIONS)))


def run_captions(_: int, folder: Path, workers: int) -> None:
    """Builds retrieval-perturbations."""
    config = retrieval_perturbations.Config(
        captions=folder / "captions.jsonl",
        run=RunSettings(output=str(folder / "out"), workers=workers),
    )
    build_dataset(retrieval_perturbations.RetrievalPerturbations(config))


def run_local(wire: Callable[[beam.Pipeline], None], folder: Path, workers: int) -> None:
    """Runs a pipeline on the local engine; one worker is this process."""
    runners.run(wire, pipeline_options([], workers), str(folder / "log"))


STAGES = {
    "plan": (prepare_plan, run_plan),
    "pair": (prepare_pair, run_pair),
    "write": (prepare_write, run_write),
    "captions": (prepare_captions, run_captions),
}


# --- measuring


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a run took: processor and wall-clock seconds, megabytes of its largest process."""

    cpu_s: float
    wall_s: float
    peak_mb: float


def measured(run: Callable[[], object]) -> Cost:
    """Returns what a function takes in this process and its children."""
    before, started = _cpu_s(), time.perf_counter()
    run()
    wall_s = time.perf_counter() - started
    # ru_maxrss would begin with the size of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    peak = next(line for line in status if line.startswith("VmHWM"))
    largest_kb = max(int(peak.split()[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    return Cost(cpu_s=_cpu_s() - before, wall_s=wall_s, peak_mb=largest_kb / 1024)


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def in_a_process(*arguments: object) -> Any:
    """Runs this file with arguments in a process of its own; returns what it prints, from JSON."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout or "null")


def measure_stage(stage: str, records: int, rounds: int, workers: int) -> Cost:
    """Returns the median cost of a stage at one size."""
    with tempfile.TemporaryDirectory(prefix="eqforge-scale-") as folder:
        in_a_process("--prepare", stage, records, folder)
        runs = []
        for _ in range(rounds):
            runs.append(Cost(**in_a_process("--measure", stage, records, folder, workers)))
            subprocess.run(["rm", "-rf", f"{folder}/out/data", f"{folder}/out/dataset.json"])
    return Cost(**{
        name: statistics.median(getattr(run, name) for run in runs)
        for name in ("cpu_s", "wall_s", "peak_mb")
    })  # fmt: skip


def growth(costs: dict[int, Cost]) -> float:
    """Returns the exponent of time ~ records^n from the largest size but one to the largest."""
    (least, start), *_, (fewer, before), (most, after) = sorted(costs.items())
    times = max(1e-9, after.cpu_s - start.cpu_s) / max(1e-9, before.cpu_s - start.cpu_s)
    return math.log(times) / math.log((most - least) / (fewer - least))


def report(stage: str, costs: dict[int, Cost]) -> Iterator[str]:
    """Yields the lines of a stage's table."""
    sizes = sorted(costs)
    start = costs[sizes[0]]
    for records in sizes:
        cost = costs[records]
        beyond = (cost.cpu_s - start.cpu_s) / max(1, records - sizes[0]) * 1e6
        each = f"{beyond:10.1f}" if records != sizes[0] else f"{'start':>10}"
        yield (
            f"{stage:>9} {records:>10,} {cost.cpu_s:>9.2f} {each} {cost.wall_s:>9.2f} "
            f"{cost.peak_mb:>8.0f}"
        )
    if len(sizes) > 2:
        flat = costs[sizes[-1]].peak_mb / costs[sizes[-2]].peak_mb
        yield (
            f"{'':>9} growth: exponent {growth(costs):.2f}; peak memory from {sizes[-2]:,} to "
            f"{sizes[-1]:,} records: x {flat:.2f}"
        )


HEADER = f"{'stage':>9} {'records':>10} {'CPU s':>9} {'us/record':>10} {'wall s':>9} {'peak MB':>8}"


# --- the whole of Eq-YouCook2


def prepare_youcook2(annotations: Path, folder: Path) -> None:
    """Draws the frames of the whole plan into the media store."""
    config = configuration(folder, annotations)
    store_frames(config, drawn_frames(config, None, 640), scored=False)


def build_youcook2(annotations: Path, folder: Path) -> dict[str, float]:
    """Builds the dataset; returns its numbers and what the build took."""
    config = configuration(folder, annotations)
    plan_cost = measured(lambda: plan_of(config, folder))
    cost = measured(lambda: build_dataset(eq_youcook2.EqYouCook2(config)))
    plan = plan_of(config, folder)
    largest = max(len(clip.pairs) for clip in read_plan(Clip, plan.files))
    manifest = load_manifest(config.run.output)
    return {
        "candidates": plan.counts["candidate pairs"],
        "samples": manifest.num_rows("samples"),
        "images": manifest.num_rows("images"),
        "largest": largest,
        "plan_cpu_s": plan_cost.cpu_s,
        "cpu_s": cost.cpu_s,
        "wall_s": cost.wall_s,
        "peak_mb": cost.peak_mb,
    }


def report_youcook2(found: dict[str, float]) -> Iterator[str]:
    """Yields what was built, at which rate, and what EqBen's pairs would take."""
    pairs, cpu_s, plan_s = found["candidates"], found["cpu_s"], found["plan_cpu_s"]
    yield (
        f"Eq-YouCook2: {pairs:,.0f} candidate pairs, {found['samples']:,.0f} samples, "
        f"{found['images']:,.0f} images in {cpu_s:,.0f} s of processor time "
        f"({found['wall_s']:,.0f} s of wall clock) at {found['peak_mb']:,.0f} MB"
    )
    yield f"  {pairs / cpu_s:,.1f} pairs per second per core, without decoding and faces"
    yield f"EqBen, {EQBEN_PAIRS:,} pairs at that rate, where"
    yield "  reading and writing the plan stays with one process,"
    yield f"  a video is one piece of work, the largest of {found['largest']:.0f} pairs,"
    yield f"  {START_S:.0f} s pass until the workers run, and cores do not share what limits them:"
    each_s = (cpu_s - plan_s) / pairs
    for cores in CORES:
        alone_s = START_S + plan_s / pairs * EQBEN_PAIRS
        shared_s = EQBEN_PAIRS * each_s / cores + found["largest"] * each_s * (cores > 1)
        yield f"  {cores:>4} cores: {(alone_s + shared_s) / 60:8.1f} minutes"
    yield (
        "  Decoding and faces come on top, per frame; `eqforge plan --pilot` measures them on "
        "your videos."
    )


def main() -> None:
    """Runs what is asked for, and prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--rounds", type=int, default=1, help="runs of every size")
    parser.add_argument("--workers", type=int, default=1, help="local processes; plan has one")
    parser.add_argument("--annotations", type=Path, help="YouCook2's real annotations")
    parser.add_argument("--prepare", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--youcook2", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.prepare:
        stage, records, folder = args.prepare
        STAGES[stage][0](int(records), Path(folder))
    elif args.measure:
        stage, records, folder, workers = args.measure
        run = partial(STAGES[stage][1], int(records), Path(folder), int(workers))
        print(json.dumps(asdict(measured(run))))
    elif args.youcook2:
        what, folder = args.youcook2
        if what == "prepare":
            prepare_youcook2(args.annotations, Path(folder))
        else:
            print(json.dumps(build_youcook2(args.annotations, Path(folder))))
    elif args.annotations:
        if any(getattr(args, n) != parser.get_default(n) for n in _SIZED):
            parser.error("--annotations stands alone: the build of YouCook2's plan has one size")
        with tempfile.TemporaryDirectory(prefix="eqforge-scale-") as folder:
            given = ("--annotations", args.annotations, "--youcook2")
            in_a_process(*given, "prepare", folder)
            print("\n".join(report_youcook2(in_a_process(*given, "build", folder))))
    else:
        print(HEADER)
        for stage in args.stages:
            costs = {n: measure_stage(stage, n, args.rounds, args.workers) for n in args.records}
            print("\n".join(report(stage, costs)), flush=True)


if __name__ == "__main__":
    main()
