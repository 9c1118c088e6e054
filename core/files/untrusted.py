"""Read files of unknown origin in a child process without files or network, and with little memory.

A file can crash native readers of tables and pickles, or make a few kilobytes take gigabytes. The
function that reads it therefore runs in a sandboxed child, which asks its parent for the file's
bytes. The child ends past memory limits, and its death becomes a one-sentence error.
"""

import contextlib
import importlib
import io
import os
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final

from eqforge.core.files.disk import RangeStream
from eqforge.core.sandbox.child import MOST_READ_BYTES, Child, ChildDied, ChildFailed, ChildTimeout
from eqforge.core.sandbox.child_main import Parent
from eqforge.core.sandbox.sandbox import Sandbox

FREE_BYTES: Final = 128 << 20
MAX_EXPANSION: Final = 100
"""The content of a file may take MAX_EXPANSION times its length plus FREE_BYTES."""

_SPARE_BYTES: Final = 1 << 30
"""Address space for readers' internal data, such as packed pages."""
_SILENCE_S, _CPU_S, _MOST_IDLE = 300.0, 3600.0, 4
_idle: list[Child] = []


class Unreadable(ValueError):
    """A file is damaged, of an unsupported kind, or takes too much memory."""


def check_expansion(num_bytes: int, memory_bytes: int, free: int = FREE_BYTES) -> None:
    """Check that reading `num_bytes` of a file has not taken more memory than allowed."""
    if memory_bytes > MAX_EXPANSION * num_bytes + free:
        raise Unreadable(
            f"reading it needs at least {memory_bytes:,} bytes of memory, but the limit for a file "
            f"of this size is {MAX_EXPANSION * num_bytes + free:,} bytes"
        )


def read(
    reader: str, stream: IO[bytes], *, free: int = FREE_BYTES, **arguments: Any
) -> Iterator[Any]:
    """Yield values that a function reads from a file, in order.

    Args:
      reader: "package.module:name" of a function of a file and the arguments that yields JSON
        values, or buffers of bytes.
      stream: the file, which must be seekable.
      free: memory in bytes that is allowed whatever the file's length.
      arguments: JSON values.

    Raises:
      Unreadable: the function fails, dies, or takes too much memory or time.
      OSError: the file cannot be read.
    """
    try:
        child = _idle.pop()
    except IndexError:
        sandbox = Sandbox(cpu_s=_CPU_S)
        child = Child(f"{__name__}:serve", timeout_s=_SILENCE_S, sandbox=sandbox)
    size = stream.seek(0, os.SEEK_END)
    request = {"reader": reader, "size": size, "free": free, "arguments": arguments}
    try:
        with contextlib.closing(child.ask(request, stream)) as answers:
            for answer in answers:
                if isinstance(answer, dict) and "rejected" in answer:
                    next(answers, None)  # so that the child is free for the next file
                    raise Unreadable(str(answer["rejected"]))
                yield answer
    except ChildDied as error:
        raise Unreadable(f"the process that read it died ({error.ending})") from error
    except ChildTimeout as error:
        raise Unreadable(f"reading it took too long: {error}") from error
    except ChildFailed as error:
        raise Unreadable(f"reading it failed: {error}") from error
    finally:
        if len(_idle) < _MOST_IDLE:
            _idle.append(child)
        else:
            child.close()


def serve(request: dict[str, Any], parent: Parent) -> Iterator[Any]:
    size, free, arguments = request["size"], request["free"], request["arguments"]

    def read(start: int, count: int) -> bytes:
        data = parent.read(start, min(count, MOST_READ_BYTES))
        parent()
        return data

    try:
        module, _, name = request["reader"].partition(":")
        reader: Callable[..., Iterator[Any]] = getattr(importlib.import_module(module), name)
        if sys.platform == "linux":
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = MAX_EXPANSION * size + free + _SPARE_BYTES
            most += pages * os.sysconf("SC_PAGE_SIZE")
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        memory_bytes = 0
        for answer in reader(io.BufferedReader(RangeStream(read, size), 1 << 20), **arguments):
            memory_bytes += answer.nbytes if isinstance(answer, memoryview) else 0
            check_expansion(size, memory_bytes, free)
            yield answer
    except MemoryError:
        yield {"rejected": f"reading its {size:,} bytes needs more memory than the limit allows"}
    except Unreadable as error:
        yield {"rejected": str(error)}
    except Exception as error:  # a damaged file can make readers raise anything
        reason = " ".join(str(error).split())
        yield {"rejected": f"{type(error).__name__}: {reason}" if reason else type(error).__name__}
