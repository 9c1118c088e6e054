"""A program that runs another one which ends when its parent does, however the parent ends.

Run as `python -m eqforge.transforms.children.die_with_parent PARENT PROGRAM ARGUMENT...`,
where PARENT is the process id of whoever starts it. Job servers
outlived a killed build otherwise, and went on with it.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def command(program: list[str]) -> list[str]:
    """Returns the command that runs a program tied to this process."""
    return [sys.executable, "-m", __name__, str(os.getpid()), *program]


def main(parent: str, *program: str) -> None:
    """Ties this process to its parent and becomes the program."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        sys.exit("the parent is gone")
    os.execvp(program[0], program)


if __name__ == "__main__":
    main(*sys.argv[1:])
