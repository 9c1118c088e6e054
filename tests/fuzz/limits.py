"""Runs what hostile inputs are given to under a limit on memory."""

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

FREE_BYTES = 3 << 30
"""Address space beside what is taken already; allocators reserve some of it for nothing."""


@contextlib.contextmanager
def address_space(free: int = FREE_BYTES) -> Iterator[None]:
    """Lets this process take so much more address space; past it an allocation fails."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = taken + free
    resource.setrlimit(resource.RLIMIT_AS, (most if hard < 0 else min(most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def refuse_without_memory(error: BaseException) -> None:
    """Raises an error anew, if it came of there being no memory."""
    waiting, seen = [error], set()
    while waiting:
        found = waiting.pop()
        if isinstance(found, MemoryError):
            raise AssertionError("no memory") from found
        seen.add(id(found))  # errors of recursion may come of each other
        causes = (found.__cause__, found.__context__)
        waiting += [one for one in causes if one is not None and id(one) not in seen]
