"""Builds whose inputs lie in an object store, spoken to in its own protocol."""

import os
import signal
import tarfile
from pathlib import Path

import pytest

from eqforge.core.files.disk import cache_folder
from tests.builds import dataset_bytes, finished_work, reasons, wait_for
from tests.builds import start as start_eqforge
from tests.faults.runs import SETTINGS, Inputs, make_inputs
from tests.runners.stores import Store
from tests.runners.test_object_stores import eqforge
from tests.runners.tiers import FLINK_HOME, JAR, need, running_cluster
from tests.web_server import Fault, WebServer

pytestmark = pytest.mark.timeout(900)
VIDEOS = 6


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """Six videos of three captions each, and the same videos in two shards."""
    made = make_inputs(tmp_path_factory.mktemp("inputs"), VIDEOS)
    (made.captions.parent / "shards").mkdir()
    for number, video in enumerate(sorted(made.videos.iterdir())):
        shard = made.captions.parent / "shards" / f"{number % 2}.tar"
        with tarfile.open(shard, "a") as tar:
            tar.add(video, arcname=f"./{video.name}")
    return made


@pytest.fixture(scope="module")
def expected(inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    output = tmp_path_factory.mktemp("local") / "out"
    assert eqforge("build", "eq-video", *inputs.arguments(output)) == (0, "")
    return dataset_bytes(output)


@pytest.fixture(autouse=True)
def stored(store: Store, inputs: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The inputs lie in the store; copies go to a folder of the test's own."""
    (tmp_path / "cache").mkdir()
    for entry in cache_folder().iterdir():
        if entry.name != "copies":  # Flink lies there
            (tmp_path / "cache" / entry.name).symlink_to(entry)
    monkeypatch.setenv("EQFORGE_CACHE", str(tmp_path / "cache"))
    for path in inputs.captions.parent.rglob("*"):
        if path.is_file():
            store.files.put_file(str(path), f"bucket/in/{path.relative_to(inputs.captions.parent)}")


def command(store: Store, output: Path | str, *more: str) -> list[str]:
    root = f"{store.scheme}://bucket/in"
    named = ["--captions", f"{root}/captions.jsonl", "--videos", f"{root}/videos"]
    files = ["--samples-per-file", "1", "--images-per-file", "1"]
    return ["build", "eq-video", *named, *SETTINGS, *files, "--output", str(output), *more]


@pytest.mark.parametrize("videos", ["videos", "shards", "shards/*.tar"])
def test_inputs_in_a_store_give_the_bytes_of_local_ones(
    store: Store, expected: dict[str, bytes], tmp_path: Path, videos: str
) -> None:
    more = ["--videos", f"{store.scheme}://bucket/in/{videos}", "--workers", "2"]

    assert eqforge(*command(store, tmp_path / "out", *more), **store.variables) == (0, "")
    assert dataset_bytes(tmp_path / "out") == expected
    assert os.listdir(tmp_path / "cache" / "copies") == ["lock"]


def test_a_cluster_reads_there(store: Store, expected: dict[str, bytes], tmp_path: Path) -> None:
    need("flink-cluster", JAR, FLINK_HOME)
    with running_cluster(tmp_path / "cluster", **store.variables) as cluster:
        engine = ["--", *cluster.arguments]
        assert eqforge(*command(store, store.output, *engine), **store.variables) == (0, "")

    assert store.dataset_bytes() == expected
    assert os.listdir(tmp_path / "cache" / "copies") == ["lock"]


def test_a_store_that_fails_now_and_then_changes_nothing(
    store: Store, expected: dict[str, bytes], tmp_path: Path
) -> None:
    """Answers of 503, cut off, too long or slow; S3's and Google's checksums tell other bytes."""
    with WebServer(tmp_path, store.url).running() as web:
        faults: list[Fault] = ["503", "cut", "long", "slow", "other"]
        web.faults |= {f"{number:02}.mp4": [fault] for number, fault in enumerate(faults)}
        found = eqforge(*command(store, tmp_path / "out"), **store.behind(web.url))
        assert found == (0, "")
        assert not any(web.faults.values()), "every fault happened"

    assert dataset_bytes(tmp_path / "out") == expected


def test_a_killed_run_goes_on_and_believes_no_object_that_changed(
    store: Store, inputs: Inputs, expected: dict[str, bytes], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    with WebServer(tmp_path, store.url).running() as web:
        names = sorted(path.name for path in inputs.videos.iterdir())
        web.faults |= {name: ["slow"] for name in names[2:]}
        run = start_eqforge(*command(store, output, "--workers", "2"), **store.behind(web.url))
        wait_for(lambda: len(finished_work(output, "extract")) >= 2)
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
    before = finished_work(output, "extract")
    with store.files.open(f"bucket/in/videos/{names[0]}", "wb") as other:
        other.write((inputs.videos / names[1]).read_bytes())

    assert eqforge(*command(store, output), **store.variables) == (0, "")
    assert dataset_bytes(output) != expected
    store.files.put_file(str(inputs.videos / names[0]), f"bucket/in/videos/{names[0]}")
    assert eqforge(*command(store, output, "--overwrite"), **store.variables) == (0, "")

    assert dataset_bytes(output) == expected
    after = finished_work(output, "extract")
    assert {name: after[name] for name in before} == before
    assert os.listdir(tmp_path / "cache" / "copies") == ["lock"]


def test_a_file_larger_than_the_room_is_a_reject(
    store: Store, inputs: Inputs, tmp_path: Path
) -> None:
    sizes = sorted(path.stat().st_size for path in inputs.videos.iterdir())
    more = ["--cache-gb", f"{(sizes[-1] - 1) / 1e9:.9f}"]
    assert eqforge(*command(store, tmp_path / "out", *more), **store.variables) == (0, "")
    assert reasons(tmp_path / "out", "frames") == {"too_large_to_copy": 3}


def test_a_bucket_that_is_not_there_is_an_error_before_any_work(
    store: Store, tmp_path: Path
) -> None:
    for option in ("--videos", "--captions"):
        more = [option, f"{store.scheme}://no-such-bucket/in"]
        status, said = eqforge(*command(store, tmp_path / "out", *more), **store.variables)
        assert status == 2
        assert f"{store.scheme}://no-such-bucket/in: " in said
        assert "Traceback" not in said
    assert not (tmp_path / "out").exists()
