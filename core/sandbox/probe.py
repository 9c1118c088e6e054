"""Try denied operations from inside a sandbox, for `eqforge doctor` and the tests.

Each try is harmless if it is allowed.
"""

import contextlib
import fcntl
import mmap
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Final

from eqforge.core.errors import EqforgeError
from eqforge.core.sandbox.child import Child
from eqforge.core.sandbox.sandbox import Sandbox

_NOBODY: Final = ("127.0.0.1", 9)  # the `discard` port
_MUCH: Final = 100 * 2**30
_MEMORY_GB: Final = 8.0

TRIES: Final = (
    *("tcp", "udp", "ipv6", "unix", "exec", "fork", "read", "list", "write", "delete", "mode"),
    *("signal", "memory", "pair", "owner"),
)


def outcomes(path: str) -> dict[str, str]:
    """Return the system's error for each of TRIES inside the decoders' sandbox; "" if allowed.

    Args:
      path: absolute path of a file outside Python's installation, in a folder of its own; without
        an effective sandbox it is deleted.
    """
    child = Child(f"{__name__}:probe", timeout_s=60, sandbox=Sandbox(memory_gb=_MEMORY_GB))
    try:
        return dict(zip(TRIES, child.ask({"tries": TRIES, "path": path}), strict=True))
    except EqforgeError as error:
        return dict.fromkeys(TRIES, f"the process ended: {error}")
    finally:
        child.close()


def probe(request: dict[str, object], alive: Callable[[], None]) -> Iterator[str]:
    tries, path = request["tries"], request["path"]
    assert isinstance(tries, list)
    assert isinstance(path, str)
    for name in tries:
        try:
            _TRY[name](path)
        except (OSError, MemoryError) as error:
            yield f"{type(error).__name__}: {error}"
        else:
            yield ""


def _connect(family: int, kind: int, address: object) -> None:
    with socket.socket(family, kind) as opened:
        opened.settimeout(5)
        try:
            opened.connect(address)  # type: ignore[arg-type]  # its type depends on the family
        except (ConnectionError, FileNotFoundError, TimeoutError):
            return  # it was allowed; nobody listens


def _pair(path: str) -> None:
    """Reconnect one of a pair of sockets to another process's socket."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other, contextlib.suppress(FileNotFoundError):  # nobody listens
        one.connect(path + ".socket")


def _owner(_: str) -> None:
    """Ask the kernel to signal another process about a pipe."""
    reading, writing = os.pipe()
    try:
        fcntl.fcntl(reading, fcntl.F_SETOWN, os.getppid())
    finally:
        os.close(reading)
        os.close(writing)


def _fork(_: str) -> None:
    if not (pid := os.fork()):
        os._exit(0)
    os.waitpid(pid, 0)


def _read(path: str) -> None:
    with open(path, "rb") as file:
        file.read(1)


def _write(path: str) -> None:
    with open(path + ".new", "xb"):
        os.unlink(path + ".new")


_TRY: Final[dict[str, Callable[[str], object]]] = {
    "tcp": lambda _: _connect(socket.AF_INET, socket.SOCK_STREAM, _NOBODY),
    "udp": lambda _: _connect(socket.AF_INET, socket.SOCK_DGRAM, _NOBODY),
    "ipv6": lambda _: _connect(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 9)),
    "unix": lambda path: _connect(socket.AF_UNIX, socket.SOCK_STREAM, path + ".socket"),
    "exec": lambda _: subprocess.run([sys.executable, "-S", "-c", ""], check=True),
    "fork": _fork,
    "read": _read,
    "list": lambda path: os.listdir(os.path.dirname(path)),
    "write": _write,
    "delete": os.unlink,
    "mode": lambda path: os.chmod(os.path.dirname(path), 0o700),
    "signal": lambda _: os.kill(os.getppid(), 0),
    # Takes address space only.
    "memory": lambda _: mmap.mmap(-1, _MUCH, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ),
    "pair": _pair,
    "owner": _owner,
}
