"""Hostile web servers: ranges, lengths, checksums, redirects and bodies that lie."""

import contextlib
import functools
import json
import os
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from eqforge.core.files import objects
from tests.attacks.imports import Attack, odd_tar, rows
from tests.published import picture

LENGTHS = ("-1", "0", "1", "abc", "9" * 25, str(2**40), "10, 20", " 5", "+7", "")
HEADERS = {
    "Content-MD5": ("!!!", "", "AAAA", "\u00e9", "x" * 60_000),
    "ETag": ("", "W/x", "\x1b[2J", "0" * 32, "x" * 60_000),
    "Content-Encoding": ("gzip", "br", "deflate", "x", "gzip, gzip"),
    "Content-Range": ("bytes 0-9/10", "bytes */*", "bytes 9-0/1", "x", "bytes 0-999999/9"),
    "Content-Type": ("text/html", "\x1b[2J", "multipart/byteranges; boundary=x"),
    "Accept-Ranges": ("none", "bytes", "x"),
    "Last-Modified": ("never", "\x1b[2J"),
    "Transfer-Encoding": ("chunked", "x"),
    "Set-Cookie": ("a=b; Domain=.com",),
    "Link": ("<file:///etc/passwd>; rel=preload",),
}
PLACES = (
    "file:///etc/passwd", "/loop", "//127.0.0.1:9/x", "http://169.254.169.254/x", "gopher://x/",
    "http://[::1]:9/", "", "\x1b[2J", "http://127.0.0.1:9/" + "x" * 9_000, "data:text/plain,x",
)  # fmt: skip
MOST_SENT = 400 << 20


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    data, rng = b"", random.Random(0)

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def do_HEAD(self) -> None:
        self.answer(has_body=False)

    def do_GET(self) -> None:
        self.answer(has_body=True)

    def answer(self, *, has_body: bool) -> None:
        rng, data, status = self.rng, self.data, 200
        asked = self.headers.get("Range", "").removeprefix("bytes=").split("-")
        if len(asked) == 2 and asked[0].isdecimal() and rng.random() < 0.9:
            data = data[int(asked[0]) : int(asked[1] or len(data)) + 1]
            status = 206
        headers = {"ETag": '"1"', "Content-Length": str(len(data)), "Accept-Ranges": "bytes"}
        way = rng.randrange(10)
        if way == 0:
            status = rng.choice((204, 206, 301, 304, 401, 404, 416, 418, 500, 503, 999))
        elif way == 1:
            status, headers["Location"] = rng.choice((301, 302, 307, 308)), rng.choice(PLACES)
        elif way in (2, 3):
            headers["Content-Length"] = rng.choice(LENGTHS)
        elif way in (4, 5):
            name = rng.choice(sorted(HEADERS))
            headers[name] = rng.choice(HEADERS[name])
        with contextlib.suppress(OSError, ValueError):
            self.send_response(status)
            is_endless = way == 6 and has_body
            if is_endless:
                headers = {"Transfer-Encoding": "chunked", "ETag": '"1"'}
            for name, value in headers.items():
                self._headers_buffer.append(f"{name}: {value}\r\n".encode())  # type: ignore[attr-defined]
            self.end_headers()
            if is_endless:
                piece = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
                for _ in range(MOST_SENT >> 20):
                    self.wfile.write(piece)
            elif has_body:
                self.wfile.write(data[: len(data) // 2] if way == 7 else data)
        self.close_connection = way != 9


@functools.cache
def _server() -> str:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def servers(bench: Any, rng: random.Random) -> Iterator[Attack]:
    """A table, or a shard of images, that a hostile server has."""
    objects.WAITS_S, place = (0.0, 0.0, 0.0, 0.0), bench.fresh()
    _Handler.rng = random.Random(rng.random())
    table = place / "in.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows(rng)))
    words, os.environ["EQFORGE_CACHE"] = ["plan", "own-pairs"], str(place / "out")
    if rng.random() < 0.6:
        _Handler.data = table.read_bytes()
        words += [f"{_server()}/in.jsonl"]
    else:
        members = [(f"{n}.png", picture(n)) for n in range(4)]
        _Handler.data = odd_tar(members, random.Random(3))
        words += [str(table), "--images", f"{_server()}/s.tar"]
    yield "plan (https)", [*words, "--output", str(place / "out")], None, False
