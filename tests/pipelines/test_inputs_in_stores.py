"""Datasets of inputs in stores and in shards have the bytes of those of local inputs."""

import os
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import eqforge
from eqforge.cli import main
from eqforge.core.files import objects
from eqforge.core.files.objects import fetch_inputs
from eqforge.core.urls import copied_urls, copy_of
from eqforge.generators.demo.workspace import Workspace
from tests.builds import (
    books,
    dataset_bytes,
    finished_work,
    processes,
    reasons,
    rejected,
    start,
    wait_for,
)
from tests.faults.runs import SETTINGS, Inputs, make_inputs
from tests.small_builds import COMMANDS
from tests.web_server import WebServer

VIDEOS = 6


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of copies; clients in this process do not wait before they try again."""
    monkeypatch.setenv("EQFORGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(objects, "WAITS_S", (0.0, 0.0, 0.0))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """Six videos of three captions each, which `web` serves beside their captions."""
    return make_inputs(tmp_path_factory.mktemp("inputs"), VIDEOS)


@pytest.fixture(scope="module")
def expected(inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The dataset of local inputs."""
    output = tmp_path_factory.mktemp("local") / "out"
    assert main(["build", "eq-video", *inputs.arguments(output)]) == 0
    return dataset_bytes(output)


@pytest.fixture
def web(inputs: Inputs) -> Iterator[WebServer]:
    with WebServer(inputs.captions.parent).running() as server:
        yield server


def command(root: str, output: Path, *more: str) -> list[str]:
    """The command line of a build from a web server, or from a store that has the same files."""
    named = ["--captions", f"{root}/captions.jsonl", "--videos", f"{root}/videos"]
    files = ["--samples-per-file", "1", "--images-per-file", "1"]
    return ["build", "eq-video", *named, *SETTINGS, *files, "--output", str(output), *more]


def copies(cache: Path) -> list[str]:
    return [name for name in os.listdir(cache / "copies") if name != "lock"]


def leave(argv: list[str]) -> object:
    with pytest.raises(SystemExit) as left:
        main(argv)
    return left.value.code


def test_from_a_web_server_each_file_comes_once(
    web: WebServer, expected: dict[str, bytes], tmp_path: Path, cache: Path
) -> None:
    output = tmp_path / "out"
    assert main(command(web.url, output, "--workers", "2")) == 0

    assert dataset_bytes(output) == expected
    sizes = {
        str(path.relative_to(web.folder)): path.stat().st_size
        for path in [web.folder / "captions.jsonl", *(web.folder / "videos").iterdir()]
    }
    assert +web.sent == sizes
    assert copies(cache) == []


def test_from_a_store_and_from_shards(
    inputs: Inputs, expected: dict[str, bytes], tmp_path: Path
) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(f"{inputs.captions.parent}/", "/inputs-in-stores/", recursive=True)
    (tmp_path / "shards").mkdir()
    for number, video in enumerate(sorted(inputs.videos.iterdir())):
        with tarfile.open(tmp_path / "shards" / f"{number % 2}.tar", "a") as tar:
            tar.add(video, arcname=f"./{video.name}")
    memory.put(f"{tmp_path}/shards", "/inputs-in-stores/shards", recursive=True)

    root = "memory://inputs-in-stores"
    assert main(command(root, tmp_path / "store")) == 0
    assert dataset_bytes(tmp_path / "store") == expected
    for number, videos in enumerate((f"{tmp_path}/shards", f"{root}/shards/*.tar")):
        output = tmp_path / str(number)
        assert main(command(root, output, "--videos", videos)) == 0
        assert dataset_bytes(output) == expected


@pytest.mark.parametrize("dataset", ["vlue", "simat"])
def test_images_from_anywhere_give_the_bytes_of_local_ones(
    dataset: str, demo_workspace: Workspace, tmp_path: Path
) -> None:
    _, *local = COMMANDS[dataset](demo_workspace, tmp_path)
    assert main(["build", dataset, *local, "--output", str(tmp_path / "local")]) == 0
    expected = dataset_bytes(tmp_path / "local")
    with tarfile.open(tmp_path / "images.tar", "w") as tar:
        for image in sorted((tmp_path / "images").iterdir()):
            tar.add(image, arcname=image.name)
    fsspec.filesystem("memory").put(f"{tmp_path}/images", "/all-images", recursive=True)

    with WebServer(tmp_path).running() as web:
        places = (f"{web.url}/images", "memory://all-images", f"{web.url}/images.tar")
        for number, place in enumerate(places):
            output = tmp_path / str(number)
            here = str(tmp_path / "images")
            there = [place if word == here else word for word in local]
            assert main(["build", dataset, *there, "--output", str(output)]) == 0
            assert dataset_bytes(output) == expected


def test_a_folder_of_annotations_is_copied_as_it_is(
    inputs: Inputs, expected: dict[str, bytes], tmp_path: Path
) -> None:
    """Hard positives take the pairs of a finished dataset, which is a folder."""
    fsspec.filesystem("memory").pipe(
        {f"/folder-of/out/{name}": data for name, data in expected.items()}
    )
    with copied_urls(str(tmp_path)):
        copy = copy_of("memory://folder-of/out")
        assert copy is not None
        fetch_inputs()
        assert dataset_bytes(copy) == expected


def test_what_is_there_already_is_known_from_anywhere(
    web: WebServer, inputs: Inputs, expected: dict[str, bytes], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """The store's states are others than the disk's: the digests of the content decide."""
    output = tmp_path / "out"
    assert main(["build", "eq-video", *inputs.arguments(output)]) == 0
    times = {path: path.stat().st_mtime_ns for path in (output / "data").iterdir()}
    for _ in range(2):
        assert main(command(web.url, output)) == 0
        assert "is already finished and was not changed" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in (output / "data").iterdir()} == times


def test_what_stays_away_is_a_reject_with_its_reason(
    web: WebServer, expected: dict[str, bytes], tmp_path: Path
) -> None:
    """One video comes at the second try, one never, one is gone, and one is too large."""
    sizes = sorted((path.stat().st_size, path.name) for path in (web.folder / "videos").iterdir())
    largest = sizes[-1][1]
    others = [name for _, name in sizes[:-1]]
    web.faults[f"videos/{others[0]}"] = ["cut", "503"]
    web.faults[f"videos/{others[1]}"] = ["503"] * 100
    web.faults[f"videos/{others[2]}"] = ["away"]
    room = f"{(sizes[-1][0] - 1) / 1e9:.9f}"
    more = ("--cache-gb", room, "--max-error-rate", "0.5")
    assert main(command(web.url, tmp_path / "out", *more)) == 0

    assert reasons(tmp_path / "out", "frames") == {
        "download_failed": 3, "video_missing": 3, "too_large_to_copy": 3,
    }  # fmt: skip
    assert all(largest in name for name in rejected(tmp_path / "out", "too_large_to_copy"))
    books(tmp_path / "out")

    web.faults.clear()
    assert main(command(web.url, tmp_path / "out", "--overwrite")) == 0
    assert dataset_bytes(tmp_path / "out") == expected


def test_a_server_that_goes_down_ends_the_run_and_the_next_one_finishes(
    web: WebServer, expected: dict[str, bytes], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    names = sorted(path.name for path in (web.folder / "videos").iterdir())
    for name in names[2:]:
        web.faults[f"videos/{name}"] = ["503"] * 100
    assert leave(command(web.url, tmp_path / "out")) == 1
    assert "failed for 12 of 18 candidates" in capsys.readouterr().err
    before = finished_work(tmp_path / "out", "extract")
    assert len(before) == 2

    web.faults.clear()
    web.sent.clear()
    assert main(command(web.url, tmp_path / "out")) == 0
    assert dataset_bytes(tmp_path / "out") == expected
    after = finished_work(tmp_path / "out", "extract")
    assert {name: after[name] for name in before} == before
    assert not {f"videos/{name}" for name in names[:2]} & web.sent.keys(), "not fetched again"


def test_a_killed_run_goes_on_and_believes_no_object_that_changed(
    web: WebServer, inputs: Inputs, expected: dict[str, bytes], tmp_path: Path, cache: Path
) -> None:
    names = sorted(path.name for path in inputs.videos.iterdir())
    for name in names:
        web.faults[f"videos/{name}"] = ["slow"]
    output = tmp_path / "out"
    run = start(*command(web.url, output))
    wait_for(lambda: len(finished_work(output, "extract")) >= 2)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    before = finished_work(output, "extract")

    web.faults.clear()
    first = inputs.videos / names[0]
    os.utime(first)
    assert main(command(web.url, output)) == 0
    assert dataset_bytes(output) == expected
    after = finished_work(output, "extract")
    assert {name: after[name] for name in before} == before
    assert len(after) == VIDEOS + 1, "the one that may have changed was decoded again"
    assert copies(cache) == []


def test_a_worker_killed_while_it_copies_leaves_nothing_behind(
    web: WebServer, expected: dict[str, bytes], tmp_path: Path, cache: Path
) -> None:
    """Its copy is deleted by who makes the next, and takes no room from then on."""
    names = sorted(path.name for path in (web.folder / "videos").iterdir())
    for name in names[2:]:
        web.faults[f"videos/{name}"] = ["slow"]
    with start(*command(web.url, tmp_path / "out", "--workers", "2")) as run:
        wait_for(lambda: any(web.sent[f"videos/{name}"] for name in names[2:]))
        worker = next(
            number
            for number, what in processes(run.pid)
            if "sdk_worker_main" in what and not what.startswith("/bin/sh")
        )
        os.kill(worker, signal.SIGKILL)
        _, said = run.communicate()
    assert run.returncode == 1
    assert "a worker process died" in said

    web.faults.clear()
    largest = max(path.stat().st_size for path in (web.folder / "videos").iterdir())
    room = ("--cache-gb", f"{largest / 1e9:.9f}")
    assert main(command(web.url, tmp_path / "out", *room)) == 0
    assert dataset_bytes(tmp_path / "out") == expected
    assert copies(cache) == []


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (
            {"videos": "{url}/nowhere"},
            "the folder contains none of the planned videos; eqforge looked for",
        ),
        ({"videos": "http://localhost:1/v"}, "--videos http://localhost:1/v: Cannot connect"),
        (
            {"videos": "memory://nowhere"},
            "--videos memory://nowhere: no such folder, or the folder",
        ),
        ({"captions": "{url}/none.jsonl"}, "/none.jsonl: no such file"),
        ({"captions": "memory://nowhere/x"}, "memory://nowhere/x: no such file"),
        ({"captions": "http://localhost:1/x?sig=hunter2"}, "http://localhost:1/x: Cannot connect"),
        ({"captions": "http://me:hunter2@localhost/x"}, "http://localhost/x contains a "),
        ({"videos": "http://me:hunter2@localhost/x"}, "http://localhost/x contains a "),
    ],
)
def test_a_whole_store_that_is_missing_is_an_error_before_any_work(
    web: WebServer, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    named: dict[str, str], said: str,
) -> None:  # fmt: skip
    more = [text for name, url in named.items() for text in (f"--{name}", url.format(url=web.url))]
    for verb in (["plan"], ["build"]):
        if verb == ["plan"] and "none of" in said:
            continue
        assert leave([*verb, *command(web.url, tmp_path / "out", *more)[1:]]) == 2
        found = capsys.readouterr().err
        assert said in found
        assert "hunter2" not in found
        assert "Traceback" not in found
    assert not (tmp_path / "out").exists()


def test_a_signature_leaves_no_trace(
    web: WebServer, expected: dict[str, bytes], tmp_path: Path
) -> None:
    captions = ("--captions", f"{web.url}/captions.jsonl?sig=hunter2&name=a%2Fb")
    assert main(command(web.url, tmp_path / "out", *captions)) == 0
    assert dataset_bytes(tmp_path / "out") == expected
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not [path for path in files if b"hunter2" in path.read_bytes()]


def test_functions_take_urls_and_a_pilot_fetches_what_it_builds(
    web: WebServer, expected: dict[str, bytes], tmp_path: Path, cache: Path
) -> None:
    named: dict[str, Any] = {
        "captions": f"{web.url}/captions.jsonl",
        "videos": f"{web.url}/videos",
        "mode": "paper",
        "face_policy": "off",
    }
    report = eqforge.plan("eq-video", pilot=1, **named)
    assert report.counts["videos"] == VIDEOS
    assert report.forecast
    assert sum(name.endswith(".mp4") for name in web.sent) == 1
    assert copies(cache) == []

    files: dict[str, Any] = {"samples_per_file": 1, "images_per_file": 1}
    eqforge.build("eq-video", output=str(tmp_path / "out"), **named, **files)
    assert dataset_bytes(tmp_path / "out") == expected
