"""Shows the progress of a run, on any runner and with any number of processes.

Every process appends its counts to its own file; the driver adds the files up. Work that a runner
repeats is counted again.
"""

import contextlib
import functools
import json
import os
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from eqforge.core.console import in_words

Expected = Mapping[str, tuple[int, str]]
_lock = threading.Lock()
_files: dict[tuple[int, str], Path] = {}


def count(folder: str | None, stage: str, number: int = 1) -> None:
    if folder is None:
        return
    with _lock:
        path = _files.setdefault(
            (os.getpid(), folder), Path(folder) / f"{os.getpid()}-{uuid.uuid4().hex}.jsonl"
        )
        # The driver removes the folder when the run is over; later counts are lost.
        with contextlib.suppress(FileNotFoundError), open(path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps([stage, number]) + "\n")


def totals(folder: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for path in sorted(Path(folder).glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                stage, number = json.loads(line)
                counts[stage] += number
    return counts


@contextlib.contextmanager
def watch(folder: str, expected: Expected, line_every_s: float = 10.0) -> Iterator[None]:
    """Show progress during the block: bars on a terminal, otherwise occasional lines.

    Args:
      folder: where the processes note their counts; created, and removed at the end.
      expected: number and unit of each stage's items, in display order.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    _remove_notes(folder)  # left by a killed run
    over = threading.Event()
    show_lines = functools.partial(_show_lines, every_s=line_every_s)
    show = _show_bars if sys.stderr.isatty() else show_lines
    watcher = threading.Thread(target=show, args=(folder, dict(expected), over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        _remove_notes(folder)
        with contextlib.suppress(OSError):
            Path(folder).rmdir()


def _remove_notes(folder: str) -> None:
    # If nothing can be deleted, another step will end the run and report why.
    with contextlib.suppress(OSError):
        for path in Path(folder).glob("*.jsonl"):
            path.unlink(missing_ok=True)


def _show_bars(folder: str, expected: Expected, over: threading.Event) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description:>10}"),
        BarColumn(),
        TextColumn("{task.fields[words]}"),
    )
    started = time.monotonic()
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks = {
            stage: bars.add_task(stage, total=total, words="")
            for stage, (total, _) in expected.items()
        }
        last = False
        while not last:
            last = over.wait(0.5)
            counts = totals(folder)
            for stage, task in tasks.items():
                total, unit = expected[stage]
                done = min(counts[stage], total)
                words = in_words(done, total, unit, time.monotonic() - started)
                bars.update(task, completed=done, words=words)


def _show_lines(folder: str, expected: Expected, over: threading.Event, every_s: float) -> None:
    started = time.monotonic()
    while not over.wait(every_s):
        counts, passed = totals(folder), time.monotonic() - started
        done = "; ".join(
            f"{stage} {in_words(min(counts[stage], total), total, unit, passed)}"
            for stage, (total, unit) in expected.items()
        )
        print(f"{passed:6.0f} s  {done}", file=sys.stderr, flush=True)
