import random
import subprocess
import sys
import tracemalloc
import uuid
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.core.files import storage
from eqforge.schemas.records.stages import Reject
from eqforge.transforms.dataset import sorted_runs
from eqforge.transforms.dataset.sorted_runs import PART_BYTES, Run, RunSorter, merge_runs
from tests.builds import one_run


@pytest.fixture(params=["disk", "memory"])
def parts(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where part files go: on the disk, or in an object store that lives in memory."""
    root = str(tmp_path) if request.param == "disk" else f"memory://{uuid.uuid4().hex}"
    return storage.join(root, "parts", "rejects-")


SMALL = 1_000  # a part file for every few records


def reject(name: str) -> Reject:
    return Reject(candidate_id=name, stage="frames", reason="face_found", detail=f"of {name}")


def key(record: Reject) -> str:
    return record.candidate_id


def shuffled(number: int) -> list[Reject]:
    records = [reject(f"d/{i:06d}") for i in range(number)]
    random.Random(0).shuffle(records)
    return records


def sort(
    records: Iterable[Reject], shards: int, part: str, part_bytes: int = PART_BYTES
) -> dict[int, list[Run]]:
    """The runs of some records, by shard."""
    sorter, runs = RunSorter(key, shards, part), dict[int, list[Run]]()
    with patch.object(sorted_runs, "PART_BYTES", part_bytes):
        for record in records:
            for shard, run in sorter.add(record):
                runs.setdefault(shard, []).append(run)
        for shard, run in sorter.flush():
            runs.setdefault(shard, []).append(run)
    return runs


def merged(runs: list[Run]) -> list[Reject]:
    """The records of some runs, read in pieces that are shorter than a line."""
    with patch.multiple(sorted_runs, MERGE_BYTES=0, LEAST_PIECE_BYTES=50):
        lines = merge_runs(runs)
    return [msgspec.json.decode(record, type=Reject) for _, record in lines]


def test_a_bundle_that_is_done_again_writes_the_same_parts(parts: str) -> None:
    folder = parts.rpartition("/")[0]
    first = sort(shuffled(100), 2, parts, SMALL)
    files = {name: storage.read_bytes(storage.join(folder, name)) for name in
             storage.list_files(folder)}  # fmt: skip

    assert sort(shuffled(100), 2, parts, SMALL) == first
    assert files == {name: storage.read_bytes(storage.join(folder, name)) for name in
                     storage.list_files(folder)}  # fmt: skip


@given(names=st.lists(st.text(st.characters(codec="utf-8")), max_size=30), cut=st.integers(0, 30))
def test_runs_are_merged_in_the_order_of_the_keys_whatever_these_hold(
    names: list[str], cut: int
) -> None:
    """The order is Python's of strings; quotes, line ends and zeros in a key change nothing."""
    records = [reject(name) for name in names]

    found = merged([*one_run(key, records[:cut]), *one_run(key, records[cut:])])

    assert found == sorted(records, key=key)


def pass_records(folder: Path, count: int) -> int:
    records = (
        Reject(candidate_id=f"{i * 7919 % count}", stage="s", reason="r", detail="x" * 1_000)
        for i in range(count)
    )
    runs = sort(records, 1, str(folder / str(count) / "rejects-"), 100_000)[0]
    with patch.multiple(sorted_runs, MERGE_BYTES=100_000, LEAST_PIECE_BYTES=1_000):
        return sum(1 for _ in merge_runs(runs))


def print_peak(folder: str) -> None:
    pass_records(Path(folder), 200)  # imports what it needs at first use
    tracemalloc.start()
    assert pass_records(Path(folder), 4_000) == 4_000
    print(tracemalloc.get_traced_memory()[1])


def test_neither_sorting_nor_merging_holds_the_records(tmp_path: Path) -> None:
    """4 MB of lines pass at far less than their own size, and at less than a list of them has.

    A process of its own has no threads of other tests, whose memory would count.
    """
    code = f"from {__name__} import print_peak; print_peak({str(tmp_path)!r})"
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert 0 < int(printed) < 1_000_000
