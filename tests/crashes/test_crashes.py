"""A few of the calls that `python -m tests.crashes all` lets go wrong."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crashes.inject import Sweep, spread
from tests.crashes.replay import Call, Disk, Fates, Replay
from tests.crashes.runs import Server, server_of

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is there")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with server_of("text") as found:
        yield found


@pytest.fixture(scope="module")
def sweep(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    return Sweep(server, tmp_path_factory.mktemp("sweep").resolve())


@needs_compiler
@pytest.mark.parametrize(("harm", "calls"), [("kill", slice(2, 4)), ("EIO", slice(4, 5))])
def test_whatever_call_goes_wrong_the_next_run_ends_with_the_same_bytes(
    sweep: Sweep, harm: str, calls: slice
) -> None:
    for result in sweep.inject(harm, spread(sweep.calls)[calls]):
        assert result.hit
        assert not result.finding, result


@needs_compiler
def test_an_import_of_votes_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    with server_of("review") as server:
        sweep = Sweep(server, tmp_path.resolve())

        results = [*sweep.inject("kill", [5, 11])]

    assert [result.finding for result in results] == ["", ""]


@needs_compiler
def test_after_a_power_cut_the_next_run_ends_with_the_same_bytes(
    server: Server, sweep: Sweep, tmp_path: Path
) -> None:
    results = list(Replay(server, sweep, tmp_path.resolve()).run(most=2))

    assert len(results) == 2
    assert not any(result.finding for result in results), results


@needs_compiler
def test_a_finished_dataset_is_never_harmed_by_its_replacement(
    server: Server, tmp_path: Path
) -> None:
    folder = tmp_path.resolve()
    sweep = Sweep(server, folder, replaces=True)

    results = [*sweep.inject("kill", [sweep.calls * 4 // 5])]
    results += Replay(server, sweep, folder).run(most=2)

    assert [result.finding for result in results] == [""] * 3


CALLS = [
    Call("mkdir", "out", "", 0, b""),
    Call("fsync", "", "", 0, b""),
    Call("truncate", "out/.tmp", "", 0, b""),
    Call("write", "out/.tmp", "", 0, b"data"),
    Call("fsync", "out/.tmp", "", 0, b""),
    Call("rename", "out/.tmp", "out/name", 0, b""),
    Call("fsync", "out", "", 0, b""),
]


@pytest.mark.parametrize(
    ("without", "names", "data", "left"),
    [
        (None, False, "gone", {"name": b"data"}),  # all is safe
        (4, True, "zeros", {"name": bytes(4)}),  # the right length, and nothing in it
        (4, True, "gone", {"name": b""}),
        (6, False, "gone", {}),
        (6, True, "gone", {"name": b"data"}),
        (1, False, "gone", None),
    ],
)
def test_what_a_disk_may_have_lost(
    without: int | None, names: bool, data: str, left: dict[str, bytes] | None, tmp_path: Path
) -> None:
    calls = [call for number, call in enumerate(CALLS) if number != without]
    root = tmp_path / "root"
    Disk(calls).write(len(calls) - 1, Fates(names, data, random.Random(0)), root)  # type: ignore[arg-type]

    files = {path.name: path.read_bytes() for path in (root / "out").glob("*")}
    assert (files if (root / "out").exists() else None) == left
