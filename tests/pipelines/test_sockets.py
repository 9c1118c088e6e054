"""What listens while a build runs here: nothing in one process, files of this user in several."""

import os
import tempfile
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from apache_beam.runners.portability.fn_api_runner import worker_handlers

from eqforge.generators.demo.workspace import Workspace
from eqforge.transforms.engines import beam_patches, listening
from tests.builds import start
from tests.sockets import Watch


@pytest.mark.parametrize("name", ["plain and spaced", "é" * 30, "a,b", "a#b", "a%41", "x" * 90])
def test_a_worker_finds_a_server_whatever_the_folder_for_temporary_files_is_called(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
    with beam_patches.at_files():
        server = worker_handlers.grpc.server(ThreadPoolExecutor(1))
        address = server.add_insecure_port("[::]:0")
        server.start()
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(timeout=20)
        server.stop(None).wait()


@pytest.mark.parametrize("hosts", ["", "example.org"])
def test_no_proxy_stands_between_the_processes_of_this_machine(
    hosts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.setenv(name, hosts)
    listening.reach_this_machine_directly()
    listening.reach_this_machine_directly()
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("localhost:0")
    server.start()
    with grpc.insecure_channel(f"localhost:{port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=20)
    server.stop(None).wait()
    expected = [*filter(None, [hosts]), "localhost", "127.0.0.1", "::1"]
    for name in ("no_proxy", "no_grpc_proxy"):
        assert os.environ[name] == ",".join(expected)
    assert urllib.request.proxy_bypass("localhost:8081")


@pytest.mark.parametrize("workers", [1, 2])
def test_no_port_is_open_while_a_build_runs_on_this_machine(
    demo_workspace: Workspace, tmp_path: Path, workers: int
) -> None:
    inputs = ["--captions", demo_workspace.captions, "--videos", demo_workspace.videos]
    settings = ["--face-policy", "off", "--limit", "2", "--workers", workers]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with start(
        *("build", "eq-video", *inputs, *settings, "--output", tmp_path / "out"),
        TMPDIR=str(temporary),
    ) as run:
        watch = Watch(run)
        watch.start()
        _, err = run.communicate(timeout=300)
        watch.end()
    assert run.returncode == 0, err
    assert watch.found == set()
    assert set(watch.files.values()) == (set() if workers == 1 else {0o700})
    assert list(temporary.iterdir()) == []
