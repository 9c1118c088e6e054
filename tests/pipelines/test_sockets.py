"""What listens while a build runs here: nothing in one process, files of this user in several."""

from pathlib import Path

import pytest

from eqforge.generators.demo.workspace import Workspace
from tests.builds import start
from tests.sockets import Watch


@pytest.mark.parametrize("workers", [1, 2])
def test_no_port_is_open_while_a_build_runs_on_this_machine(
    demo_workspace: Workspace, tmp_path: Path, workers: int
) -> None:
    inputs = ["--captions", demo_workspace.captions, "--videos", demo_workspace.videos]
    settings = ["--face-policy", "off", "--limit", "2", "--workers", workers]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with start(
        *("build", "eq-video", *inputs, *settings, "--output", tmp_path / "out"),
        TMPDIR=str(temporary),
    ) as run:
        watch = Watch(run)
        watch.start()
        _, err = run.communicate(timeout=300)
        watch.end()
    assert run.returncode == 0, err
    assert watch.found == set()
    assert set(watch.files.values()) == (set() if workers == 1 else {0o700})
    assert list(temporary.iterdir()) == []
