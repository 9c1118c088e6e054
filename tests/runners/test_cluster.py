"""deploy/flink/cluster: it starts what is missing, ends what there is, and never minds a crash."""

import json
import os
import signal
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from eqforge.transforms.engines.flink import overview
from tests.builds import wait_for
from tests.runners.tiers import FLINK_HOME, JAR, Cluster, need, running_cluster

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(autouse=True)
def _flink() -> None:
    need("flink-cluster", JAR, FLINK_HOME)


def test_up_and_down_in_any_order(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "cluster")
    assert cluster.run("down").stdout == "down\n"
    assert cluster.run("status").returncode == 3
    try:
        cluster.up()
        first = cluster.processes("jobmanager"), sorted(cluster.processes("taskmanager"))
        assert (len(first[0]), len(first[1])) == (1, 2)
        cluster.up()
        assert (cluster.processes("jobmanager"), sorted(cluster.processes("taskmanager"))) == first
        assert cluster.master in cluster.run("status").stdout

        os.kill(first[1][0], signal.SIGKILL)
        wait_for(lambda: len(cluster.processes("taskmanager")) == 1)
        cluster.up()
        assert cluster.processes("jobmanager") == first[0]
        assert len(cluster.processes("taskmanager")) == 2
        found = overview(cluster.master)  # the killed one is forgotten
        assert (found.task_managers, found.slots) == (2, 2)

        for process in (*cluster.processes("jobmanager"), *cluster.processes("taskmanager")):
            os.kill(process, signal.SIGKILL)
        wait_for(lambda: cluster.run("status").returncode == 3)
        cluster.up()
        assert set(cluster.processes("jobmanager")).isdisjoint(first[0])
    finally:
        assert cluster.run("down").stdout == "down\n"
    # What was written for a while is gone, that of killed processes too.
    assert sorted(file.name for file in (tmp_path / "cluster").iterdir()) == ["conf", "log"]
    assert cluster.processes("jobmanager") == cluster.processes("taskmanager") == []


def test_a_port_that_is_taken_is_said_to_be(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("localhost", 0))
        other.listen()
        taken = str(other.getsockname()[1])
        cluster = Cluster(tmp_path, FLINK_REST_PORT=taken, FLINK_TASK_MANAGERS="1")
        try:
            done = cluster.run("up")
        finally:
            cluster.run("down")
    assert done.returncode == 1
    assert "the jobmanager ended" in done.stderr
    assert taken in done.stderr


def test_it_takes_jobs_at_its_own_address_alone_and_takes_settings(tmp_path: Path) -> None:
    settings = tmp_path / "settings"
    settings.write_text("slot.request.timeout: 4321\nweb.refresh-interval: 1234\n")
    own = {"FLINK_HOST": "127.0.0.2", "FLINK_SETTINGS": str(settings)}
    with running_cluster(tmp_path / "c", FLINK_TASK_MANAGERS="1", **own) as cluster:
        port = cluster.master.rpartition(":")[2]
        assert overview(f"127.0.0.2:{port}").task_managers == 1
        (manager,), (worker,) = map(cluster.processes, ("jobmanager", "taskmanager"))
        assert [address for address, number in listening(manager) if number == int(port)] == [
            "127.0.0.2"
        ]
        assert {address for address, _ in listening(worker)} == {"127.0.0.2"}
        with urllib.request.urlopen(f"http://127.0.0.2:{port}/v1/jobmanager/config") as answer:
            config = {entry["key"]: entry["value"] for entry in json.load(answer)}
    assert (config["slot.request.timeout"], config["web.refresh-interval"]) == ("4321", "1234")


def listening(pid: int) -> Iterator[tuple[str, int]]:
    """The addresses and ports at which a process takes connections."""
    for connection in psutil.Process(pid).net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN:
            yield connection.laddr.ip.removeprefix("::ffff:"), connection.laddr.port


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    done = Cluster(tmp_path, FLINK_HOME=str(tmp_path / "none")).run("up")
    assert done.returncode == 1
    assert "run 'eqforge setup flink', or set FLINK_HOME" in done.stderr

    assert Cluster(tmp_path).run("join").returncode == 1
    done = Cluster(tmp_path).run()
    assert done.returncode == 2
    assert "deploy/flink/cluster up" in done.stdout
    assert "FLINK_SETTINGS= " in done.stdout
    assert "pipefail" not in done.stdout
    with running_cluster(tmp_path / "c", FLINK_TASK_MANAGERS="1", FLINK_SLOTS="3") as cluster:
        assert len(cluster.processes("taskmanager")) == 1
