"""What Dataflow would get, as far as it goes without an account, and its template."""

import json
import re
import runpy
import shlex
import shutil
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.pipeline_context import PipelineContext
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms import environments

from eqforge.cli import main
from eqforge.core.errors import InputError
from eqforge.generators.demo.workspace import Workspace
from eqforge.schemas.tables.datasets import DATASETS
from tests.builds import dataset_bytes
from tests.faults.runs import SETTINGS, make_inputs
from tests.small_builds import COMMANDS, captions, drawings, scenes
from tests.web_server import WebServer

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy" / "dataflow"
IMAGE = "us-docker.pkg.dev/some-project/some/eqforge:1"
JOB = [
    *("--runner=DataflowRunner", "--project=some-project", "--region=us-central1"),
    *("--temp_location=gs://some-bucket/tmp", "--staging_location=gs://some-bucket/staging"),
    f"--sdk_container_image={IMAGE}",
]
DRY = [*JOB, "--dry_run=True"]
MEGABYTE = 1_000_000
# What Beam sends beside a job that the image has everything for; workers install neither.
NOT_INSTALLED = {"pickled_main_session", "submission_environment_dependencies.txt"}
# Google's packages warn of their own Python's end, and of each other.
pytestmark = pytest.mark.filterwarnings("ignore::Warning")
Proto = Any


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Proto]:
    """The jobs that were to be sent, as they come to be."""
    pytest.importorskip("apitools", reason="the extra `dataflow` is not installed")
    from apache_beam.runners.dataflow.dataflow_runner import DataflowRunner

    found: list[Proto] = []
    run = DataflowRunner.run_pipeline

    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = run(self, *args, **kwargs)
        found.append(result.job.proto_pipeline)
        return result

    monkeypatch.setattr(DataflowRunner, "run_pipeline", watched)
    return found


# --- the job of every dataset

RUN = ("eq-ag", "eq-sd", "hard-positives", "vlue")
"""Datasets whose jobs run; they share their steps with the others, whose jobs are only checked."""


def test_every_dataset_is_tried() -> None:
    assert list(COMMANDS) == list(DATASETS)


@pytest.mark.parametrize("dataset", RUN)
def test_the_job_that_the_launcher_would_send_writes_the_same_bytes(
    dataset: str,
    demo_workspace: Workspace,
    tmp_path: Path,
    jobs: list[Proto],
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "out"
    _, *command = COMMANDS[dataset](demo_workspace, tmp_path)
    own = [*command, "--limit", "8", "--output", str(output)]
    assert main(["build", dataset, *own]) == 0
    expected = dataset_bytes(output)

    parameter = f"--arguments={shlex.join([*own, '--', '--dry_run=True'])}"
    assert main(launcher()["command"]([f"--dataset={dataset}", parameter, *JOB])) == 0
    assert f"{output}: the job is valid" in capsys.readouterr().out
    assert dataset_bytes(output) == expected, "a dry run changes nothing"

    (job,) = jobs
    check_job(job)
    shutil.rmtree(output / "data")
    (output / "dataset.json").unlink()
    run_here(job)
    assert dataset_bytes(output) == expected


@pytest.mark.parametrize("dataset", [name for name in COMMANDS if name not in RUN])
def test_the_job_that_the_launcher_would_send_has_all_it_needs(
    dataset: str, demo_workspace: Workspace, tmp_path: Path, jobs: list[Proto]
) -> None:
    _, *command = COMMANDS[dataset](demo_workspace, tmp_path)
    own = [*command, "--limit", "8", "--output", str(tmp_path / "out"), "--", "--dry_run=True"]
    parameters = [f"--dataset={dataset}", f"--arguments={shlex.join(own)}"]
    assert main(launcher()["command"]([*parameters, *JOB])) == 0
    check_job(*jobs)


def launcher() -> dict[str, Any]:
    return runpy.run_path(str(DEPLOY / "main.py"), run_name="launcher")


def check_job(job: Proto) -> None:
    assert job.ByteSize() < 10 * MEGABYTE, "Dataflow takes no larger job"
    for environment in job.components.environments.values():
        assert environment.urn == common_urns.environments.DOCKER.urn
        payload = beam_runner_api_pb2.DockerPayload.FromString(environment.payload)
        assert payload.container_image == IMAGE
        assert {staged(file) for file in environment.dependencies} <= NOT_INSTALLED
    steps = {t.unique_name.partition("/")[0] for t in job.components.transforms.values()}
    assert {"ReadPlan", "WriteDataset"} <= steps


def staged(dependency: Proto) -> str:
    payload = beam_runner_api_pb2.ArtifactStagingToRolePayload
    return payload.FromString(dependency.role_payload).staged_name


def run_here(job: Proto) -> None:
    """Runs a job as it would be sent, but in this process instead of in containers."""
    here = environments.EmbeddedPythonEnvironment.default().to_runner_api(PipelineContext())
    for environment in job.components.environments.values():
        environment.CopyFrom(here)
    FnApiRunner().run_via_runner_api(job, PipelineOptions([])).wait_until_finish()


def test_the_job_reads_videos_and_captions_where_they_lie(
    tmp_path: Path, jobs: list[Proto], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of them has to be in the image; the launcher's copies are gone when workers start."""
    monkeypatch.setenv("EQFORGE_CACHE", str(tmp_path / "cache"))
    inputs, output = make_inputs(tmp_path / "inputs", 3), tmp_path / "out"
    assert main(["build", "eq-video", *inputs.arguments(output)]) == 0
    expected = dataset_bytes(output)
    shutil.rmtree(output)
    with WebServer(tmp_path / "inputs").running() as web:
        named = f"--captions {web.url}/captions.jsonl --videos {web.url}/videos"
        files = "--samples-per-file 1 --images-per-file 1"
        own = f"{named} {shlex.join(SETTINGS)} {files} --output {output} -- --dry_run=True"
        assert main(launcher()["command"](["--dataset=eq-video", f"--arguments={own}", *JOB])) == 0
        assert not [name for name in web.sent if name.endswith(".mp4")]

        (job,) = jobs
        check_job(job)
        run_here(job)
        assert dataset_bytes(output) == expected


# --- machines for heavy steps


def hints(job: Proto) -> dict[str, dict[str, str]]:
    """What each step asks for of machines, by the name of its own composite."""
    found = {}
    for step in job.components.transforms.values():
        asked = job.components.environments[step.environment_id].resource_hints
        if asked and not step.subtransforms:
            names = {urn.rpartition(":")[0].rpartition(":")[2]: v for urn, v in asked.items()}
            found[step.unique_name] = {name: value.decode() for name, value in names.items()}
    return found


def test_drawing_asks_for_a_gpu_and_the_launching_machine_needs_none(
    tmp_path: Path, jobs: list[Proto]
) -> None:
    command = drawings()
    output = ["--output", str(tmp_path / "out"), "--device", "cuda:0"]
    assert main(["build", *command, *output, "--", *DRY, "--gpu_min_ram=20GB"]) == 0

    (job,) = jobs
    ((step, asked),) = hints(job).items()
    assert step.startswith("DiffusePairs/Make")
    assert asked == {
        "accelerator": "type:nvidia-l4;count:1;install-nvidia-driver",
        "min_ram_bytes": "20000000000",
        "max_active_bundles_per_worker": "1",
    }


def test_rendering_asks_for_memory_alone(tmp_path: Path, jobs: list[Proto]) -> None:
    command = scenes()
    assert main(["build", *command, "--output", str(tmp_path / "out"), "--", *DRY]) == 0

    (job,) = jobs
    ((step, asked),) = hints(job).items()
    assert step.startswith("RenderPairs/RenderScenes")
    assert asked == {"min_ram_bytes": "8000000000"}


# --- launching


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (JOB, "cannot access a local folder"),
        ([a for a in DRY if "image" not in a], "--sdk_container_image is missing"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_done(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("apitools", reason="the extra `dataflow` is not installed")
    build = ["build", "retrieval-perturbations", "--captions", captions(tmp_path)]
    with pytest.raises(SystemExit, match="2"):
        main([*build, "--output", str(tmp_path / "out"), "--", *arguments])
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# --- templates


def test_the_template_takes_every_dataset_and_its_command_line() -> None:
    template = json.loads((DEPLOY / "template.json").read_text(encoding="utf-8"))
    parameters = {parameter["name"]: parameter for parameter in template["parameters"]}
    assert list(parameters) == ["dataset", "arguments"]
    assert not set(parameters) & set(PipelineOptions([]).get_all_options())


def test_the_launcher_turns_parameters_into_a_command() -> None:
    own = "--captions '/a b.jsonl' --videos=/videos --overwrite --only x y --output gs://b/out"
    arguments = ["--dataset=eq-video", f"--arguments={own} -- --num_workers 2", "--region=us"]
    assert launcher()["command"](arguments) == [
        *("build", "eq-video", "--captions", "/a b.jsonl", "--videos=/videos", "--overwrite"),
        *("--only", "x", "y", "--output", "gs://b/out"),
        *("--", "--num_workers", "2", "--region=us", "--no_wait_until_finish"),
    ]


@pytest.mark.parametrize(
    ("dataset", "own", "message"),
    [
        ("eq-video", "--only 'x", "--arguments: No closing quotation"),
        ("eq-other", "", "expected one of"),
    ],
)
def test_what_cannot_be_launched_is_refused_in_a_sentence(
    dataset: str, own: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        launcher()["command"]([f"--dataset={dataset}", f"--arguments={own}"])


# --- the image


def dockerfile() -> str:
    return (DEPLOY / "Dockerfile").read_text()


def test_the_image_has_the_versions_of_the_lock_and_of_this_python() -> None:
    pinned = re.search(r"^apache-beam==(\S+)", (ROOT / "requirements/base.lock").read_text(), re.M)
    assert pinned is not None
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert re.findall(r"^FROM (\S+)", dockerfile(), re.M) == [
        f"apache/beam_python{python}_sdk:{pinned[1]}",
        "gcr.io/dataflow-templates-base/"
        f"python{python.replace('.', '')}-template-launcher-base:20230622_RC00",
        f"python:{python}-slim-bookworm",
    ]
    assert pinned[1] == version("apache-beam")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"].startswith(f">={python}")


def test_the_image_copies_what_there_is_and_what_the_build_may_see() -> None:
    copied = [line.split()[1:-1] for line in re.findall(r"^COPY (?!--).*", dockerfile(), re.M)]
    sources = {source for paths in copied for source in paths} - {"COPY"}
    assert all((ROOT / source).exists() for source in sources)
    seen = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert sources == {line[1:] for line in seen if line.startswith("!")}
    links = [link for link in (ROOT / "src" / "eqforge").iterdir() if link.is_symlink()]
    assert {link.name for link in links} <= sources


def test_the_image_installs_locks_alone_and_what_blender_needs() -> None:
    instructions = re.sub(r"\\\n\s*", "", dockerfile())
    for line in re.findall(r"pip install [^&|;\n]*", instructions):
        assert "--require-hashes" in line or line.rstrip().endswith(" .")
        assert "--no-deps" in line
    bootstrap = (ROOT / "scripts" / "bootstrap").read_text()
    libraries = re.search(r"BLENDER_PACKAGES=\((.*)\)", bootstrap)
    assert libraries is not None
    assert libraries[1] in instructions
    assert 'ENTRYPOINT ["/opt/apache/beam/boot"]' in instructions
    assert "FLEX_TEMPLATE_PYTHON_PY_FILE=/template/main.py" in instructions
    assert not re.findall(r":latest\b|^FROM [^:\n]+$", dockerfile(), re.M)
