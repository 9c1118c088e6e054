"""The engines a build may run on, each started as a user would start it."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import apache_beam as beam
import pytest

from eqforge.core.files.disk import cache_folder
from tests.builds import environment

ROOT = Path(__file__).parents[2]
CLUSTER = ROOT / "deploy" / "flink" / "cluster"
BOOT = Path(sys.executable).with_name("eqforge-beam-boot")
# Small, for the tests run beside others.
# What deploy/flink/fetch and deploy/prism/fetch bring.
JAR = cache_folder() / "flink" / "flink-1.19-job-server-2.62.0.jar"
FLINK_HOME = cache_folder() / "flink" / "flink-1.19.3"
PRISM = cache_folder() / f"prism-{beam.__version__}" / "prism"
EMBEDDED = [
    *("--runner=FlinkRunner", "--flink_master=[local]", f"--flink_job_server_jar={JAR}"),
    "--allow_open_ports",
]
ON_PRISM = ["--runner=PrismRunner", f"--prism_location={PRISM}", "--allow_open_ports"]
CLUSTER_SIZES = {"FLINK_JOB_MANAGER_MB": "1024", "FLINK_TASK_MANAGER_MB": "1280"}


def need(tier: str, *parts: Path) -> None:
    """Goes on where a tier is asked for and its parts are there.

    `EQFORGE_RUNNERS=all`, which `make runners` sets, asks for every tier: one that lacks a part
    then fails. Without it the tiers that no Python package brings are skipped.
    """
    asked = os.environ.get("EQFORGE_RUNNERS", "").split(",")
    if not {tier, "all"} & set(asked):
        pytest.skip(f"EQFORGE_RUNNERS does not ask for {tier}; `make runners` runs it")
    if missing := [str(part) for part in parts if not part.exists()]:
        pytest.fail(f"{tier} lacks {missing}: run deploy/flink/fetch and deploy/prism/fetch")


def need_packages(extra: str, packages: Iterable[str]) -> None:
    """Goes on where the packages of an extra are installed."""
    if all(find_spec(package) for package in packages):
        return
    if "all" in os.environ.get("EQFORGE_RUNNERS", ""):
        pytest.fail(f"the extra `{extra}` is not installed; `make runners` installs it")
    pytest.skip(f"the extra `{extra}` is not installed")


@contextlib.contextmanager
def worker_pool(folder: Path) -> Iterator[str]:
    """Beam's pool of worker processes, which eqforge-beam-boot starts; gives its address."""
    port = free_ports(1)[0]
    command = [
        *(sys.executable, "-m", "apache_beam.runners.worker.worker_pool_main"),
        *(f"--service_port={port}", f"--container_executable={BOOT}"),
    ]
    with open(folder / "pool.log", "wb") as log:
        pool = subprocess.Popen(
            command, env=environment(), cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        wait_for_port(port)
        yield f"localhost:{port}"
    finally:
        pool.terminate()
        pool.wait()


class Cluster:
    """A Flink cluster of its own: a folder, free ports, and deploy/flink/cluster to rule it."""

    def __init__(self, folder: Path, **variables: str) -> None:
        rest, rpc = free_ports(2)
        self.folder, self.master = folder, f"localhost:{rest}"
        own = {"FLINK_REST_PORT": str(rest), "FLINK_RPC_PORT": str(rpc)}
        self.variables = {"FLINK_FOLDER": str(folder), **own, **CLUSTER_SIZES, **variables}

    @property
    def arguments(self) -> list[str]:
        jar = f"--flink_job_server_jar={JAR}"
        return ["--runner=FlinkRunner", f"--flink_master={self.master}", jar]

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(CLUSTER), *arguments],
            env=environment(**self.variables), capture_output=True, text=True, check=False,
        )  # fmt: skip

    def up(self) -> None:
        done = self.run("up")
        assert done.returncode == 0, done.stderr + done.stdout

    def processes(self, kind: str) -> list[int]:
        return [pid for pid, mark in marked_processes() if mark == f"{kind} {self.folder}"
                and os.getsid(pid) == pid]  # fmt: skip

    def workers(self) -> list[int]:
        mine = [pid for pid, mark in marked_processes() if mark == f"taskmanager {self.folder}"]
        return [pid for pid in mine if "sdk_worker_main" in command_of(pid)]


@contextlib.contextmanager
def running_cluster(folder: Path, **variables: str) -> Iterator[Cluster]:
    """A cluster that runs, and ends with the body."""
    cluster = Cluster(folder, **variables)
    try:
        cluster.up()
        yield cluster
    finally:
        cluster.run("down")


def marked_processes() -> Iterator[tuple[int, str]]:
    """Every process that the cluster's script started, or that such a one did, with its mark."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            variables = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
            marks = [text for text in variables if text.startswith("FLINK_PROCESS=")]
            if marks:
                yield int(entry.name), marks[0].removeprefix("FLINK_PROCESS=")


def command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


def free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for probe in sockets:
            probe.bind(("localhost", 0))
        return [probe.getsockname()[1] for probe in sockets]


def wait_for_port(port: int, timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port), 1):
            return
        assert time.monotonic() < deadline, f"nothing listens on port {port}"
        time.sleep(0.1)
