"""Runs eqforge as a user would, and reads back what it wrote."""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.transforms.dataset.sorted_runs import Run, RunSorter
from eqforge.transforms.dataset.tables import Table, WrittenShard
from eqforge.transforms.dataset.write import write_runs

PUBLISHED_LEXICON = (
    Path(__file__).parents[1] / "generators" / "text" / "data" / "hard_positive_lexicon.tsv"
)
"""The paper's lexicon as a file that a user may name."""

ENTRY = [sys.executable, "-m", "eqforge"]


def rows(output: Path, table: str) -> list[dict[str, Any]]:
    files = sorted((output / "data").glob(f"{table}-*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def ids(output: Path) -> list[str]:
    return [row["sample_id"] for row in rows(output, "samples")]


def reasons(output: Path, stage: str) -> Counter[str]:
    return Counter(row["reason"] for row in rows(output, "rejects") if row["stage"] == stage)


def rejected(output: Path, reason: str) -> list[str]:
    return [row["candidate_id"] for row in rows(output, "rejects") if row["reason"] == reason]


def books(output: Path) -> dict[str, tuple[int, int, int]]:
    """(candidates, kept, rejected) by stage; each stage's reject rows add up to what it says."""
    stages = json.loads((output / "dataset.json").read_text())["stages"]
    for stage, entry in stages.items():
        assert entry["candidates"] == entry["kept"] + entry["rejected"]
        assert reasons(output, stage) == entry["reasons"]
        assert sum(entry["reasons"].values()) == entry["rejected"]
    return {s: (e["candidates"], e["kept"], e["rejected"]) for s, e in stages.items()}


def dataset_bytes(output: Path) -> dict[str, bytes]:
    """Every file of a finished dataset, the manifest and the documents among them."""
    names = ("dataset.json", "README.md", "croissant.json", "SHA256SUMS")
    beside = [output / name for name in names]
    files = [*sorted((output / "data").iterdir()), *beside]
    return {str(file.relative_to(output)): file.read_bytes() for file in files}


def finished_work(output: Path, step: str) -> dict[str, int]:
    """When each finished piece of a step's work was written down, by its file's name."""
    files = (output / "_work" / "done" / step).rglob("*.json")
    return {file.name: file.stat().st_mtime_ns for file in files if file.name[0] != "."}


def environment(**changes: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": "", "PYTHONWARNINGS": ""} | changes


def start(*arguments: object, **changes: str) -> "subprocess.Popen[str]":
    """Starts eqforge in a process group of its own."""
    return subprocess.Popen(
        [*ENTRY, *map(str, arguments)],
        env=environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@dataclass(frozen=True)
class Measured:
    """A finished run: what it said, its exit status and its peak megabytes."""

    out: str
    status: int
    peak_mb: float


def measured(*arguments: object) -> Measured:
    """Runs eqforge in a process of its own, to the end."""
    command = [sys.executable, "-c", _MEASURED, *map(str, arguments)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    out, _, found = done.stdout.rpartition("\0")
    return Measured(out, **json.loads(found))


_MEASURED = """
import json, sys
from eqforge.cli import main
try:
    status = main(sys.argv[1:])
except SystemExit as left:
    status = left.code
# ru_maxrss would begin with the size of the process that started this one.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
found = {"status": status, "peak_mb": int(peak.split()[1]) / 1024}
print(chr(0) + json.dumps(found))
"""


PATIENCE_S = 300.0
"""Machines on which many tests run at once are slow; where all is well, nothing waits so long."""


def wait_for(what: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.002)


def processes(session: int) -> Iterator[tuple[int, str]]:
    """The living processes of a session: their id and command line."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            state, _, _, found = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (folder / "cmdline").read_text().replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(found) == session and state != "Z":
            yield int(folder.name), command


def patch_manifest(dataset: Path, change: Callable[[dict[str, Any]], object]) -> None:
    manifest = json.loads((dataset / "dataset.json").read_text())
    change(manifest)
    (dataset / "dataset.json").write_text(json.dumps(manifest))


def rewrite(
    dataset: Path, path: str, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    """Rewrites a file with other rows, and the manifest so that it knows of them.

    The Croissant description, which has the digest of the file as it was, is deleted with its own.
    """
    (dataset / "croissant.json").unlink(missing_ok=True)
    (dataset / "SHA256SUMS").unlink(missing_ok=True)
    table = pq.read_table(dataset / path)
    rows = change(table.to_pylist())
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), dataset / path)
    data = (dataset / path).read_bytes()

    def describe(manifest: dict[str, Any]) -> None:
        files = [file for files in manifest["tables"].values() for file in files]
        (entry,) = [file for file in files if file["path"] == path]
        entry |= {
            "rows": len(rows),
            "num_bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }

    patch_manifest(dataset, describe)


def write_shard(table: Table, shard: int, records: Iterable[Any], output: str) -> WrittenShard:
    """Writes the records of one shard, in one run.

    Raises:
      BuildError: two different records have the same key.
    """
    return write_runs(table, shard, one_run(table.key, records), output)


def one_run(key: Callable[[Any], str], records: Iterable[Any]) -> list[Run]:
    """The run of a few records, which carries them; no run if there are none."""
    sorter = RunSorter(key, 1, "no part is written")
    assert not [run for record in records for run in sorter.add(record)]
    return [run for _, run in sorter.flush()]
