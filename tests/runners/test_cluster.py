"""deploy/flink/cluster: it starts what is missing, ends what there is, and never minds a crash."""

import os
import signal
import socket
from pathlib import Path

import pytest

from tests.builds import wait_for
from tests.runners.tiers import Cluster, check_flink, need, running_cluster

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(autouse=True)
def _flink() -> None:
    need("flink-cluster", check_flink)


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

        for process in (*cluster.processes("jobmanager"), *cluster.processes("taskmanager")):
            os.kill(process, signal.SIGKILL)
        wait_for(lambda: cluster.run("status").returncode == 3)
        cluster.up()
        assert set(cluster.processes("jobmanager")).isdisjoint(first[0])
    finally:
        assert cluster.run("down").stdout == "down\n"
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


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    done = Cluster(tmp_path, FLINK_HOME=str(tmp_path / "none")).run("up")
    assert done.returncode == 1
    assert "run 'eqforge setup flink', or set FLINK_HOME" in done.stderr

    assert Cluster(tmp_path).run("join").returncode == 1
    done = Cluster(tmp_path).run()
    assert done.returncode == 2
    assert "deploy/flink/cluster up" in done.stdout
    with running_cluster(tmp_path / "c", FLINK_TASK_MANAGERS="1", FLINK_SLOTS="3") as cluster:
        assert len(cluster.processes("taskmanager")) == 1
