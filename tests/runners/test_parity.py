"""Every runner writes the same dataset: the same ids, the same bytes, the same books.

The one to compare with is made by the local runner in one process. Where EQFORGE_RUNNERS asks for a
tier, as `make runners` does, a tier that cannot start fails; else it is skipped.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eqforge.generators.demo.workspace import Workspace
from tests.builds import books, dataset_bytes, ids, start
from tests.runners.tiers import (
    EMBEDDED,
    FLINK_HOME,
    JAR,
    ON_PRISM,
    PRISM,
    need,
    need_packages,
    worker_pool,
)
from tests.small_builds import COMMANDS
from tests.tiny_models import save_blip, save_clip

LOCAL = "in-memory"
TIMEOUT_S = 900

Request = pytest.FixtureRequest


# --- the tiers: each gives the arguments that a user would


@contextlib.contextmanager
def processes(request: Request, folder: Path) -> Iterator[list[str]]:
    yield ["--workers", "2"]


@contextlib.contextmanager
def portable(request: Request, folder: Path) -> Iterator[list[str]]:
    """Over gRPC, with workers in processes of their own."""
    with worker_pool(folder) as address:
        environment = ["--environment_type=EXTERNAL", f"--environment_config={address}"]
        yield ["--", "--runner=PortableRunner", "--job_endpoint=embed", *environment]


@contextlib.contextmanager
def prism(request: Request, folder: Path) -> Iterator[list[str]]:
    need("prism", PRISM)
    yield ["--", *ON_PRISM]


@contextlib.contextmanager
def flink_embedded(request: Request, folder: Path) -> Iterator[list[str]]:
    need("flink-embedded", JAR, FLINK_HOME)
    two = ["--parallelism=2", "--sdk_worker_parallelism=2"]
    yield ["--", *EMBEDDED, *two]


@contextlib.contextmanager
def flink_cluster(request: Request, folder: Path) -> Iterator[list[str]]:
    cluster = request.getfixturevalue("flink_cluster")
    yield ["--", *cluster.arguments]


TIERS: dict[str, Callable[[Request, Path], contextlib.AbstractContextManager[list[str]]]] = {
    "processes": processes,
    "portable": portable,
    "prism": prism,
    "flink-embedded": flink_embedded,
    "flink-cluster": flink_cluster,
}


# --- the datasets


def judged(workspace: Workspace, folder: Path) -> list[str]:
    need_packages("models", ["torch", "transformers"])
    blip, clip = save_blip(folder / "blip", spread=0.15), save_clip(folder / "clip")
    limits = ["--oracle-min", "None", "--oracle-max", "0.515"]
    oracle = ["--oracle", f"blip-itm:{blip}+clip:{clip}", *limits]
    return [*COMMANDS["eq-video"](workspace, folder), "--mode", "paper", *oracle]


DATASETS = COMMANDS | {"oracle": judged}


def build(command: list[str], output: Path, arguments: list[str]) -> Path:
    with start("build", *command, "--output", output, *arguments) as run:
        _, err = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 0, err
    assert "Traceback" not in err
    return output


@pytest.fixture(scope="module", params=DATASETS)
def reference(
    request: Request, demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[str], Path]:
    folder = tmp_path_factory.mktemp(str(request.param))
    command = DATASETS[request.param](demo_workspace, folder)
    return command, build(command, folder / LOCAL, [])


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.timeout(TIMEOUT_S + 300)
def test_every_runner_writes_the_same_dataset(
    reference: tuple[list[str], Path], tier: str, request: Request, tmp_path: Path
) -> None:
    command, expected = reference
    with TIERS[tier](request, tmp_path) as arguments:
        output = build(command, tmp_path / "out", arguments)

    assert ids(output) == ids(expected) != []
    assert books(output) == books(expected)
    assert dataset_bytes(output) == dataset_bytes(expected)
