"""Signals at any moment: one sentence, a status, nothing left, and the next run goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eqforge.core import signals
from tests.builds import dataset_bytes, environment, processes, start, wait_for
from tests.faults.conftest import Whole

MOMENTS = int(os.environ.get("EQFORGE_SIGNAL_MOMENTS", "0"))
"""How many moments of the first three seconds are tried, 50 ms apart; 0 tries three."""
GO_ON = "; run the same command again to resume"
STOPPING = "eqforge: stopping; press Ctrl-C again or send a second signal to stop at once\n"


def python(code: str, *arguments: str) -> "subprocess.Popen[str]":
    """Starts a program, which says `ready` where it can be sent a signal."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize(
    ("number", "status", "workers", "is_to_all", "later_s"),
    [
        (signal.SIGINT, 130, 2, True, 0),
        (signal.SIGTERM, 143, 2, False, 0.7),  # while the workers start
        (signal.SIGHUP, 129, 1, False, 0),
    ],
)
def test_a_signal_ends_a_build_and_leaves_no_process(
    whole: Whole,
    tmp_path: Path,
    number: signal.Signals,
    status: int,
    workers: int,
    is_to_all: bool,
    later_s: float,
) -> None:
    output, temporary = tmp_path / "out", tmp_path / "temporary"
    temporary.mkdir()
    arguments = ["build", "eq-video", *whole.inputs.arguments(output), "--workers", workers]
    with start(*arguments, TMPDIR=str(temporary)) as run:
        wait_for(lambda: any((output / "_work" / "plan").rglob("*.jsonl")))
        time.sleep(later_s)
        (os.killpg if is_to_all else os.kill)(run.pid, number)
        _, said = run.communicate(timeout=300)
    assert run.returncode == status, said
    ended = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    assert said.splitlines()[-1] == f"eqforge: {ended}{GO_ON}"
    assert "Traceback" not in said
    wait_for(lambda: not list(processes(run.pid)))
    assert list(temporary.iterdir()) == []
    if is_to_all:
        with start(*arguments) as again:
            again.communicate(timeout=300)
        assert dataset_bytes(output) == whole.files


_COMMAND = """
import sys
from eqforge import cli
sys.argv[0] = "eqforge"
print("ready", flush=True)
sys.exit(cli.main())
"""


@pytest.mark.parametrize(
    "moment_s", [0.05 * number for number in range(MOMENTS)] or [0.02, 0.5, 1.0]
)
def test_ctrl_c_while_libraries_are_loaded_is_one_sentence(
    whole: Whole, tmp_path: Path, moment_s: float
) -> None:
    arguments = whole.inputs.arguments(tmp_path / "out")
    with python(_COMMAND, "build", "eq-video", *arguments) as run:
        time.sleep(moment_s)
        os.killpg(run.pid, signal.SIGINT)
        _, said = run.communicate(timeout=300)
    assert run.returncode == 130, said
    assert said.splitlines()[-1] == f"eqforge: interrupted{GO_ON}"
    assert "Traceback" not in said


_LATE = """
import os, signal, sys, threading, time
def late(manifest):
    while not os.path.exists(manifest):  # the event comes before the renaming, which may take long
        time.sleep(0.001)
    time.sleep({later_s})
    os.kill(os.getpid(), signal.SIGTERM)
def hook(event, arguments):
    if event == "os.rename" and str(arguments[1]).endswith("out/dataset.json"):
        threading.Thread(target=late, args=(str(arguments[1]),), daemon=True).start()
sys.addaudithook(hook)
from eqforge import cli
print("ready", flush=True)
sys.exit(cli.main())
"""


@pytest.mark.parametrize("later_s", ["0.01", "0.2"])
def test_a_signal_after_the_manifest_changes_nothing(
    whole: Whole, tmp_path: Path, later_s: str
) -> None:
    output = tmp_path / "out"
    with python(
        _LATE.format(later_s=later_s), "build", "eq-video", *whole.inputs.arguments(output)
    ) as run:
        out, said = run.communicate(timeout=300)
    assert run.returncode == 0, said
    assert "9 samples" in out
    assert "ended" not in said
    assert "Traceback" not in said
    assert dataset_bytes(output) == whole.files


# --- the way out


_BODY = """
import sys, threading, time
from eqforge.core import signals
from eqforge.core.errors import reported_errors
signals.GRACE_S = float(sys.argv[1])
with reported_errors():
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        {then}
"""


def test_a_second_signal_ends_a_long_way_out_at_once() -> None:
    with python(_BODY.format(then="time.sleep(60)"), "60") as run:
        os.kill(run.pid, signal.SIGTERM)
        os.kill(run.pid, signal.SIGTERM)  # as `timeout` does; it is the same request
        assert run.stderr is not None
        assert run.stderr.readline() == STOPPING
        time.sleep(signals.SAME_S + 2)
        assert run.poll() is None
        os.kill(run.pid, signal.SIGTERM)
        _, said = run.communicate(timeout=30)
    assert (run.returncode, said) == (143, "eqforge: ended by SIGTERM\n")


def test_a_second_signal_does_not_cut_short_what_the_first_one_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = []

    def start_watch(watch: object) -> None:
        started.append(watch)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(signals, "_start", start_watch)
    with signals.heard() as listener:
        with pytest.raises(signals.Stopped):
            os.kill(os.getpid(), signal.SIGTERM)
        listener.forget()
    assert len(started) == 1


@pytest.mark.parametrize(
    "then", ["time.sleep(60)", "threading.Thread(target=time.sleep, args=(60,)).start()"]
)
def test_a_way_out_that_hangs_is_cut_short(then: str) -> None:
    with python(_BODY.format(then=then), "1") as run:
        os.kill(run.pid, signal.SIGHUP)
        _, said = run.communicate(timeout=30)
    assert (run.returncode, said.removeprefix(STOPPING)) == (129, "eqforge: ended by SIGHUP\n")


def test_a_library_is_loaded_to_its_end_before_the_signal_is_heard(tmp_path: Path) -> None:
    """One that is half loaded may abort the process."""
    (tmp_path / "slow.py").write_text(
        "import time\nprint('ready', flush=True)\ntime.sleep(1)\nprint('loaded', flush=True)\n"
    )
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import atexit, time; atexit.register(time.sleep, 0.2)\n"  # what is said stays the last
        "from eqforge.core.errors import reported_errors\n"
        "with reported_errors():\n    import slow\n    time.sleep(60)\n"
    )
    with python(code) as run:
        os.kill(run.pid, signal.SIGINT)
        out, said = run.communicate(timeout=30)
    assert (run.returncode, out, said) == (130, "loaded\n", "eqforge: interrupted\n")


def test_a_signal_where_python_drops_exceptions_is_heard_after_it() -> None:
    code = (
        "import time\n"
        "from eqforge.core.errors import reported_errors\n"
        "class Closing:\n"
        "    def __del__(self):\n"
        "        print('ready', flush=True)\n"
        "        time.sleep(1)\n"
        "with reported_errors():\n    Closing()\n    time.sleep(60)\n"
    )
    with python(code) as run:
        os.kill(run.pid, signal.SIGINT)
        _, said = run.communicate(timeout=30)
    assert (run.returncode, said) == (130, "eqforge: interrupted\n")


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As SIGHUP under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals.heard():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert callable(signal.getsignal(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_process_started_so_does_not_see_signals() -> None:
    with signals.blocked():
        child = subprocess.Popen(["sleep", "60"])
    for number in signals.ENDING:
        child.send_signal(number)
    time.sleep(0.1)
    assert child.poll() is None
    child.kill()
    child.wait()
