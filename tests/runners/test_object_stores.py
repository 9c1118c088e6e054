"""Builds whose output is no folder but an object store, spoken to in its own protocol.

The stores are programs in Go that keep everything in memory: fake-gcs-server answers as Google
Cloud Storage does, gofakes3 as S3.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
import pytest

from eqforge.schemas.io.cache import cache_folder
from eqforge.transforms.engines.install import installing, run_tool
from tests.builds import dataset_bytes, start, wait_for
from tests.faults.runs import Inputs, make_inputs
from tests.runners.tiers import check_flink, free_ports, need, running_cluster, wait_for_port

pytestmark = pytest.mark.timeout(900)

SERVERS = {
    "gs": "github.com/fsouza/fake-gcs-server@v1.56.1",
    "s3": "github.com/johannesboyne/gofakes3/cmd/gofakes3@v1.2.0",
}


@dataclass(frozen=True)
class Store:
    """A store that runs: its scheme, what a user's environment says of it, and its files."""

    scheme: str
    variables: dict[str, str]
    files: Any

    @property
    def output(self) -> str:
        return f"{self.scheme}://bucket/out"

    def dataset_bytes(self) -> dict[str, bytes]:
        """Every file of a finished dataset, by its name in the output."""
        self.files.invalidate_cache()
        names = (path.removeprefix("bucket/out/") for path in self.files.find("bucket/out"))
        finished = (name for name in names if not name.startswith("_work/"))
        return {name: self.files.cat_file(f"bucket/out/{name}") for name in finished}

    def written(self, folder: str) -> dict[str, Any]:
        """When each file of a folder was written, by its name."""
        self.files.invalidate_cache()
        found = self.files.find(f"bucket/out/{folder}", detail=True)
        time = {"gs": "updated", "s3": "LastModified"}[self.scheme]
        return {path: str(info[time]) for path, info in found.items() if info["type"] == "file"}


def server(scheme: str) -> Path:
    """Returns the program of a store, built by Go the first time."""
    folder = cache_folder() / "tests" / SERVERS[scheme].rpartition("/")[2]
    if not folder.is_dir():
        with installing(folder) as new:
            run_tool("go", "install", SERVERS[scheme], folder=new, needs="Go", GOBIN=str(new))
    return next(folder.iterdir())


def open_store(scheme: str, url: str) -> Store:
    """Returns a store that answers at an address, with an empty bucket."""
    if scheme == "gs":
        variables = {"STORAGE_EMULATOR_HOST": url, "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
        files = fsspec.filesystem("gs", endpoint_url=url, token="anon", project="test")
    else:
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        # gofakes3 gives the checksum of the whole object for a part of it too.
        checks = {"AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required"}
        region = {"AWS_DEFAULT_REGION": "us-east-1"}
        variables = {"AWS_ENDPOINT_URL": url, **region, **keys, **checks}
        files = fsspec.filesystem("s3", key="key", secret="secret", endpoint_url=url)
    files.mkdir("bucket")
    return Store(scheme, variables, files)


@pytest.fixture(params=["gs", "s3"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """An object store of its own."""
    scheme: str = request.param
    need("object-stores", lambda: server(scheme))
    port = free_ports(1)[0]
    address = f"localhost:{port}"
    arguments = {
        "gs": ["-scheme", "http", "-port", str(port), "-external-url", f"http://{address}"],
        "s3": ["-host", address],
    }
    command = [str(server(scheme)), *arguments[scheme], "-backend", "memory"]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    try:
        wait_for_port(port)
        yield open_store(scheme, f"http://{address}")
    finally:
        running.kill()
        running.wait()


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
    """The arguments of a build."""
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
    need("flink-cluster", check_flink)
    with running_cluster(tmp_path / "cluster", **store.variables) as cluster:
        engine = ["--runner=FlinkRunner", f"--flink_master={cluster.master}"]
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
    assert "was writing there; waiting up to 60 s" in said
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
    assert (status, "--limit 5 there, None here" in said) == (2, True)
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
