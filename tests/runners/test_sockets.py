"""Nothing of a build listens where other hosts reach it: they could run commands.

The engines of this process are in tests/pipelines/test_sockets.py.
"""

from pathlib import Path

import pytest

from eqforge.generators.demo.workspace import Workspace
from tests.builds import start
from tests.runners.test_parity import TIERS
from tests.sockets import Watch, is_loopback

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("tier", ["portable", "flink-cluster"])
def test_what_the_driver_opens_only_this_machine_reaches(
    tier: str, demo_workspace: Workspace, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    inputs = ["--captions", demo_workspace.captions, "--videos", demo_workspace.videos]
    command = ["build", "eq-video", *inputs, "--face-policy", "off", "--limit", "2"]
    with (
        TIERS[tier](request, tmp_path) as arguments,
        start(*command, "--output", tmp_path / "out", *arguments) as run,
    ):
        watch = Watch(run)
        watch.start()
        _, err = run.communicate(timeout=600)
        open_to_others = watch.end()
    assert run.returncode == 0, err
    assert open_to_others == set()
    # The one port of a job for a cluster is closed within milliseconds.
    assert tier == "flink-cluster" or any(map(is_loopback, watch.found))
