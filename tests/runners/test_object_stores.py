"""Builds whose output is no folder but an object store, spoken to in its own protocol.

See `stores` for the programs that answer as the stores do.
"""

import os
import signal
from pathlib import Path

import pytest

from tests.builds import dataset_bytes, start, wait_for
from tests.faults.runs import Inputs, make_inputs
from tests.runners.stores import Store
from tests.runners.tiers import FLINK_HOME, JAR, free_ports, need, running_cluster

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """Twelve videos of three captions each."""
    return make_inputs(tmp_path_factory.mktemp("inputs"), 12)


@pytest.fixture(scope="module")
def expected(inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The dataset as a folder of this machine holds it."""
    output = tmp_path_factory.mktemp("local") / "out"
    assert eqforge(*build(inputs, str(output))) == (0, "")
    return dataset_bytes(output)


def build(inputs: Inputs, output: str) -> list[str]:
    arguments = inputs.arguments(Path("unused"))
    return ["build", "eq-video", *arguments[: arguments.index("--output")], "--output", output]


def eqforge(*arguments: str, **variables: str) -> tuple[int, str]:
    """Runs eqforge to its end; returns its exit status, and its message if it failed."""
    run = start(*arguments, **variables)
    _, said = run.communicate()
    return run.returncode, said if run.returncode else ""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_dataset_in_a_store_has_the_bytes_of_one_in_a_folder(
    store: Store, inputs: Inputs, expected: dict[str, bytes], workers: str
) -> None:
    command = [*build(inputs, store.output), "--workers", workers]

    assert eqforge(*command, **store.variables) == (0, "")
    assert store.dataset_bytes() == expected
    assert eqforge("verify", store.output, **store.variables) == (0, "")


def test_a_cluster_writes_there(
    store: Store, inputs: Inputs, expected: dict[str, bytes], tmp_path: Path
) -> None:
    need("flink-cluster", JAR, FLINK_HOME)
    with running_cluster(tmp_path / "cluster", **store.variables) as cluster:
        engine = cluster.arguments
        command = [*build(inputs, store.output), "--", *engine]
        assert eqforge(*command, **store.variables) == (0, "")

    assert store.dataset_bytes() == expected


def test_a_killed_run_is_waited_for_and_loses_nothing(
    store: Store, inputs: Inputs, expected: dict[str, bytes]
) -> None:
    command = build(inputs, store.output)
    run = start(*command, **store.variables)
    wait_for(lambda: len(store.written("_work/done")) >= 4)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    before = store.written("_work/done")

    next_run = start(*command, **store.variables)
    _, said = next_run.communicate()

    assert next_run.returncode == 0
    assert f"process {run.pid}" in said
    assert "was writing there; checking for up to 60 s" in said
    assert store.dataset_bytes() == expected
    after = store.written("_work/done")
    assert {path: after[path] for path in before} == before, "what was finished was done again"


def test_a_finished_dataset_is_left_alone_refused_or_replaced(
    store: Store, inputs: Inputs, expected: dict[str, bytes]
) -> None:
    """The store renames nothing: the manifest is replaced when all else is there."""
    command = build(inputs, store.output)
    assert eqforge(*command, "--limit", "5", **store.variables) == (0, "")
    few = store.dataset_bytes()
    times = store.written("")

    assert eqforge(*command, "--limit", "5", **store.variables) == (0, "")
    assert store.written("") == times
    status, said = eqforge(*command, **store.variables)
    assert (status, "--limit was 5 and is now none" in said) == (2, True)
    assert store.dataset_bytes() == few
    assert eqforge(*command, "--overwrite", **store.variables) == (0, "")
    assert store.dataset_bytes() == expected


def test_a_bucket_that_is_not_there_is_one_clear_error(store: Store, inputs: Inputs) -> None:
    status, said = eqforge(
        *build(inputs, f"{store.scheme}://no-such-bucket/out"), **store.variables
    )

    assert status in (1, 2)
    assert "no-such-bucket" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("s3://bucket/out", "s3://bucket/out/dataset.json: cannot be reached: Could not connect"),
        ("hdfs://nowhere/out", "hdfs://nowhere/out"),
    ],
)
def test_a_store_that_does_not_answer_is_one_clear_error(
    inputs: Inputs, output: str, said: str
) -> None:
    nobody = f"http://localhost:{free_ports(1)[0]}"
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}

    status, found = eqforge(*build(inputs, output), AWS_ENDPOINT_URL=nobody, **keys)

    assert status == 2
    assert said in found
    assert "Traceback" not in found
