"""A sandbox for processes that read untrusted media.

An attacker who takes over such a process, through a flaw in a decoder, has no network, cannot start
programs, can read only the files that the process needs, and has limited memory and time. Layers
that the machine lacks are left out, and `eqforge doctor` reports them.
"""

import contextlib
import os
import resource
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.core.sandbox import landlock, seccomp

VARIABLE: Final = "EQFORGE_CAGE"
"""Environment variable: `off` for none, or its limits, such as `memory_gb=16,cpu_s=7200`."""

_MOST: Final = 2.0**32
"""Upper bound of limits: the system counts bytes and seconds in 64 bits."""

MOST_OPEN_FILES: Final = 1024
MOST_STDERR_BYTES: Final = 2**24

_SYSTEM: Final = (
    *("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/etc/fonts"),
    *("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/sys/devices/system/cpu"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/self"),
)
"""Read by the C library, Python and native packages on their own; no user's files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sandbox:
    """Permissions and limits of a process.

    Attributes:
      read: readable files and folders, besides Python's installation.
      write: folders in which files may be read, written, created and deleted.
      network: whether it may open sockets.
      memory_gb: address space, in GiB; None for no limit.
      cpu_s: CPU time per request, in seconds; None for no limit.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = False
    memory_gb: float | None = None
    cpu_s: float | None = None

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Sandbox":
        return cls(**values | {name: tuple(values[name]) for name in ("read", "write")})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def adjusted(sandbox: Sandbox | None) -> Sandbox | None:
    wanted = os.environ.get(VARIABLE, "")
    if sandbox is None or wanted == "off":
        return None
    values = sandbox.to_json()
    for part in filter(None, wanted.split(",")):
        name, _, number = part.partition("=")
        with contextlib.suppress(ValueError):
            if name in ("memory_gb", "cpu_s") and 0 < float(number) < _MOST:
                values[name] = float(number)
                continue
        raise InputError(
            f"{VARIABLE} must be `off` or limits such as `memory_gb=16,cpu_s=7200`, not {wanted!r}"
        )
    return Sandbox.from_json(values)


def enter(sandbox: Sandbox) -> dict[str, str]:
    """Put this process into a sandbox for good; it must have only one thread.

    Return the missing layers, `landlock` or `seccomp`, with the system's errors.
    """
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, MOST_OPEN_FILES)
    if not sandbox.write:
        _limit(resource.RLIMIT_FSIZE, MOST_STDERR_BYTES)
    if sandbox.memory_gb is not None:
        _limit(resource.RLIMIT_AS, int(sandbox.memory_gb * 2**30))
    if sys.platform == "linux":
        # Never closed: short of memory, the kernel would forget the folder and its rule.
        os.open("/proc/self", os.O_PATH)
    lacking = {}
    try:
        landlock.restrict(
            [*_python(), *_SYSTEM, *sandbox.read],
            [*sandbox.write, os.devnull],
            network=sandbox.network,
        )
    except OSError as error:
        lacking["landlock"] = str(error)
    try:
        seccomp.restrict(network=sandbox.network, modes=bool(sandbox.write))
    except OSError as error:
        lacking["seccomp"] = str(error)
    return lacking


def allow_time(sandbox: Sandbox) -> None:
    """Limit the CPU time of the next request; SIGXCPU ends the process after that."""
    if sandbox.cpu_s is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime + sandbox.cpu_s) + 1
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        if most == resource.RLIM_INFINITY or seconds < most:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, most))


def _limit(kind: int, amount: int) -> None:
    """Set a limit that this process cannot raise; a lower one is kept."""
    _, most = resource.getrlimit(kind)
    if most != resource.RLIM_INFINITY and (amount == resource.RLIM_INFINITY or amount > most):
        amount = most
    with contextlib.suppress(ValueError, OSError):  # macOS cannot limit address space
        resource.setrlimit(kind, (amount, amount))


def _python() -> Iterator[str]:
    """Yield the folders of Python, its packages and eqforge, and the targets of eqforge's links."""
    yield from filter(os.path.isabs, sys.path)
    yield from (sys.prefix, sys.base_prefix, *sysconfig.get_paths().values())
    for folder in sys.modules["eqforge"].__path__:
        yield folder
        with os.scandir(folder) as entries:
            yield from (os.path.realpath(each) for each in entries if each.is_symlink())
