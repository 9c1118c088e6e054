"""Parts of a build on Flink are killed: nothing is lost, and nothing finished is done again."""

import json
import os
import shutil
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from eqforge.generators.demo.workspace import Workspace
from eqforge.transforms.engines.flink import cancel_jobs, overview
from tests.builds import dataset_bytes, finished_work, processes, start, wait_for
from tests.runners.tiers import FLINK_HOME, JAR, Cluster, need, running_cluster

VIDEOS = 16
TIMEOUT_S = 900
pytestmark = pytest.mark.timeout(2 * TIMEOUT_S)


@pytest.fixture(scope="module")
def command(demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A build of many copies of a clip: long enough to be killed in its middle."""
    folder = tmp_path_factory.mktemp("faults")
    lines = [json.loads(line) for line in demo_workspace.captions.read_text().splitlines()]
    tour = [line for line in lines if line["video"] == "own/tour.mkv"]
    with open(folder / "captions.jsonl", "w") as captions:
        for number in range(VIDEOS):
            shutil.copy(demo_workspace.videos / "own" / "tour.mkv", folder / f"{number}.mkv")
            captions.writelines(
                json.dumps(line | {"video": f"{number}.mkv"}) + "\n" for line in tour
            )
    inputs = ["--captions", str(folder / "captions.jsonl"), "--videos", str(folder)]
    return ["build", "eq-video", *inputs, "--mode", "paper", "--face-policy", "off"]


@pytest.fixture(scope="module")
def expected(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    output = tmp_path_factory.mktemp("faults") / "reference"
    end(start(*command, "--output", output))
    return dataset_bytes(output)


def begin(command: list[str], output: Path, cluster: Cluster) -> "subprocess.Popen[str]":
    runner = ["--", *cluster.arguments]
    run = start(*command, "--output", output, *runner)
    wait_for(lambda: len(finished_work(output, "extract")) >= 2 or run.poll() is not None, 600)
    return run


def end(run: "subprocess.Popen[str]", status: int = 0) -> str:
    _, err = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == status, err
    return err


def redone(before: dict[str, int], output: Path) -> list[str]:
    """The videos that were finished before and have been taken apart again since."""
    after = finished_work(output, "extract")
    return [name for name, written in before.items() if after[name] != written]


def job_states(cluster: Cluster) -> list[str]:
    with urllib.request.urlopen(f"http://{cluster.master}/v1/jobs/overview") as answer:
        jobs = json.load(answer)["jobs"]
    return [job["state"] for job in sorted(jobs, key=lambda job: -job["start-time"])]


def test_a_killed_worker_is_started_again(
    command: list[str], expected: dict[str, bytes], flink_cluster: Cluster, tmp_path: Path
) -> None:
    run = begin(command, tmp_path, flink_cluster)
    before = finished_work(tmp_path, "extract")

    os.kill(flink_cluster.workers()[0], signal.SIGKILL)

    end(run)
    assert dataset_bytes(tmp_path) == expected
    assert redone(before, tmp_path) == []


def test_a_job_goes_on_when_a_killed_task_manager_is_replaced(
    command: list[str], expected: dict[str, bytes], flink_cluster: Cluster, tmp_path: Path
) -> None:
    run = begin(command, tmp_path, flink_cluster)
    before = finished_work(tmp_path, "extract")

    os.kill(flink_cluster.processes("taskmanager")[0], signal.SIGKILL)

    wait_for(lambda: overview(flink_cluster.master).slots == 1, 120)
    flink_cluster.up()
    assert overview(flink_cluster.master).slots == 2
    end(run)
    assert dataset_bytes(tmp_path) == expected
    assert redone(before, tmp_path) == []


def test_a_job_ends_when_a_killed_task_manager_is_not_replaced(
    command: list[str], expected: dict[str, bytes], tmp_path: Path
) -> None:
    need("flink-cluster", JAR, FLINK_HOME)
    settings, output = tmp_path / "settings", tmp_path / "out"
    settings.write_text("slot.request.timeout: 5000\n")  # a minute otherwise
    with running_cluster(tmp_path / "cluster", FLINK_SETTINGS=str(settings)) as cluster:
        run = begin(command, output, cluster)
        before = finished_work(output, "extract")

        os.kill(cluster.processes("taskmanager")[0], signal.SIGKILL)

        said = end(run, status=1).splitlines()[-1]
        lost = (
            f"the cluster at {cluster.master} has 1 of 2 slots left, because a TaskManager stopped"
        )
        assert f"the run failed: Timeout has occurred: 5000 ms; {lost}" in said
        end(begin(command, output, cluster))
    assert dataset_bytes(output) == expected
    assert redone(before, output) == []


@pytest.mark.parametrize("where", ["on the cluster", "here, by another path"])
def test_what_a_killed_build_left_running_ends_with_it_or_by_the_next_one(
    command: list[str],
    expected: dict[str, bytes],
    flink_cluster: Cluster,
    tmp_path: Path,
    where: str,
) -> None:
    output, link = tmp_path / "out", tmp_path / "link"
    link.symlink_to(output)
    run = begin(command, output, flink_cluster)
    before = finished_work(output, "extract")

    run.kill()

    run.communicate(timeout=600)
    wait_for(lambda: not list(processes(run.pid)), 60)  # the job server among them
    assert job_states(flink_cluster)[0] == "RUNNING"
    if where == "on the cluster":
        end(begin(command, output, flink_cluster))
        assert job_states(flink_cluster)[:2] == ["FINISHED", "CANCELED"]
    else:
        end(start(*command, "--output", link))
        assert job_states(flink_cluster)[0] == "CANCELED"
    assert dataset_bytes(output) == expected
    assert redone(before, output) == []


def test_a_left_job_whose_cluster_does_not_answer_is_asked_about(
    command: list[str], expected: dict[str, bytes], flink_cluster: Cluster, tmp_path: Path
) -> None:
    """Nothing in the output changes until the user says that the job is gone."""
    run = begin(command, tmp_path, flink_cluster)
    run.kill()
    run.communicate(timeout=600)
    note = tmp_path / "_work" / "flink-job.json"
    there = json.loads(note.read_text())
    # As when that cluster is down; the job itself ends by its name.
    assert cancel_jobs(flink_cluster.master, there["job_name"]) == 1
    note.write_text(json.dumps(there | {"flink_master": "localhost:1"}))
    (tmp_path / ".tmp-half-written").touch()

    said = end(start(*command, "--output", tmp_path), status=2)

    why = "(<urlopen error [Errno 111] Connection refused>). Start"
    assert f"could not cancel it on the Flink cluster at localhost:1 {why}" in said
    assert said.endswith(f"check that the job has stopped, then delete {note}.\n")
    assert (tmp_path / ".tmp-half-written").exists()
    note.unlink()
    end(start(*command, "--output", tmp_path))
    assert dataset_bytes(tmp_path) == expected


def test_ctrl_c_ends_the_job_on_the_cluster(
    command: list[str], flink_cluster: Cluster, tmp_path: Path
) -> None:
    run = begin(command, tmp_path, flink_cluster)

    run.send_signal(signal.SIGINT)

    err = end(run, status=130)
    assert "interrupted; run the same command again to resume" in err
    assert "Traceback" not in err
    assert job_states(flink_cluster)[0] == "CANCELED"
