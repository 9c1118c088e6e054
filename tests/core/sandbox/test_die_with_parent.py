import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from eqforge.core.sandbox.die_with_parent import start_program
from tests.core.sandbox.test_child import is_running, wait_until

PARENT = """
import sys, time
from eqforge.core.signals import blocked
from eqforge.core.sandbox.die_with_parent import start_program
with blocked():
    program = start_program(sys.argv[1:])
print(program.pid, flush=True)
time.sleep(60)
"""
UNMOVED = "import signal, time; signal.signal(signal.SIGIO, signal.SIG_IGN); time.sleep(600)"


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_program_does_not_outlive_a_parent_that_is_killed(is_stopped: bool) -> None:
    command = [sys.executable, "-c", PARENT, sys.executable, "-c", UNMOVED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        wait_until(lambda: Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1:2] == ["-c"])
        if is_stopped:
            os.kill(pid, signal.SIGSTOP)
        assert is_running(pid)
        parent.kill()
    wait_until(lambda: not is_running(pid))


def test_a_program_whose_parent_is_gone_before_it_begins_does_not_begin(tmp_path: Path) -> None:
    made = tmp_path / "made"
    process = start_program(["touch", str(made)], stderr=subprocess.DEVNULL)
    process.let_go()
    assert process.wait() != 0
    assert not made.exists()


def test_a_program_gets_the_signal_that_was_asked_for() -> None:
    process = start_program(["sleep", "600"], signal.SIGTERM)
    wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n")
    process.let_go()
    assert process.wait(300) == -signal.SIGTERM
