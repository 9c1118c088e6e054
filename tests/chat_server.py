"""A small server of the chat-completions protocol, which answers by what it is asked."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL, VERSION = "tiny-chat", "fp_1"
Say = Callable[[str, dict[str, Any]], Any]


class ChatServer:
    """Answers POSTs by a function of prompt and body, and lists its one model.

    Attributes:
      say: what is answered: a text; or a status and a body.
      models: the status and the body of its list of models.
      faults: statuses that the next requests get instead; 0 closes the connection half-way.
      key: what requests have to bring; None asks for nothing.
      asked: the bodies of all requests that were answered.
      headers: those of every request.
      at_once: the most requests that were under way at a time.
      version: what it calls itself beside the model.
    """

    def __init__(self, say: Say, key: str | None = None) -> None:
        self.say, self.key, self.version = say, key, VERSION
        self.models: tuple[int, Any] = (200, {"object": "list", "data": [{"id": MODEL}]})
        self.faults: list[int] = []
        self.retry_after = "0.01"
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.lock, self.url = threading.Lock(), ""
        self.under_way = self.at_once = 0

    @contextlib.contextmanager
    def running(self) -> Iterator["ChatServer"]:
        server = ThreadingHTTPServer(("localhost", 0), type("Of", (_Handler,), {"chat": self}))
        server.daemon_threads = True
        self.url = f"http://localhost:{server.server_address[1]}/v1"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    @property
    def model(self) -> str:
        return f"{MODEL}@{self.url}"

    @property
    def prompts(self) -> list[str]:
        return [_prompt(body) for body in self.asked]


def _prompt(body: dict[str, Any]) -> str:
    content = body["messages"][0]["content"] if "messages" in body else body["prompt"]
    return content if isinstance(content, str) else content[-1]["text"]


class _Handler(BaseHTTPRequestHandler):
    chat: ChatServer

    def do_GET(self) -> None:
        if not self._is_denied():
            self._send(*self.chat.models)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._is_denied():
            return
        with self.chat.lock:
            self.chat.under_way += 1
            self.chat.at_once = max(self.chat.at_once, self.chat.under_way)
            self.chat.paths.append(self.path)
            fault = self.chat.faults.pop(0) if self.chat.faults else None
        waits = {"error": {"message": "for a while", "code": None}}
        try:
            said = self._answer(body) if fault is None else (fault, waits)
        finally:
            with self.chat.lock:  # before the client can send its next request
                self.chat.under_way -= 1
        if fault == 0:
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
        else:
            self._send(*said)

    def _answer(self, body: dict[str, Any]) -> tuple[int, Any]:
        said = self.chat.say(_prompt(body), body)
        with self.chat.lock:
            self.chat.asked.append(body)
        if isinstance(said, tuple):
            return said
        content = {"message": {"role": "assistant", "content": said}}
        choice = content if "messages" in body else {"text": said}
        return 200, {
            "id": "1",
            "object": "chat.completion",
            "model": f"{MODEL}-0613",
            "system_fingerprint": self.chat.version,
            "choices": [{"index": 0, "finish_reason": "stop", **choice}],
            "usage": {"prompt_tokens": len(_prompt(body).split()), "completion_tokens": 7},
        }

    def _is_denied(self) -> bool:
        with self.chat.lock:
            self.chat.headers.append(dict(self.headers))
        given = self.headers.get("Authorization")
        if self.chat.key is None or given == f"Bearer {self.chat.key}":
            return False
        self._send(401, {"error": {"message": f"wrong key {given}", "code": "invalid_api_key"}})
        return True

    def _send(self, status: int, body: Any) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status in (408, 429) or status >= 500:
            self.send_header("Retry-After", self.chat.retry_after)
        if status in (301, 302, 307, 308):
            self.send_header("Location", body["to"])
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the client was killed
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Prints nothing."""
