"""A step's failure on another engine is one sentence that says where to read more."""

import logging
import os
import zipfile
from pathlib import Path

import apache_beam as beam
import pytest

from eqforge.core.errors import BuildError, InputError
from eqforge.transforms.engines.flink_parts import BEAM_JAVA, job_server_folder
from eqforge.transforms.engines.run import _LOST_PROCESS, pipeline_options, run
from tests.runners.tiers import Cluster, check_flink, check_prism, need

pytestmark = pytest.mark.timeout(900)


def fail(kind: str) -> str:
    if kind == "own":
        raise BuildError("two samples: [a, b]")
    if kind == "other":
        raise ZeroDivisionError("by zero")
    return kind


def run_step(kind: str, log: Path, *beam_args: str) -> None:
    run(
        lambda root: root | beam.Create([kind]) | "Fail" >> beam.Map(fail),
        pipeline_options(beam_args, workers=1),
        str(log),
        str(log.parent),
    )


@pytest.fixture(params=["prism", "flink-cluster"])
def arguments(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "prism":
        need("prism", check_prism)
        return ["--runner=PrismRunner"]
    cluster: Cluster = request.getfixturevalue("flink_cluster")
    return ["--runner=FlinkRunner", f"--flink_master={cluster.master}"]


def test_eqforge_s_own_error_keeps_its_kind_and_its_words(
    arguments: list[str], tmp_path: Path
) -> None:
    with pytest.raises(BuildError, match=r"^two samples: \[a, b\]$"):
        run_step("own", tmp_path / "log", *arguments)


def test_any_other_error_is_one_sentence_and_its_trace_is_in_the_log(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers = list(logging.getLogger().handlers)

    with pytest.raises(BuildError) as raised:
        run_step("other", tmp_path / "log", *arguments)

    message = str(raised.value)
    assert message.startswith("the run failed: ")
    assert "by zero" in message
    assert message.endswith(f"(more in {tmp_path / 'log'})")
    assert "\n" not in message
    assert "in fail" in (tmp_path / "log").read_text(errors="replace")
    assert "Traceback" not in capsys.readouterr().err
    assert logging.getLogger().handlers == handlers


def test_workers_with_other_versions_than_the_driver_s_do_not_start(
    flink_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a host where another release of a package is installed."""
    monkeypatch.setattr(
        "eqforge.transforms.engines.defaults._versions", lambda: {"pillow": "0.0.1"}
    )
    arguments = ["--runner=FlinkRunner", f"--flink_master={flink_cluster.master}"]

    with pytest.raises(BuildError, match=r"eqforge-beam-boot on .+: pillow is .+ and 0\.0\.1 wher"):
        run_step("nothing", tmp_path / "log", *arguments)


def test_the_job_server_says_of_a_worker_that_did_not_start_what_the_run_looks_for() -> None:
    need("flink-embedded", check_flink)
    jar = job_server_folder() / "lib" / f"beam-runners-java-fn-execution-{BEAM_JAVA}.jar"
    name = "org/apache/beam/runners/fnexecution/environment/ProcessManager$RunningProcess.class"
    with zipfile.ZipFile(jar) as archive:
        said = archive.read(name)
    assert _LOST_PROCESS.encode() in said, (
        f"Beam {BEAM_JAVA} in Java has other words for it, and transforms/engines/run.py leans on "
        f"{_LOST_PROCESS!r}"
    )


@pytest.mark.parametrize("wrong", ["--paralelism=3", "--paralelism"])
def test_an_option_that_neither_beam_nor_flink_knows_is_refused(tmp_path: Path, wrong: str) -> None:
    need("flink-embedded", check_flink)
    with pytest.raises(InputError, match="--paralelism: no option of Beam or of its Flink runner"):
        run_step("nothing", tmp_path / "log", "--runner=FlinkRunner", wrong)


def test_a_job_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    need("flink-embedded", check_flink)
    with pytest.raises(BuildError, match=r"the job server ended with exit status .+ last words"):
        run_step("nothing", tmp_path / "log", "--runner=FlinkRunner",
                 "--job_server_jvm_properties=-Xmx1")  # fmt: skip
    assert "heap" in (tmp_path / "log").read_text()


def test_the_job_server_s_port_and_processes_are_gone_after_a_run(tmp_path: Path) -> None:
    need("prism", check_prism)
    run_step("nothing", tmp_path / "log", "--runner=PrismRunner")
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    commands = [Path(f"/proc/{child}/cmdline").read_text() for child in children]
    assert not [command for command in commands if "prism" in command]
