"""The child's side of `child`: runs a function for its parent.

Run as `python -P -m eqforge.core.sandbox.child_main LIFELINE package.module:function
[SANDBOX]`; LIFELINE is that of `die_with_parent`, and SANDBOX what the process may do, as JSON.
Requests come in as JSON lines; each is answered by lines {"answer": …}, or {"bytes": 3} and as many
bytes, and one {"done": true} or {"error": "traceback"}. {"alive": true} means that the work goes
on; {"read": [start, size]} asks for a part of the request's file.
"""

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from typing import IO, Any

from eqforge.core.sandbox.die_with_parent import end_with_parent

HEARTBEAT_S = 0.5

Function = Callable[[Any, "Parent"], Iterable[Any]]


def main(lifeline: str, function: str, sandbox: str = "null") -> None:
    """Import a function, then answer requests with it until there are no more."""
    end_with_parent(int(lifeline))
    os.set_inheritable(int(lifeline), False)
    # Native libraries may use standard input and output, so the pipes are moved away from them.
    requests, messages = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    parent = Parent(requests, messages)
    begin = _into_sandbox(json.loads(sandbox))
    try:
        module, name = function.split(":")
        answer: Function = getattr(importlib.import_module(module), name)
    except Exception:
        parent.send({"error": traceback.format_exc()})
        return
    parent.send({"ready": True})
    for request in requests:
        begin()
        _answer(answer, json.loads(request), parent)


def _into_sandbox(values: dict[str, Any] | None) -> Callable[[], None]:
    """Enter a sandbox before any import starts threads; return a call to make before requests."""
    if values is None:
        return lambda: None
    from eqforge.core.sandbox.sandbox import Sandbox, allow_time, enter

    sandbox = Sandbox.from_json(values)
    enter(sandbox)
    return lambda: allow_time(sandbox)


class Parent:
    """The parent process; a call sends a sign of life, at most one every HEARTBEAT_S."""

    def __init__(self, requests: IO[bytes], messages: IO[bytes]) -> None:
        self._requests, self._messages = requests, messages
        self._sent_at = 0.0

    def __call__(self) -> None:
        if time.monotonic() - self._sent_at >= HEARTBEAT_S:
            self.send({"alive": True})

    def send(self, message: dict[str, Any], data: Any = b"") -> None:
        self._messages.write(json.dumps(message).encode() + b"\n")
        self._messages.write(data)
        self._messages.flush()
        self._sent_at = time.monotonic()

    def read(self, start: int, size: int) -> bytes:
        """Return a part of the file that came with the request, of up to MOST_READ_BYTES."""
        self.send({"read": [start, size]})
        return self._requests.read(int.from_bytes(self._requests.read(8)))


def _answer(function: Function, request: Any, parent: Parent) -> None:
    try:
        for value in function(request, parent):
            if isinstance(value, memoryview):
                parent.send({"bytes": value.nbytes}, value)
            else:
                parent.send({"answer": value})
    except Exception as error:
        errno = error.errno if isinstance(error, OSError) else None
        parent.send({"error": traceback.format_exc(), "errno": errno})
    else:
        parent.send({"done": True})


if __name__ == "__main__":
    main(*sys.argv[1:])
