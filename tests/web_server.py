"""A web server with ranges that serves a folder, and fails as it is told to."""

import contextlib
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

Fault = Literal["503", "cut", "long", "slow", "whole", "other", "away"]
SLOW_S = 0.05


class WebServer:
    """Files of a folder, behind http://localhost.

    Attributes:
      faults: for each name, what goes wrong with its next GETs, one after the other: 503; the
        connection ends half-way through the bytes; one byte more than was asked for; the bytes come
        in small pieces; the whole file in place of a range; other bytes, of the right number; 404.
      redirects: where some names lead.
      down: names for which every request is answered by 503.
      asked: how often each name was asked for, by method.
      sent: how many bytes of each file were sent.
    """

    def __init__(self, folder: Path) -> None:
        """Names the folder."""
        self.folder = folder
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        self.redirects: dict[str, str] = {}
        self.down: set[str] = set()
        self.asked: Counter[tuple[str, str]] = Counter()
        self.sent: Counter[str] = Counter()
        self.lock, self.url = threading.Lock(), ""

    @contextlib.contextmanager
    def running(self) -> Iterator["WebServer"]:
        """Answers requests during the block."""
        server = ThreadingHTTPServer(("localhost", 0), type("Of", (_Handler,), {"web": self}))
        self.url = f"http://localhost:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def fault_of(self, method: str, name: str) -> Fault | None:
        """Notes a request; returns what is to go wrong with it."""
        with self.lock:
            self.asked[method, name] += 1
            if name in self.down:
                return "503"
            return self.faults[name].pop(0) if method == "GET" and self.faults[name] else None


class _Handler(BaseHTTPRequestHandler):
    web: WebServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def do_HEAD(self) -> None:
        self.answer("HEAD")

    def do_GET(self) -> None:
        self.answer("GET")

    def answer(self, method: str) -> None:
        name = unquote(self.path.partition("?")[0]).lstrip("/")
        fault, path = self.web.fault_of(method, name), self.web.folder / name
        if name in self.web.redirects:
            self.send_response(302)
            self.send_header("Location", self.web.redirects[name])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if fault == "503" or fault == "away" or not path.is_file():
            self.send_response(503 if fault == "503" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        data, status = path.read_bytes(), 200
        tag = f'"{path.stat().st_mtime_ns}"'
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked and fault != "whole":
            data, status = data[int(asked[1]) : int(asked[2]) + 1], 206
        if fault == "long":
            data += b"x"
        if fault == "other":
            data = bytes(len(data))
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", tag)
        self.end_headers()
        if method == "GET":
            self.send(name, data, fault)

    def send(self, name: str, data: bytes, fault: Fault | None) -> None:
        if fault == "cut":
            data = data[: len(data) // 2]
        pieces = 10 if fault == "slow" else 1
        for number in range(pieces):
            piece = data[len(data) * number // pieces : len(data) * (number + 1) // pieces]
            self.wfile.write(piece)
            time.sleep(SLOW_S if fault == "slow" else 0)
            self.web.sent[name] += len(piece)
        if fault == "cut":
            self.close_connection = True
