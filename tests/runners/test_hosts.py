"""A build over two hosts that share one folder and nothing else.

The hosts are network namespaces of this machine, each with an address and a /tmp of its own. The
first has the JobManager, a TaskManager and the driver; the second another TaskManager.
"""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eqforge.generators.demo.workspace import Workspace
from tests.builds import dataset_bytes, environment, start
from tests.runners.tiers import CLUSTER, CLUSTER_SIZES, FLINK_HOME, JAR, need

ADDRESSES = {"eqforge-a": "10.213.77.1", "eqforge-b": "10.213.77.2"}
FIRST, SECOND = ADDRESSES
PORT = "18081"
FLINK = [
    *("--runner=FlinkRunner", f"--flink_master={ADDRESSES[FIRST]}:{PORT}"),
    f"--flink_job_server_jar={JAR}",
]
SMALL_FILES = ["--samples-per-file", "4", "--images-per-file", "4"]
pytestmark = pytest.mark.timeout(1500)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@contextlib.contextmanager
def two_hosts() -> Iterator[None]:
    """Two namespaces with a cable between them."""
    with contextlib.ExitStack() as held:
        for name in ADDRESSES:
            with contextlib.suppress(subprocess.CalledProcessError):
                ip("netns", "del", name)  # that a killed run left behind
            ip("netns", "add", name)
            held.callback(ip, "netns", "del", name)
        ip("link", "add", FIRST, "netns", FIRST, "type", "veth", "peer", SECOND, "netns", SECOND)
        for name, address in ADDRESSES.items():
            ip("-n", name, "addr", "add", f"{address}/24", "dev", name)
            ip("-n", name, "link", "set", name, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield


class Host:
    """A namespace, and the folder that it shares with the other one under the same path."""

    def __init__(self, name: str, shared: Path, cache: Path) -> None:
        """Names the host; `cache` is where Flink's parts are."""
        self.name, self.shared, self.cache = name, shared, cache

    def start(self, *command: object) -> "subprocess.Popen[str]":
        # What the hosts share is mounted before the rest of /tmp disappears.
        script = (
            'mkdir -p "/mnt/$1" && mount --bind "$2" "/mnt/$1" && mount -t tmpfs none /tmp && '
            'cd "/mnt/$1" && shift 2 && exec "$@"'
        )
        inside = ["ip", "netns", "exec", self.name, "unshare", "--mount", "bash", "-c", script, "-"]
        variables = {
            "EQFORGE_CACHE": str(self.cache),
            "FLINK_FOLDER": f"/var/tmp/{self.name}-{os.getpid()}",
            "FLINK_HOST": ADDRESSES[self.name],
            "FLINK_REST_PORT": PORT,
            "FLINK_TASK_MANAGERS": "1",
        }
        return subprocess.Popen(
            [*inside, "eqforge-shared", str(self.shared), *map(str, command)],
            env=environment(**CLUSTER_SIZES, **variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *command: object) -> str:
        with self.start(*command) as run:
            out, err = run.communicate(timeout=900)
        assert run.returncode == 0, err
        return out


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    """Two hosts with a cluster over both."""
    need("flink-cluster", JAR, FLINK_HOME)
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the program ip")
    from eqforge.core.files.disk import cache_folder

    first, second = (Host(name, tmp_path, cache_folder()) for name in ADDRESSES)
    with two_hosts():
        try:
            first.run(CLUSTER, "up")
            second.run(CLUSTER, "join", ADDRESSES[FIRST])
            yield first, second
        finally:
            for host in (second, first):
                host.run(CLUSTER, "down")
                shutil.rmtree(f"/var/tmp/{host.name}-{os.getpid()}", ignore_errors=True)


def test_two_hosts_with_a_shared_folder_write_the_same_dataset(
    hosts: tuple[Host, Host], demo_workspace: Workspace, tmp_path: Path
) -> None:
    shutil.copytree(demo_workspace.folder, tmp_path / "workspace")
    # Paths are relative to the shared folder, in which the build is started.
    inputs = ["--annotations", "workspace/youcook2.json", "--videos", "workspace/videos"]
    runner = ["--", *FLINK]
    eqforge = [sys.executable, "-m", "eqforge.cli", "build", "eq-youcook2", *SMALL_FILES]

    hosts[0].run(*eqforge, *inputs, "--output", "out", *runner)

    here = ["--annotations", demo_workspace.youcook2, "--videos", demo_workspace.videos]
    with start("build", "eq-youcook2", *SMALL_FILES, *here, "--output", tmp_path / "local") as run:
        assert run.wait(600) == 0
    assert dataset_bytes(tmp_path / "out") == dataset_bytes(tmp_path / "local")
    assert set(worked_on(hosts)) == set(ADDRESSES)


def worked_on(hosts: tuple[Host, Host]) -> Iterator[str]:
    """The hosts whose TaskManager ran tasks of the job, by its log."""
    for host in hosts:
        logs = Path(f"/var/tmp/{host.name}-{os.getpid()}/log").glob("taskmanager-*.out")
        if any("switched from INITIALIZING to RUNNING" in log.read_text() for log in logs):
            yield host.name


def test_a_host_without_the_driver_s_folder_says_so(
    hosts: tuple[Host, Host], demo_workspace: Workspace, tmp_path: Path
) -> None:
    """The build is started in a folder that only the first host has: its own /tmp."""
    shutil.copytree(demo_workspace.folder, tmp_path / "workspace")
    videos = "--videos /mnt/eqforge-shared/workspace/videos"
    annotations = "--annotations /mnt/eqforge-shared/workspace/youcook2.json"
    script = (
        f"mkdir /tmp/mine && cd /tmp/mine && {sys.executable} -m eqforge.cli build eq-youcook2 "
        f"{annotations} {videos} --output /mnt/eqforge-shared/out -- {shlex.join(FLINK)}"
    )
    with hosts[0].start("bash", "-c", script) as run:
        _, err = run.communicate(timeout=900)

    assert run.returncode == 1
    assert "this host cannot open the folder /tmp/mine" in err
    assert not (tmp_path / "out" / "dataset.json").exists()
