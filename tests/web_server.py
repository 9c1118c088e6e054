"""A web server with ranges that fails as it is told to: of a folder, or in front of a store."""

import contextlib
import http.client
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
# Headers that this server gives by itself, or that are of one connection.
_OWN = {"Content-Length", "Transfer-Encoding", "Connection", "Date", "Server"}


class WebServer:
    """Files of a folder, behind http://localhost; or a store, whose objects go by their last name.

    Attributes:
      faults: for each name, what goes wrong with its next GETs, one after the other: 503; the
        connection ends half-way through the bytes; one byte more than was asked for; the bytes come
        in small pieces; the whole file in place of a range; other bytes, of the right number; 404.
      redirects: where some names lead.
      down: names for which every request is answered by 503.
      asked: how often each name was asked for, by method.
      sent: how many bytes of each file were sent.
    """

    def __init__(self, folder: Path, store: str | None = None) -> None:
        self.folder, self.store = folder, store
        self.faults: dict[str, list[Fault]] = defaultdict(list)
        self.redirects: dict[str, str] = {}
        self.down: set[str] = set()
        self.asked: Counter[tuple[str, str]] = Counter()
        self.sent: Counter[str] = Counter()
        self.lock, self.url = threading.Lock(), ""

    @contextlib.contextmanager
    def running(self) -> Iterator["WebServer"]:
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
        path, _, query = self.path.partition("?")
        name = unquote(path).lstrip("/")
        if self.web.store is not None:  # of Google's, metadata and lists have no alt=media
            is_file = "alt=media" in query or (query == "" and "storage/v1" not in path)
            name = name.rpartition("/")[2] if is_file else ""
        if name in self.web.redirects:
            self.say(302, {"Location": self.web.redirects[name], "Content-Length": "0"})
            return
        fault = self.web.fault_of(method, name)
        found = (503, {"Content-Length": "0"}, b"") if fault == "503" else self.found(method, name)
        if fault == "away":
            found = 404, {"Content-Length": "0"}, b""
        status, headers, data = found
        if fault == "other":
            data = bytes(len(data))
        if fault == "long":
            data += b"x"
        if fault == "whole":
            status, data = 200, (self.web.folder / name).read_bytes()
        self.say(status, headers | ({"Content-Length": str(len(data))} if data else {}))
        if method == "GET":
            self.send(name, data, fault)

    def say(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()

    def found(self, method: str, name: str) -> tuple[int, dict[str, str], bytes]:
        """The right answer: status, headers and bytes."""
        if self.web.store is not None:
            there = http.client.HTTPConnection(self.web.store.removeprefix("http://"))
            there.request(method, self.path, headers=dict(self.headers))
            answer = there.getresponse()
            headers = {key: value for key, value in answer.getheaders() if key not in _OWN}
            data = answer.read()
            there.close()
            return (
                answer.status,
                headers | {"Content-Length": answer.headers["Content-Length"] or str(len(data))},
                data,
            )
        path = self.web.folder / name
        if not path.is_file():
            return 404, {"Content-Length": "0"}, b""
        data, status = path.read_bytes(), 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked:
            data, status = data[int(asked[1]) : int(asked[2]) + 1], 206
        tag = f'"{path.stat().st_mtime_ns}"'
        return status, {"ETag": tag, "Content-Length": str(len(data))}, data

    def send(self, name: str, data: bytes, fault: Fault | None) -> None:
        if fault == "cut":
            data = data[: len(data) // 2]
        pieces = 10 if fault == "slow" else 1
        for number in range(pieces):
            piece = data[len(data) * number // pieces : len(data) * (number + 1) // pieces]
            with self.web.lock:  # before the client can say that it has all
                self.web.sent[name] += len(piece)
            self.wfile.write(piece)
            time.sleep(SLOW_S if fault == "slow" else 0)
        if fault == "cut":
            self.close_connection = True
