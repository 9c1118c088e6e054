"""eqforge-beam-boot, called as a runner calls it."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2

from eqforge import boot
from tests.builds import environment
from tests.runners.tiers import BOOT, ROOT, worker_pool


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
    assert "no answer from the runner's provision service at localhost:1" in done.stderr
    assert "Traceback" not in done.stderr


def test_its_words_go_to_the_build_s_log_where_that_can_be_reached(tmp_path: Path) -> None:
    arguments = ("--id=1", "--provision_endpoint=x")
    log = tmp_path / "log"
    variables = {"EQFORGE_FOLDER": str(tmp_path / "none"), "EQFORGE_WORKER_LOG": str(log)}
    log.write_text("before\n")

    assert call(*arguments, **variables).stderr == ""

    before, said = log.read_text().splitlines()
    assert before == "before"
    assert f"is not here: {tmp_path / 'none'}: No such file or directory" in said
    variables["EQFORGE_WORKER_LOG"] = str(tmp_path / "elsewhere" / "log")
    assert "is not here" in call(*arguments, **variables).stderr


def test_other_versions_than_the_driver_s_are_refused() -> None:
    boot.check_versions({"python": sys.version.split()[0], "no-such-package": "1"})
    for package, found in (("python", sys.version.split()[0]), ("pyarrow", "")):
        with pytest.raises(SystemExit, match=rf"{package} is {found}.* and 0 where the build was"):
            boot.check_versions({package: "0"})


def artifact(name: str, role: str = common_urns.artifact_roles.STAGING_TO.urn) -> object:
    payload = beam_runner_api_pb2.ArtifactStagingToRolePayload(staged_name=name)
    return beam_runner_api_pb2.ArtifactInformation(
        role_urn=role, role_payload=payload.SerializeToString()
    )


def test_files_keep_their_names_and_never_leave_their_folder() -> None:
    assert boot.staged_name(artifact("pickled_main_session")) == "pickled_main_session"
    assert boot.staged_name(artifact("../../etc/passwd")) == "passwd"


@pytest.mark.parametrize("name", ["requirements.txt", "workflow.tar.gz", "eqforge-0.1.whl"])
def test_what_would_have_to_be_installed_is_refused(name: str) -> None:
    with pytest.raises(SystemExit, match=rf"brings {name} to be installed; install it on every"):
        boot.staged_name(artifact(name))
    with pytest.raises(SystemExit, match="for a purpose that is not known here: other"):
        boot.staged_name(artifact(name, role="other"))


def test_prism_s_quotes_around_the_worker_s_name_are_taken_off() -> None:
    arguments = boot._parse(["--id='job[1]_env'", "--provision_endpoint=x", "--unknown=1"])
    assert arguments.id == "job[1]_env"
