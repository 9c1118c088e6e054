"""A child process for native code that may crash or hang, driven by JSON lines.

A request is one JSON value. A function in the child answers it with any number of values, JSON or
bytes, as they are ready. A request may include a file, whose bytes the child asks for as needed. If
the child dies, or stays silent for too long, the answers so far are valid, an error is raised, and
the next request starts a fresh child. `child_main` is the other side.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Generator
from multiprocessing.connection import wait
from typing import IO, Any

from eqforge.core.errors import BuildError, EqforgeError
from eqforge.core.sandbox.die_with_parent import TiedProcess
from eqforge.core.sandbox.sandbox import Sandbox, adjusted
from eqforge.core.signals import blocked

STDERR_TAIL = 2000
_PIPE_BYTES = 2**20
MOST_MESSAGE_BYTES = 2**30
"""An image with the maximum number of pixels takes a third of it."""
MOST_READ_BYTES = 2**24
"""Maximum bytes of a file per request from a child."""


class ChildDied(EqforgeError):
    """The child process ended during a request.

    Args:
        ending: how it ended, such as "killed by SIGSEGV".
        stderr: the end of its standard error.
    """

    def __init__(self, ending: str, stderr: str) -> None:
        super().__init__(f"{ending}: {stderr}" if stderr else ending)
        self.ending, self.stderr = ending, stderr

    def __reduce__(self) -> tuple[type["ChildDied"], tuple[str, str]]:
        return type(self), (self.ending, self.stderr)


class ChildTimeout(EqforgeError):
    """The child process was silent for too long and was killed."""


class ChildFailed(RuntimeError):
    """The child's function raised an exception; the text is its traceback."""


class Child:
    """A function that runs in a child process, which is started on the first request.

    It may be pickled, or inherited by a forked process, and starts a process of its own there.
    Only one thread may use it at a time, and it serves one request at a time.
    """

    def __init__(
        self,
        function: str,
        *,
        timeout_s: float,
        start_timeout_s: float = 120.0,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Store the settings; the first request starts the process.

        Args:
          function: "package.module:name" of a function that takes a request and a callable
            `alive`, and yields answers. It calls `alive` while it works on the next answer.
          timeout_s: longest silence of the child during a request, in seconds.
          start_timeout_s: longest time until the function has been imported, in seconds.
          sandbox: the sandbox, entered before the function is imported; None for no restrictions.
            A change takes effect with the next process.
        """
        self._function = function
        self.sandbox = sandbox
        self._timeout_s = timeout_s
        self._start_timeout_s = start_timeout_s
        self._process: _Process | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_process": None}

    def ask(self, request: Any, file: IO[bytes] | None = None) -> Generator[Any, None, None]:
        """Yield the child's answers to a request as they arrive.

        Args:
          request: any JSON value.
          file: a seekable file, whose bytes the child may ask for.

        Raises:
          ChildDied: the process ended before the last answer.
          ChildTimeout: it was silent for too long.
          ChildFailed: the function raised an exception.
          OSError: the function raised a system error, such as a full disk.
          BuildError: the child does not start, or the function cannot be imported.
        """
        is_idle = False
        try:
            process = self._running()
            process.write(json.dumps(request).encode() + b"\n", self._timeout_s, is_new=True)
            while not is_idle:
                message = process.read(self._timeout_s)
                if "read" in message:
                    data = _part(file, message["read"])
                    process.write(len(data).to_bytes(8), self._timeout_s)
                    process.write(data, self._timeout_s)
                    continue
                is_idle = "done" in message or "error" in message
                if "error" in message:
                    if message.get("errno") is not None:
                        raise OSError(message["errno"], message["error"])
                    raise ChildFailed(message["error"])
                if "answer" in message:
                    yield message["answer"]
        finally:
            if not is_idle:
                self.close()

    def close(self) -> None:
        """Kill the process, if there is one; the next request starts another."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def _running(self) -> "_Process":
        if self._process is None or self._process.parent != os.getpid():
            self._process = _Process(self._function, adjusted(self.sandbox))
            try:
                message = self._process.read(self._start_timeout_s)
            except EqforgeError as error:
                raise BuildError(f"the child process for {self._function} did not start") from error
            if "error" in message:
                raise BuildError(f"{self._function} cannot be imported: {message['error']}")
        return self._process


def _part(file: IO[bytes] | None, place: Any) -> bytes:
    match place:
        case [int(start), int(size)] if file and start >= 0 and 0 <= size <= MOST_READ_BYTES:
            file.seek(start)
            return file.read(size)
    raise ChildFailed("it asked for bytes outside the file")


class _Process:
    """A running child, and the parent's ends of the pipes."""

    def __init__(self, function: str, sandbox: Sandbox | None) -> None:
        self.parent = os.getpid()
        self._unread = bytearray()
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by _end
        with blocked():
            self._popen = TiedProcess(
                "eqforge.core.sandbox.child_main",
                *(function, json.dumps(sandbox.to_json() if sandbox else None)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
            )
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._input, self._output = self._popen.stdin.fileno(), self._popen.stdout.fileno()
        os.set_blocking(self._input, False)
        if sys.platform == "linux":
            for pipe in (self._input, self._output):  # a sixteenth of the changes of process
                with contextlib.suppress(OSError):  # a per-user limit
                    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._writable = select.poll()
        self._writable.register(self._input, select.POLLOUT)
        self.end = weakref.finalize(self, _end, self._popen, self._stderr, self.parent)

    def write(self, data: bytes, timeout_s: float, *, is_new: bool = False) -> None:
        if is_new:
            self._stderr.seek(0)  # the child writes at the same offset
            self._stderr.truncate()
        left = memoryview(data)
        deadline = time.monotonic() + timeout_s
        try:
            while left:
                if not self._writable.poll(1000 * max(0.0, deadline - time.monotonic())):
                    raise ChildTimeout(f"no response for {timeout_s:g} s")
                left = left[os.write(self._input, left) :]
        except BrokenPipeError as error:
            raise self._death() from error

    def read(self, timeout_s: float) -> dict[str, Any]:
        deadline = time.monotonic() + timeout_s
        searched = 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            if searched > MOST_MESSAGE_BYTES:
                raise ChildFailed(f"its message is longer than {MOST_MESSAGE_BYTES:,} bytes")
            self._wait(deadline, timeout_s)
            if not (data := os.read(self._output, 1 << 16)):
                raise self._death()
            self._unread += data
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        message = _message(line)
        if "bytes" in message:
            return {"answer": self._read_bytes(message["bytes"], timeout_s)}
        return message

    def _read_bytes(self, size: Any, timeout_s: float) -> bytearray:
        if type(size) is not int or not 0 <= size <= MOST_MESSAGE_BYTES:
            raise ChildFailed(f"its message is longer than {MOST_MESSAGE_BYTES:,} bytes")
        data, at = bytearray(size), min(size, len(self._unread))
        data[:at] = self._unread[:at]
        del self._unread[:at]
        view = memoryview(data)
        while at < size:
            self._wait(time.monotonic() + timeout_s, timeout_s)
            if not (count := os.readv(self._output, [view[at:]])):
                raise self._death()
            at += count
        return data

    def _wait(self, deadline: float, timeout_s: float) -> None:
        if not wait([self._output], max(0.0, deadline - time.monotonic())):
            raise ChildTimeout(f"no response for {timeout_s:g} s")

    def _death(self) -> ChildDied:
        self._popen.kill()  # it may have closed its output without ending
        status = self._popen.wait()
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - STDERR_TAIL))
        stderr = self._stderr.read().decode(errors="replace").strip()
        if status < 0:
            return ChildDied(f"killed by {signal.Signals(-status).name}", stderr)
        return ChildDied(f"exit status {status}", stderr)


def _message(line: bytes) -> dict[str, Any]:
    """Parse a message; a process taken over by hostile data may send anything."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ChildFailed(f"its message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise ChildFailed("its message is not a JSON object")
    return message


def _end(popen: TiedProcess, stderr: IO[bytes], parent: int) -> None:
    """Kill a process and close its pipes; a forked process only closes its copies."""
    if parent == os.getpid():
        popen.kill()
        popen.wait()
    else:
        popen.returncode = 0
    popen.let_go()
    for file in (popen.stdin, popen.stdout, stderr):
        if file is not None:
            with contextlib.suppress(BrokenPipeError):  # a request was never read
                file.close()
