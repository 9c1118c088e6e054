"""Processes that end when their parent ends, for whatever reason.

The parent holds one end of a pipe. When nobody holds it any more, the kernel signals the process at
the other end, its lifeline. A thread or the end of a stream would not do: native code that hangs
may hold the interpreter lock forever. Linux can also signal when a parent dies, but takes the
thread that started a process for its parent.

Run as `python -P -m eqforge.core.sandbox.die_with_parent LIFELINE SIGNAL PROGRAM
ARGUMENT...`, it becomes a program that receives the signal.
"""

import fcntl
import os
import select
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from typing import Any


class TiedProcess(subprocess.Popen[bytes]):
    """A Python module that runs in a process, with its lifeline as the first argument.

    The module has to call `end_with_parent`. The process also ends with this object.
    """

    def __init__(self, module: str, *arguments: str, **options: Any) -> None:
        """Start `python -P -m module LIFELINE arguments`; `options` go to `Popen`."""
        lifeline, write_end = os.pipe()
        self.let_go = weakref.finalize(self, os.close, write_end)
        # -P: no modules are imported from the current folder, which anybody may own.
        command = [sys.executable, "-P", "-m", module, str(lifeline), *arguments]
        try:
            super().__init__(command, pass_fds=(lifeline,), **options)
        finally:
            os.close(lifeline)


def start_program(
    program: Sequence[str], ending: signal.Signals = signal.SIGKILL, **options: Any
) -> TiedProcess:
    """Start a program that receives the signal `ending` when this process is gone."""
    return TiedProcess(__name__, str(int(ending)), *program, **options)


def end_with_parent(lifeline: int, ending: int = signal.SIGKILL) -> None:
    """Ask the kernel to signal this process when the parent closes the lifeline."""
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, ending)  # elsewhere it is SIGIO
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:
        sys.exit("the parent process has ended")


def main(lifeline: str, ending: str, *program: str) -> None:
    end_with_parent(int(lifeline), int(ending))
    os.execvp(program[0], program)


if __name__ == "__main__":
    main(*sys.argv[1:])
