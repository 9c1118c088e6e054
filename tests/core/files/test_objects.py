import asyncio
import base64
import contextlib
import hashlib
import io
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fsspec.implementations.http import yarl

from eqforge.core.files import objects, storage
from eqforge.core.files.objects import FetchFailed, fetch, stat, state_of
from tests.web_server import Fault, WebServer

DATA = bytes(range(256)) * 100


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    """A server with one file, which comes in pieces; its clients do not wait."""
    monkeypatch.setattr(objects, "PIECE_BYTES", 10_000)
    monkeypatch.setattr(objects, "WAITS_S", (0.0, 0.0, 0.0, 0.0))
    (tmp_path / "a.bin").write_bytes(DATA)
    with WebServer(tmp_path).running() as server:
        yield server


def fetched(url: str) -> bytes:
    copy = io.BytesIO()
    fetch(url, stat(url), copy)
    return copy.getvalue()


def reason_of(url: str) -> tuple[str, str]:
    with pytest.raises(FetchFailed) as failed:
        fetched(url)
    return failed.value.reason, failed.value.detail


def test_a_file_comes_once_in_pieces(web: WebServer) -> None:
    assert fetched(f"{web.url}/a.bin") == DATA
    assert web.sent["a.bin"] == len(DATA)
    assert web.asked["GET", "a.bin"] == 3


@pytest.mark.parametrize("fault", ["503", "cut", "slow"])
def test_what_passes_is_tried_again_where_it_stopped(web: WebServer, fault: Fault) -> None:
    web.faults["a.bin"] = [fault, fault]
    assert fetched(f"{web.url}/a.bin") == DATA
    assert web.sent["a.bin"] <= len(DATA) + 2 * 5_000, "only the piece is asked for again"


@pytest.mark.parametrize(
    ("fault", "detail"),
    [
        ("503", "503, message='Service Unavailable'"),
        ("cut", "Not enough data"),
        ("long", "the download ended after 10,001 bytes"),
    ],
)
def test_what_does_not_pass_has_a_reason(web: WebServer, fault: Fault, detail: str) -> None:
    web.faults["a.bin"] = [fault] * 5
    reason, found = reason_of(f"{web.url}/a.bin")
    assert reason == "download_failed"
    assert detail in found


def test_a_server_that_is_down_has_no_missing_files(web: WebServer) -> None:
    web.down.add("a.bin")
    assert reason_of(f"{web.url}/a.bin")[0] == "download_failed"
    assert reason_of(f"{web.url}/b.bin") == ("file_missing", "no file of that name")
    assert reason_of("http://localhost:1/a.bin")[0] == "download_failed"


def test_a_server_without_ranges_is_named(web: WebServer) -> None:
    web.faults["a.bin"] = ["whole", "whole"]
    reason, detail = reason_of(f"{web.url}/a.bin")
    assert reason == "download_failed"
    assert "doesn't appear to support range requests" in detail


class _Endless(BaseHTTPRequestHandler):
    """Announces a short file, and answers a range of it without an end."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(206)
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(200):
                self.wfile.write(bytes(1 << 20))

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_no_more_is_read_than_a_range_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "WAITS_S", ())
    server = ThreadingHTTPServer(("localhost", 0), _Endless)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    reason, detail = reason_of(f"http://localhost:{server.server_address[1]}/a.bin")
    server.shutdown()
    server.server_close()
    assert (reason, detail) == ("download_failed", "the server sends more than 1,049,575 bytes")


def test_a_checksum_that_is_none_is_reported(web: WebServer) -> None:
    info = stat(f"{web.url}/a.bin") | {"Content-MD5": "x"}
    with pytest.raises(FetchFailed, match="its Content-MD5 is not base64"):
        fetch(f"{web.url}/a.bin", info, io.BytesIO())


def test_a_file_that_is_another_has_another_state(web: WebServer) -> None:
    before = state_of(stat(f"{web.url}/a.bin"))
    (web.folder / "a.bin").write_bytes(DATA[::-1])
    assert state_of(stat(f"{web.url}/a.bin")) != before


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@pytest.mark.parametrize(
    ("told", "times"),
    [
        ({}, 1),
        ({"md5Hash": base64.b64encode(bytes.fromhex(md5(DATA))).decode()}, 1),
        ({"ETag": f'"{md5(DATA)}"', "StorageClass": "STANDARD"}, 1),
        ({"ETag": f'"{md5(b"")}-2"', "StorageClass": "STANDARD"}, 1),  # of several parts
        ({"ETag": f'"{md5(b"")}"', "StorageClass": "STANDARD"}, 2),  # encrypted by a key
    ],
)
def test_the_checksum_is_that_of_the_store(
    web: WebServer, told: dict[str, str], times: int
) -> None:
    copy = io.BytesIO()
    fetch(f"{web.url}/a.bin", {"size": len(DATA), **told}, copy)
    assert copy.getvalue() == DATA
    assert web.sent["a.bin"] == times * len(DATA)


def test_bytes_with_another_checksum_are_fetched_again(web: WebServer) -> None:
    right = {"size": len(DATA), "ETag": md5(DATA), "StorageClass": "STANDARD"}
    web.faults["a.bin"] = ["other"]
    copy = io.BytesIO()
    fetch(f"{web.url}/a.bin", right, copy)
    assert copy.getvalue() == DATA


def test_a_store_whose_object_has_another_checksum_is_not_believed(web: WebServer) -> None:
    wrong = {"size": len(DATA), "md5Hash": base64.b64encode(bytes(16)).decode()}
    with pytest.raises(FetchFailed, match=f"its MD5 is {md5(DATA)}, but the store says 0000"):
        fetch(f"{web.url}/a.bin", wrong, io.BytesIO())


@pytest.mark.parametrize(
    ("asked", "location", "refused"),
    [
        ("https://a.org/x", "https://cdn.b.org/x", False),
        ("https://a.org/x", "/y", False),
        ("https://a.org/x", "http://a.org/x", True),
        ("https://a.org/x", "https://169.254.169.254/latest", True),
        ("http://a.org/x", "http://localhost/x", True),
        ("http://10.0.0.1/x", "http://10.0.0.2/x", False),
    ],
)
def test_redirects_lead_neither_out_of_encryption_nor_inside(
    asked: str, location: str, refused: bool
) -> None:
    response = SimpleNamespace(headers={"Location": location})
    request: Any = SimpleNamespace(url=yarl.URL(asked), response=response)
    checked = storage._check_redirect(None, None, request)
    if refused:
        with pytest.raises(ValueError, match="the server redirects"):
            asyncio.run(checked)
    else:
        asyncio.run(checked)


def test_a_refused_redirect_is_the_reason(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    web.redirects["there"] = f"{web.url}/a.bin"
    assert fetched(f"{web.url}/there") == DATA
    web.redirects["out"] = "https://169.254.169.254/"
    monkeypatch.setattr(storage, "_is_inner", lambda host: host == "169.254.169.254")
    assert reason_of(f"{web.url}/out") == (
        "download_failed",
        "the server redirects to an address on this machine or its network",
    )
