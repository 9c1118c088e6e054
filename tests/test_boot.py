"""eqforge-beam-boot, called as a runner calls it."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import (
    beam_artifact_api_pb2,
    beam_artifact_api_pb2_grpc,
    beam_provision_api_pb2,
    beam_provision_api_pb2_grpc,
    beam_runner_api_pb2,
)

from eqforge import boot
from tests.builds import environment, wait_for
from tests.runners.tiers import BOOT, ROOT, command_of, worker_pool


def call(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(BOOT), *arguments],
        env=environment(**variables), capture_output=True, text=True, check=False,
    )  # fmt: skip


def talk(number: int) -> tuple[int, str, str]:
    """Prints more than a pipe holds."""
    print("x" * 100_000)
    return number, os.getcwd(), str(os.getpid())


def test_workers_run_beside_the_driver_however_much_they_print(tmp_path: Path) -> None:
    """Beam's pool never reads what its workers print: 64 KiB would block them."""
    with worker_pool(tmp_path) as address:
        options = PipelineOptions(
            [
                *("--runner=PortableRunner", "--job_endpoint=embed", "--job_server_timeout=99999"),
                *("--environment_type=EXTERNAL", f"--environment_config={address}"),
                f"--job_name=boot-{threading.get_ident()}",
            ]
        )
        out = tmp_path / "out"
        with beam.Pipeline(options=options) as root:
            _ = (
                root
                | beam.Create(range(3))
                | beam.Map(talk)
                | beam.Map(json.dumps)
                | beam.io.WriteToText(str(out))
            )
    (written,) = tmp_path.glob("out-*")
    lines = [json.loads(line) for line in written.read_text().splitlines()]
    assert sorted(number for number, *_ in lines) == [0, 1, 2]
    assert {folder for _, folder, _ in lines} == {str(ROOT)}
    assert str(os.getpid()) not in {pid for *_, pid in lines}


def test_a_runner_that_does_not_answer_is_named(tmp_path: Path) -> None:
    done = call("--id=1", "--provision_endpoint=localhost:1")
    assert done.returncode == 1
    assert done.stderr.startswith("eqforge-beam-boot on ")
    assert "provision service at localhost:1 did not answer" in done.stderr
    assert "Traceback" not in done.stderr


def test_its_words_go_to_the_build_s_log_where_that_can_be_reached(tmp_path: Path) -> None:
    arguments = ("--id=1", "--provision_endpoint=x")
    log = tmp_path / "log"
    variables = {"EQFORGE_FOLDER": str(tmp_path / "none"), "EQFORGE_WORKER_LOG": str(log)}
    log.write_text("before\n")

    assert call(*arguments, **variables).stderr == ""

    before, said = log.read_text().splitlines()
    assert before == "before"
    assert f"this host cannot open the folder {tmp_path / 'none'}: No such file" in said
    variables["EQFORGE_WORKER_LOG"] = str(tmp_path / "elsewhere" / "log")
    assert "this host cannot open" in call(*arguments, **variables).stderr


def test_other_versions_than_the_driver_s_are_refused() -> None:
    boot.check_versions({"python": sys.version.split()[0], "no-such-package": "1"})
    for package, found in (("python", sys.version.split()[0]), ("pyarrow", "")):
        with pytest.raises(SystemExit, match=rf"has {package} {found}.* started with 0\."):
            boot.check_versions({package: "0"})


def artifact(name: str, role: str = common_urns.artifact_roles.STAGING_TO.urn) -> object:
    payload = beam_runner_api_pb2.ArtifactStagingToRolePayload(staged_name=name)
    return beam_runner_api_pb2.ArtifactInformation(
        role_urn=role, role_payload=payload.SerializeToString()
    )


class Runner(
    beam_provision_api_pb2_grpc.ProvisionServiceServicer,
    beam_artifact_api_pb2_grpc.ArtifactRetrievalServiceServicer,
):
    """A runner whose job brings a file, and which has no work for anyone."""

    def __init__(self) -> None:
        self.server = beam_provision_api_pb2_grpc.grpc.server(ThreadPoolExecutor(4))
        self.address = f"localhost:{self.server.add_insecure_port('localhost:0')}"
        beam_provision_api_pb2_grpc.add_ProvisionServiceServicer_to_server(self, self.server)
        beam_artifact_api_pb2_grpc.add_ArtifactRetrievalServiceServicer_to_server(self, self.server)
        self.is_stuck, self.over = False, threading.Event()

    def GetProvisionInfo(self, request: Any, context: Any) -> Any:
        info = beam_provision_api_pb2.ProvisionInfo(dependencies=[artifact("data.bin")])
        for service in (info.artifact_endpoint, info.control_endpoint, info.logging_endpoint):
            service.url = self.address
        return beam_provision_api_pb2.GetProvisionInfoResponse(info=info)

    def ResolveArtifacts(self, request: Any, context: Any) -> Any:
        return beam_artifact_api_pb2.ResolveArtifactsResponse(replacements=request.artifacts)

    def GetArtifact(self, request: Any, context: Any) -> Iterator[Any]:
        yield beam_artifact_api_pb2.GetArtifactResponse(data=b"some ")
        if self.is_stuck:
            self.over.wait(60)
        yield beam_artifact_api_pb2.GetArtifactResponse(data=b"bytes")


@pytest.fixture
def runner() -> Iterator[Runner]:
    runner = Runner()
    runner.server.start()
    yield runner
    runner.over.set()
    runner.server.stop(None)


def test_files_of_a_job_are_there_for_as_long_as_the_worker_lives(
    runner: Runner, tmp_path: Path
) -> None:
    arguments = ("--id=1", f"--provision_endpoint={runner.address}")
    with subprocess.Popen(
        [str(BOOT), *arguments], env=environment(TMPDIR=str(tmp_path)), stderr=subprocess.DEVNULL
    ) as worker:
        wait_for(lambda: "sdk_worker_main" in command_of(worker.pid))
        (file,) = tmp_path.glob("eqforge-beam-*/staged/*")
        assert (file.name, file.read_bytes()) == ("data.bin", b"some bytes")
        worker.kill()
    wait_for(lambda: not list(tmp_path.glob("eqforge-beam-*")))


def test_a_file_that_does_not_come_is_not_waited_for_without_end(
    runner: Runner, tmp_path: Path
) -> None:
    runner.is_stuck = True
    script = "from eqforge import boot; boot.FILE_TIMEOUT_S = 1; boot.main()"
    arguments = ("--id=1", f"--provision_endpoint={runner.address}")
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment(TMPDIR=str(tmp_path)), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"could not fetch the job's files from {runner.address}: " in done.stderr
    assert "Deadline Exceeded" in done.stderr
    wait_for(lambda: not list(tmp_path.glob("eqforge-beam-*")))


def test_files_keep_their_names_and_never_leave_their_folder() -> None:
    assert boot.staged_name(artifact("pickled_main_session")) == "pickled_main_session"
    assert boot.staged_name(artifact("../../etc/passwd")) == "passwd"


@pytest.mark.parametrize("name", ["requirements.txt", "workflow.tar.gz", "eqforge-0.1.whl"])
def test_what_would_have_to_be_installed_is_refused(name: str) -> None:
    with pytest.raises(SystemExit, match=rf"needs the package {name}; install it on every host"):
        boot.staged_name(artifact(name))
    with pytest.raises(SystemExit, match="with an unknown role: other"):
        boot.staged_name(artifact(name, role="other"))


def test_prism_s_quotes_around_the_worker_s_name_are_taken_off() -> None:
    arguments = boot._parse(["--id='job[1]_env'", "--provision_endpoint=x", "--unknown=1"])
    assert arguments.id == "job[1]_env"
