"""A job on a cluster is noted in its output. Of the cluster, only what it answers is there."""

import http.server
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
)

from eqforge.core.errors import InputError
from eqforge.transforms.engines import run as runners
from eqforge.transforms.engines.flink import alone, end_left_job, failure_report
from eqforge.transforms.engines.options import pipeline_options

NAME = "eqforge-0123"
NOBODY = "localhost:1"


class FakeCluster:
    """Jobs by their ids, with name and state, and the number of slots."""

    def __init__(self, address: str) -> None:
        self.master, self.slots = address, 2
        self.jobs: dict[str, list[str]] = {}

    def answer(self, path: str) -> object:
        if path == "/v1/overview":
            count = {"taskmanagers": self.slots, "slots-total": self.slots}
            return {"flink-version": "1.19.3", **count}
        if path.endswith("/exceptions"):
            return {"root-exception": f"exception of {path.split('/')[3]}"}
        found = [
            {"jid": jid, "name": name, "state": state, "start-time": 1}
            for jid, (name, state) in self.jobs.items()
        ]
        return {"jobs": found}


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.say(found.answer(self.path))

        def do_PATCH(self) -> None:
            found.jobs[self.path.split("/")[3].partition("?")[0]][1] = "CANCELED"
            self.say({})

        def say(self, what: object) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(what).encode())

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("localhost", 0), Handler) as server:
        found = FakeCluster(f"localhost:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield found
        server.shutdown()


def on(master: str, name: str = NAME) -> PipelineOptions:
    options = PipelineOptions(["--runner=FlinkRunner", f"--flink_master={master}"])
    options.view_as(GoogleCloudOptions).job_name = name
    return options


def note(output: Path) -> Path:
    return output / "_work" / "flink-job.json"


def leave(output: Path, master: str, host: str | None = None) -> None:
    """Leaves what a run that was killed then leaves."""
    note(output).parent.mkdir(parents=True)
    found = {"flink_master": master, "job_name": NAME, "host": host or socket.gethostname()}
    note(output).write_text(json.dumps(found))


def fail_after(what: Callable[[], None]) -> None:
    what()
    raise ZeroDivisionError


def test_a_job_is_noted_while_it_runs_and_ended_where_the_run_fails(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    with alone(on(cluster.master), str(tmp_path)):
        assert json.loads(note(tmp_path).read_text())["job_name"] == NAME
    assert not note(tmp_path).exists()

    cluster.jobs = {"a": ["other", "RUNNING"]}
    with pytest.raises(ZeroDivisionError), alone(on(cluster.master), str(tmp_path)):
        fail_after(lambda: cluster.jobs.update(b=[NAME, "RUNNING"]))
    assert cluster.jobs == {"a": ["other", "RUNNING"], "b": [NAME, "CANCELED"]}
    assert not note(tmp_path).exists()


def test_the_note_stays_where_the_cluster_is_gone_when_the_run_fails(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ZeroDivisionError), alone(on(cluster.master), str(tmp_path)):
        fail_after(lambda: monkeypatch.setattr(cluster, "answer", lambda _: None))
    assert note(tmp_path).exists()


@pytest.mark.parametrize("own", ["[local]", "cluster"])
def test_a_left_job_is_ended_by_a_run_elsewhere_before_it_begins(
    cluster: FakeCluster, tmp_path: Path, own: str
) -> None:
    leave(tmp_path, cluster.master)
    cluster.jobs = {"a": [NAME, "RUNNING"], "b": ["other", "RUNNING"]}

    with alone(on(own if own == "[local]" else cluster.master, "mine"), str(tmp_path)):
        assert cluster.jobs == {"a": [NAME, "CANCELED"], "b": ["other", "RUNNING"]}
        assert note(tmp_path).exists() == (own == "cluster")
    assert not note(tmp_path).exists()


def test_a_job_that_is_gone_is_forgotten(cluster: FakeCluster, tmp_path: Path) -> None:
    leave(tmp_path, cluster.master)
    cluster.jobs = {"a": [NAME, "FINISHED"]}
    end_left_job(str(tmp_path))
    assert not note(tmp_path).exists()
    end_left_job(str(tmp_path))


@pytest.mark.parametrize("host", [None, "another-host"])
def test_a_local_run_is_refused_before_it_begins_where_the_cluster_cannot_be_asked(
    cluster: FakeCluster, tmp_path: Path, host: str | None
) -> None:
    """A cluster at localhost is another one on another host."""
    leave(tmp_path, cluster.master if host else NOBODY, host)

    def wire(_root: beam.Pipeline) -> None:
        pytest.fail("it began")

    with pytest.raises(InputError) as refused:
        runners.run(wire, pipeline_options([], workers=1), str(tmp_path / "log"), str(tmp_path))
    message = str(refused.value)
    assert f"the job {NAME} of a killed run may still write there" in message
    why = "only another-host can reach the cluster" if host else "Connection refused"
    assert why in message
    assert message.endswith(f"check that the job has stopped, then delete {note(tmp_path)}.")
    assert note(tmp_path).exists()


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", '{"flink_master": "x"}', "[" * 100_000),
        *(
            json.dumps({"flink_master": master, "job_name": NAME, "host": "here"})
            for master in (
                "http://host:1",
                "host:1/path?x=",
                "user@host:1",
                "file:///etc/passwd",
                "host",
                "host:1\n",
                "host:port",
                "h\u202eost:1",
                7,
                None,
            )
        ),
        json.dumps({"flink_master": NOBODY, "job_name": "a\u001b[2J", "host": "here"}),
        json.dumps({"flink_master": NOBODY, "job_name": 7, "host": "here"}),
    ],
)
def test_a_damaged_note_is_one_clear_error(tmp_path: Path, content: str) -> None:
    leave(tmp_path, NOBODY)
    note(tmp_path).write_text(content)
    with pytest.raises(InputError, match=r"flink-job\.json, which names the job, is damaged"):
        end_left_job(str(tmp_path))


def test_the_note_holds_a_host_and_port_however_the_cluster_was_named(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    with alone(on(f"http://{cluster.master}/"), str(tmp_path)):
        assert json.loads(note(tmp_path).read_text())["flink_master"] == cluster.master


def test_a_job_has_one_name_for_a_folder_however_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "out")

    def name_of(output: str, *arguments: str) -> str:
        options = PipelineOptions(list(arguments))
        name = runners._named(options, output).view_as(GoogleCloudOptions).job_name
        assert runners._named(options, output).view_as(GoogleCloudOptions).job_name == name
        return str(name)

    own = name_of(f"{tmp_path}/out")
    assert name_of(f"{tmp_path}/link") == name_of(f"file://{tmp_path}/x/../out/") == own
    assert name_of(f"{tmp_path}/other") != own
    assert name_of(f"{tmp_path}/out", "--job_name=mine") == "mine"
    flink = ["--runner=FlinkRunner", f"--flink_master={NOBODY}", "--job_name=mine"]
    assert name_of(f"{tmp_path}/out", *flink) == own.replace("eqforge-", "mine-")


def test_a_failed_job_s_exception_and_lost_slots_are_reported(cluster: FakeCluster) -> None:
    options = on(cluster.master)
    cluster.jobs = {"a": [NAME, "FAILED"], "b": ["other", "FAILED"]}
    report = failure_report(options)
    options.view_as(FlinkRunnerOptions).flink_master = "[auto]"  # as Beam does
    assert report() == ("exception of a", None)
    cluster.slots = 1
    assert f"the cluster at {cluster.master} has 1 of 2 slots left" in str(report()[1])
    assert failure_report(on(cluster.master))()[1] is None  # it never had more
    cluster.slots = 0
    assert "has no TaskManager" in str(report()[1])
    assert failure_report(on("[local]"))() == failure_report(PipelineOptions())() == ("", None)
