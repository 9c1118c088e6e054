"""The driver is killed again and again, and what it ends with is the same to the byte."""

import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from tests.builds import dataset_bytes, finished_work
from tests.faults import runs
from tests.faults.conftest import Whole

ROUNDS = int(os.environ.get("EQFORGE_KILL_ROUNDS", "1"))
# Where a run is killed: how the name of the file begins that it is writing, and at most which of
# them; each restart finds enough of them left to write.
PHASES = (
    ("_work/identity", 1),
    ("_work/plan", 1),
    ("_work/done/extract", 2),
    ("_work/done/score", 1),
    ("_work/done/measure", 1),
    ("data/", 5),
    ("_work/shards/", 4),
    ("data/", 5),
    ("README.md", 1),
    ("dataset.json", 1),
)
KILLS: dict[str, tuple[Literal["before", "after"], Callable[[Path, Path], None]]] = {
    "before": ("before", runs.kill),
    "half-way": ("before", runs.kill_in_the_middle),
    "after": ("after", runs.kill),
}


def ten_moments(rng: random.Random) -> Iterator[runs.Fault]:
    for at, most in PHASES:
        when, happen = KILLS[rng.choice(sorted(KILLS))]
        yield runs.Fault(at=at, nth=rng.randint(1, most), when=when, happen=happen)


def finished(output: Path) -> dict[str, int]:
    """When each piece of work was finished, by name."""
    steps = ("extract", "score", "measure")
    return {name: at for step in steps for name, at in finished_work(output, step).items()}


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_at_ten_random_moments_it_ends_with_the_same_bytes(
    whole: Whole, tmp_path: Path, seed: int
) -> None:
    """EQFORGE_KILL_ROUNDS says how many rounds; each kills and restarts one build ten times."""
    output = tmp_path / "out"
    before: dict[str, int] = {}
    for fault in ten_moments(random.Random(seed)):
        status, said = runs.build_with(fault, whole.inputs, output)

        assert status == -signal.SIGKILL, f"{fault}: {said}"
        is_over = (fault.at, fault.when) == ("dataset.json", "after")
        assert (output / "dataset.json").exists() == is_over
        assert before.items() <= finished(output).items()
        before = finished(output)

    status, said = runs.build(whole.inputs, output)

    assert status == 0, said
    assert finished(output) == before
    assert dataset_bytes(output) == whole.files
    left = [path.relative_to(output / "_work") for path in output.rglob(".tmp-*")]
    assert {path.parts[0] for path in left} <= {"plan", "done"}
