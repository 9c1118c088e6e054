"""Measure what Flink does with a build's kind of work; docs/guides/scaling.md has the figures.

    python benchmarks/flink.py --flink_master=localhost:18081
    python benchmarks/flink.py                              # the embedded cluster

Other arguments go to Beam. Five measurements: a job of one record (the cost of starting), how often
a failing step is tried, how many records a bundle has, what a GroupByKey of a million references
costs, and how a cluster ran its last job.
"""

import contextlib
import json
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import apache_beam as beam
import psutil

from eqforge.core.errors import BuildError
from eqforge.transforms.engines.options import pipeline_options
from eqforge.transforms.engines.run import run

REFERENCES, RECORDS, KEYS = 1_000_000, 100_000, 16


def references(chunk: int) -> Iterator[tuple[int, dict]]:
    """Yields a thousandth of the references, about 220 bytes each, keyed by shard."""
    for number in range(chunk, REFERENCES, 1000):
        yield (
            number % KEYS,
            {
                "sample_id": f"eq-video/video{number:09d}/own-003-own-007",
                "image_0_id": f"{number:064x}",
                "image_1_id": f"{number + 1:064x}",
                "captions": ["a wall of grey bricks", "rows of old coins on a dark cloth"],
            },
        )


def count(key: int, group: Iterable[dict]) -> tuple[int, int]:
    """Returns a group's key and the number of its references."""
    return key, sum(1 for _ in group)


def fail(_record: int, attempts: str) -> None:
    """Records that it was called, and fails."""
    with open(attempts, "a") as file:
        file.write("called\n")
    raise ZeroDivisionError


class NoteBundles(beam.DoFn):
    """Records how many records each bundle has."""

    def __init__(self, folder: str) -> None:
        self.folder, self.size = folder, 0

    def process(self, record: int) -> Iterator[int]:
        self.size += 1
        yield record

    def finish_bundle(self) -> None:
        with tempfile.NamedTemporaryFile("w", dir=self.folder, delete=False) as file:
            file.write(str(self.size))
        self.size = 0


class Watch(threading.Thread):
    """Tracks the memory of Java and the Python workers: this program's, or all on the machine."""

    def __init__(self, is_embedded: bool) -> None:
        super().__init__(daemon=True)
        me = psutil.Process()
        self.processes = (
            (lambda: me.children(recursive=True)) if is_embedded else psutil.process_iter
        )
        self.peaks: dict[tuple[str, int], int] = {}
        self.cpu: dict[int, float] = {}
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.3):
            for process in self.processes():
                try:
                    kind = kind_of(process.cmdline())
                    if kind is not None:
                        key = (kind, process.pid)
                        self.peaks[key] = max(self.peaks.get(key, 0), process.memory_info().rss)
                        self.cpu[process.pid] = sum(process.cpu_times()[:2])
                except psutil.Error:
                    continue

    def lines(self) -> Iterator[str]:
        """Yields the number of processes of each kind and the largest one's peak memory."""
        for kind in sorted({kind for kind, _ in self.peaks}):
            found = [peak for (other, _), peak in self.peaks.items() if other == kind]
            yield f"    {kind}: {len(found)}, the largest {max(found) / 1e6:.0f} MB"


def kind_of(command: list[str]) -> str | None:
    """Returns the role of a process in Flink; None for any other."""
    line = " ".join(command)
    for kind, mark in {
        "JobManager": "StandaloneSessionClusterEntrypoint",
        "TaskManager": "TaskManagerRunner",
        "job server": "-jar ",
        "Python worker": "sdk_worker_main",
    }.items():
        if mark in line and (kind == "Python worker") == ("python" in command[0]):
            return kind
    return None


def measured(
    what: str, wire: Callable[[beam.Pipeline], None], arguments: list[str], log: str
) -> None:
    """Runs a pipeline and prints its time and memory."""
    watch = Watch(is_embedded=not any(text.startswith("--flink_master") for text in arguments))
    watch.start()
    started, before = time.monotonic(), psutil.cpu_times()
    run(wire, pipeline_options(arguments, workers=1), log, job=f"{log}-{what}")
    seconds = time.monotonic() - started
    time.sleep(0.5)
    watch.over.set()
    watch.join()
    used = psutil.cpu_times()
    busy = sum(used[:3]) - sum(before[:3])
    print(f"{what}: {seconds:.0f} s, {busy:.0f} CPU seconds of the whole machine")
    print(*watch.lines(), sep="\n", flush=True)


def main(beam_args: list[str]) -> None:
    """Runs the measurements one after another."""
    arguments = ["--runner=FlinkRunner", *beam_args]
    with tempfile.TemporaryDirectory() as folder:
        log, notes = f"{folder}/log", Path(folder) / "bundles"
        notes.mkdir()
        measured("one record", lambda root: root | beam.Create([1]) | beam.Map(str), arguments, log)
        attempts = Path(folder) / "attempts"
        with contextlib.suppress(BuildError):
            run(
                lambda root: root | beam.Create([1]) | beam.Map(fail, str(attempts)),
                pipeline_options(arguments, workers=1),
                log,
                job=f"{log}-failing",
            )
        print(f"a step that fails: tried {len(attempts.read_text().splitlines())} times")
        measured(
            f"{RECORDS:,} records",
            lambda root: (
                root
                | beam.Create(range(RECORDS))
                | beam.Reshuffle()
                | beam.ParDo(NoteBundles(str(notes)))
            ),
            arguments,
            log,
        )
        sizes = sorted(int(file.read_text()) for file in notes.iterdir())
        print(f"    bundles: {len(sizes)}, of {sizes[0]:,} to {sizes[-1]:,} records")
        measured(
            f"GroupByKey of {REFERENCES:,} references",
            lambda root: (
                root
                | beam.Create(range(1000))
                | beam.Reshuffle()
                | beam.FlatMap(references)
                | beam.GroupByKey()
                | beam.MapTuple(count)
            ),
            arguments,
            log,
        )
        show_jobs(beam_args)


def show_jobs(beam_args: list[str]) -> None:
    """Prints how a cluster ran its last job."""
    for argument in beam_args:
        if argument.startswith("--flink_master=") and "[" not in argument:
            root = f"http://{argument.partition('=')[2].removeprefix('http://')}/v1/jobs"
            with urllib.request.urlopen(f"{root}/overview") as answer:
                last = max(json.load(answer)["jobs"], key=lambda job: job["start-time"])
            with urllib.request.urlopen(f"{root}/{last['jid']}") as answer:
                job = json.load(answer)
            print(f"job: {job['plan']['type']}, {len(job['vertices'])} vertices, {job['state']}")


if __name__ == "__main__":
    main(sys.argv[1:])
