"""An output folder that cannot be written, or is taken away, or wanted by two runs at once."""

import os
import signal
from pathlib import Path

import pytest

from tests.builds import dataset_bytes, finished_work
from tests.faults import runs
from tests.faults.conftest import Whole


def test_an_output_that_is_read_only_is_refused_before_any_work(
    whole: Whole, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    output.mkdir(mode=0o555)

    status, said = runs.build(whole.inputs, output, runs.drop_privileges)

    assert status == 2, said
    assert runs.last_line(said) == (
        f"eqforge: --output {output}: cannot be written: Permission denied"
    )


def test_an_output_that_becomes_read_only_ends_the_run_and_loses_nothing(
    whole: Whole, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    fault = runs.Fault(at="data/", nth=3, happen=runs.make_read_only)

    status, said = runs.build(
        whole.inputs, output, runs.drop_privileges, runs.Installed(fault, output)
    )

    assert status == 1, said
    assert "Permission denied" in runs.last_line(said)
    runs.set_mode(output, 0o755)
    finished = finished_work(output, "extract")
    assert runs.build(whole.inputs, output)[0] == 0
    assert dataset_bytes(output) == whole.files
    assert finished_work(output, "extract") == finished


@pytest.mark.parametrize(
    "fault",
    [
        runs.Fault(at="_work/done/extract/", nth=2, happen=runs.move_away),
        runs.Fault(at="data/", nth=3, happen=runs.move_away),
        runs.Fault(at="data/", nth=19, when="after", happen=runs.move_away),
        runs.Fault(at="README.md", when="after", happen=runs.move_away),
    ],
    ids=["extracting", "writing a table", "tables written", "card written"],
)
def test_an_output_that_vanishes_ends_the_run_without_a_manifest(
    whole: Whole, tmp_path: Path, fault: runs.Fault
) -> None:
    """Where it is back, the next run goes on as if nothing had been."""
    output, away = tmp_path / "out", tmp_path / "away"

    status, said = runs.build_with(fault, whole.inputs, output)

    assert status == 1, said
    said = runs.last_line(said)
    assert (
        "No such file or directory" in said
        or "no longer exists, because another program changed the output folder" in said
    )
    assert not list(tmp_path.glob("*/dataset.json"))
    finished = finished_work(away, "extract")
    assert runs.build(whole.inputs, away)[0] == 0
    assert dataset_bytes(away) == whole.files
    assert finished.items() <= finished_work(away, "extract").items()


def test_a_second_run_is_refused_while_the_first_lives_and_does_not_disturb_it(
    whole: Whole, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    fault = runs.Fault(at="data/", nth=3, happen=runs.stop)
    first = runs.start(whole.inputs, output, runs.Installed(fault, output))
    runs.wait_until_stopped(first)

    status, said = runs.build(whole.inputs, output)

    assert status == 2, said
    assert runs.last_line(said) == (
        f"eqforge: --output {output}: another run is writing there; wait for it to end, or choose "
        "a different folder"
    )
    os.kill(first.pid, signal.SIGCONT)
    assert first.end()[0] == 0
    assert dataset_bytes(output) == whole.files
