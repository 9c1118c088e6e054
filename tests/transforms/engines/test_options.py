"""What a build adds to Beam's arguments for an engine beyond this process."""

import http.server
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import (
    DebugOptions,
    FlinkRunnerOptions,
    JobServerOptions,
    PipelineOptions,
    PortableOptions,
)

from eqforge.core.errors import InputError
from eqforge.core.ranges import usable_cores
from eqforge.transforms.engines import flink
from eqforge.transforms.engines.options import with_defaults
from eqforge.transforms.engines.placement import BOOT, worker_process


def options(runner: str, *beam_args: str) -> PipelineOptions:
    return PipelineOptions(with_defaults(runner, beam_args))


def test_a_build_on_flink_has_workers_jar_options_of_java_and_all_cores() -> None:
    found = options("FlinkRunner")

    portable = found.view_as(PortableOptions)
    assert portable.environment_type == "PROCESS"
    process = json.loads(portable.environment_config)
    assert process["command"] == str(Path(sys.executable).with_name(BOOT))
    assert process["env"]["EQFORGE_FOLDER"] == os.getcwd()
    assert json.loads(process["env"]["EQFORGE_VERSIONS"])["python"] == sys.version.split()[0]
    java = found.view_as(JobServerOptions).job_server_jvm_properties
    assert "-Xmx1g" in java
    assert "--add-opens=java.base/java.util=ALL-UNNAMED" in java
    cores = usable_cores()
    assert found.view_as(FlinkRunnerOptions).parallelism == cores
    assert portable.sdk_worker_parallelism == str(cores)
    experiments = found.view_as(DebugOptions).experiments
    assert experiments == ["disable_logging_submission_environment"]


def test_what_the_user_says_stays_as_it_is() -> None:
    said = {
        "parallelism": "3",
        "sdk_worker_parallelism": "5",
        "environment_cache_millis": "7",
        "job_server_timeout": "9",
        "environment_type": "LOOPBACK",
    }
    given = [f"--{name}={value}" for name, value in said.items()]
    java = "--job_server_jvm_properties=-Xmx3g"

    found = options("FlinkRunner", *given, java, "--experiments=mine")

    values = found.get_all_options()
    assert {name: str(values[name]) for name in said} == said
    assert values["environment_config"] is None
    assert values["job_server_jvm_properties"][-1] == "-Xmx3g"  # Java takes the last one
    assert "mine" in values["experiments"]


@pytest.mark.parametrize("args", [[], ["--environment_config", '{"command": "/other"}']])
def test_workers_of_the_user_s_own_are_left_alone(args: Sequence[str]) -> None:
    found = options("PortableRunner", "--environment_type=PROCESS", *args)
    config = json.loads(found.view_as(PortableOptions).environment_config)
    assert config["command"].endswith("/other" if args else BOOT)


@pytest.mark.parametrize("runner", ["PortableRunner", "FlinkRunner"])
@pytest.mark.parametrize(
    "kind",
    [
        ["--environment_type=PROCESS"],
        ["--environment_type", "PROCESS"],
        ["--environment_type=beam:env:process:v1"],
    ],
)
def test_worker_processes_are_known_however_they_are_asked_for(
    runner: str, kind: Sequence[str]
) -> None:
    portable = options(runner, *kind).view_as(PortableOptions)
    assert json.loads(portable.environment_config)["command"].endswith(BOOT)

    command = ["--environment_options=process_command=/other"]
    portable = options(runner, *kind, *command).view_as(PortableOptions)
    assert portable.environment_config is None
    word = options(runner, "--environment_type=DOCKER", "--job_name", "PROCESS")
    assert word.view_as(PortableOptions).environment_config is None


def test_runs_on_job_servers_are_not_cut_off_after_five_minutes() -> None:
    found = options("PortableRunner", "--job_endpoint=embed").view_as(PortableOptions)
    assert found.job_server_timeout > 30 * 24 * 3600


@pytest.mark.parametrize("runner", ["FnApiRunner", "SparkRunner"])
def test_other_runners_get_nothing(runner: str) -> None:
    assert with_defaults(runner, ["--a=1"]) == ["--a=1"]


def test_variables_of_eqforge_reach_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQFORGE_CACHE", "/some/cache")
    assert json.loads(worker_process())["env"]["EQFORGE_CACHE"] == "/some/cache"


# --- a cluster, of which only what it answers is there: tests/runners has real ones


@pytest.fixture
def answers() -> dict[str, object]:
    return {"/v1/overview": {"flink-version": "1.19.3", "taskmanagers": 2, "slots-total": 6}}


@pytest.fixture
def master(answers: dict[str, object]) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answers.get(self.path)).encode()
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with http.server.ThreadingHTTPServer(("localhost", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"localhost:{server.server_port}"
        server.shutdown()


def test_a_job_takes_every_slot_of_a_cluster(master: str) -> None:
    found = options("FlinkRunner", "--flink_master", master)
    assert found.view_as(FlinkRunnerOptions).parallelism == 6
    assert found.view_as(PortableOptions).sdk_worker_parallelism == "3"
    assert found.view_as(FlinkRunnerOptions).flink_submit_uber_jar


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"flink-version": "1.19.3", "taskmanagers": 0, "slots-total": 0}, "has no TaskManager"),
        ({"something": "else"}, "no Flink cluster answers there"),
        (None, "no Flink cluster answers there"),
    ],
)
def test_what_is_no_working_cluster_is_refused(
    master: str, answers: dict[str, object], body: object, message: str
) -> None:
    answers["/v1/overview"] = body
    with pytest.raises(InputError, match=message):
        flink.overview(master)


@pytest.mark.parametrize("where", ["host", "ftp://host:1", "host:1/path", "host:1?x", "a@host:1"])
def test_a_cluster_is_named_by_host_and_port(where: str) -> None:
    with pytest.raises(InputError, match="expected a host and a port, such as HOST:8081"):
        flink.overview(where)


def test_no_cluster_at_all_is_refused_with_the_command_that_starts_one() -> None:
    with pytest.raises(InputError, match=r"Connection refused.*`deploy/flink/cluster up`"):
        flink.overview("localhost:1")
