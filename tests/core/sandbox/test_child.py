"""A child process answers, dies, hangs and ends as it should; every process here is a real one."""

import contextlib
import errno
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import psutil
import pytest

from eqforge.core.errors import BuildError
from eqforge.core.sandbox.child import Child, ChildDied, ChildFailed, ChildTimeout

MODULE = """
import ctypes, os, signal, sys, time

print("printed while it is imported")

def answer(request, alive):
    libc = ctypes.CDLL(None)
    for step in request:
        if step == "pid":
            yield os.getpid()
        elif step == "crash":
            ctypes.string_at(0)
        elif step == "exit":
            print("last words", file=sys.stderr)
            os._exit(3)
        elif step == "raise":
            raise ValueError("no good")
        elif step == "full":
            raise OSError(28, "No space left on device")
        elif step == "hang":
            libc.pause()
        elif step == "hang with the interpreter locked":
            ctypes.PyDLL(None).pause()
        elif step == "work":
            for _ in range(20):
                time.sleep(0.1)
                alive()
            yield "done"
        elif step == "wait":
            while not os.path.exists(os.path.join(os.path.dirname(__file__), "go on")):
                time.sleep(0.02)
            yield "went on"
        elif step == "print":
            print("on standard output")
            os.write(1, b"straight to the descriptor\\n")
            libc.puts(b"from C")
            libc.fflush(None)
            yield "printed"
        elif step == "read":
            yield sys.stdin.read() + os.read(0, 10).decode()
        else:
            yield step
"""

PARENT = """
import sys, time
from eqforge.core.sandbox.child import Child
child = Child("answering:answer", timeout_s=600)
answers = child.ask(["pid", *sys.argv[1:]])
print(next(answers), flush=True)
for _ in answers:
    pass
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "answering.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("import no_such_module")
    (tmp_path / "sleepy.py").write_text("import time; time.sleep(600)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


@pytest.fixture
def child() -> Iterator[Child]:
    child = Child("answering:answer", timeout_s=20)
    yield child
    child.close()


def wait_until(condition: Callable[[], bool], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    return False


def test_answers_come_in_order_and_the_process_is_kept(child: Child) -> None:
    (first,) = child.ask(["pid"])
    assert list(child.ask(["pid", 1, "zwei", None, {"drei": [3.5]}])) == [
        first, 1, "zwei", None, {"drei": [3.5]},
    ]  # fmt: skip
    assert first != os.getpid()
    assert list(child.ask([])) == []


def test_an_answer_comes_before_the_next_is_ready(child: Child, tmp_path: Path) -> None:
    answers = child.ask(["soon", "wait"])
    assert next(answers) == "soon"
    (tmp_path / "go on").touch()
    assert list(answers) == ["went on"]


def test_long_requests_and_answers_pass(child: Child) -> None:
    text = "ü" * 1_000_000
    assert list(child.ask([text, text])) == [text, text]


def test_a_crash_keeps_the_answers_before_it_and_is_named(child: Child) -> None:
    answers = child.ask(["pid", "first", "crash", "never"])
    pid = next(answers)
    assert next(answers) == "first"
    with pytest.raises(ChildDied, match="killed by SIGSEGV"):
        next(answers)
    (fresh,) = child.ask(["pid"])
    assert fresh != pid
    assert not is_running(pid)


def test_an_exit_tells_its_status_and_the_last_words(child: Child) -> None:
    with pytest.raises(ChildDied, match=r"exit status 3: .*last words") as caught:
        list(child.ask(["exit"]))
    assert caught.value.ending == "exit status 3"


def test_a_process_that_was_killed_between_requests_is_noticed(child: Child) -> None:
    (pid,) = child.ask(["pid"])
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_running(pid))
    with pytest.raises(ChildDied, match="killed by SIGKILL"):
        list(child.ask(["pid"]))
    (fresh,) = child.ask(["pid"])
    assert fresh != pid


@pytest.mark.parametrize("step", ["hang", "hang with the interpreter locked"])
def test_a_hang_ends_after_the_time_allowed(step: str) -> None:
    child = Child("answering:answer", timeout_s=3)
    answers = child.ask(["pid", "first", step])
    pid = next(answers)
    assert next(answers) == "first"
    with pytest.raises(ChildTimeout, match=r"3 s"):
        next(answers)
    assert not is_running(pid)
    assert list(child.ask(["again"])) == ["again"]
    child.close()


def test_slow_work_that_gives_signs_of_life_is_waited_for() -> None:
    child = Child("answering:answer", timeout_s=1.5)
    assert list(child.ask(["work"])) == ["done"]
    child.close()


def test_an_exception_is_told_and_the_process_lives_on(child: Child) -> None:
    (pid,) = child.ask(["pid"])
    with pytest.raises(ChildFailed, match="ValueError: no good"):
        list(child.ask(["first", "raise"]))
    assert list(child.ask(["pid"])) == [pid]


def test_an_error_of_the_system_stays_one(child: Child) -> None:
    with pytest.raises(OSError, match="No space left") as caught:
        list(child.ask(["full"]))
    assert caught.value.errno == errno.ENOSPC


def test_what_native_code_prints_does_not_get_between_the_answers(child: Child) -> None:
    assert list(child.ask(["print", 1, "print", 2])) == ["printed", 1, "printed", 2]


def test_what_native_code_reads_is_empty(child: Child) -> None:
    assert list(child.ask(["read", 1])) == ["", 1]


def test_answers_that_nobody_waits_for_do_not_turn_up_later(child: Child) -> None:
    answers = child.ask(["old", "old", "old"])
    assert isinstance(answers, Generator)
    assert next(answers) == "old"
    answers.close()
    assert list(child.ask(["new"])) == ["new"]


@pytest.mark.parametrize("function", ["broken:answer", "answering:none", "missing:answer"])
def test_a_function_that_cannot_be_imported_ends_the_run(function: str) -> None:
    child = Child(function, timeout_s=20)
    with pytest.raises(BuildError, match="cannot be imported"):
        list(child.ask([]))
    child.close()


def test_an_import_that_takes_for_ever_ends_the_run() -> None:
    child = Child("sleepy:answer", timeout_s=20, start_timeout_s=0.3)
    with pytest.raises(BuildError, match="did not start"):
        list(child.ask([]))


@pytest.mark.parametrize("end", ["close", "forget"])
def test_the_process_ends_when_it_is_no_longer_needed(end: str) -> None:
    child = Child("answering:answer", timeout_s=20)
    (pid,) = child.ask(["pid"])
    assert is_running(pid)
    if end == "close":
        child.close()
        child.close()
    else:
        del child
        gc.collect()
    wait_until(lambda: not is_running(pid))


@pytest.mark.parametrize("steps", [[], ["hang"], ["hang with the interpreter locked"]])
def test_the_process_does_not_outlive_a_parent_that_is_killed(steps: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, *steps], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_running(pid)
        parent.kill()
    wait_until(lambda: not is_running(pid))


def test_the_process_outlives_the_thread_that_started_it(child: Child) -> None:
    pids: list[int] = []
    thread = threading.Thread(target=lambda: pids.extend(child.ask(["pid"])))
    thread.start()
    thread.join()
    assert list(child.ask(["pid"])) == pids


def test_a_copy_sent_elsewhere_has_a_process_of_its_own(child: Child) -> None:
    (pid,) = child.ask(["pid"])
    copy = pickle.loads(pickle.dumps(child))
    (other,) = copy.ask(["pid"])
    assert other != pid
    copy.close()
    assert list(child.ask(["pid"])) == [pid]


def _ask_and_tell(child: Child, answers: "multiprocessing.Queue[list[int]]") -> None:
    answers.put(list(child.ask(["pid"])))
    child.close()


def test_a_forked_process_has_one_of_its_own_and_leaves_the_first_alone(child: Child) -> None:
    (pid,) = child.ask(["pid"])
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.Queue[list[int]] = context.Queue()
    fork = context.Process(target=_ask_and_tell, args=(child, answers))
    fork.start()
    (other,) = answers.get(timeout=300)
    fork.join(300)
    assert other != pid
    wait_until(lambda: not is_running(other))
    assert list(child.ask(["pid"])) == [pid]
