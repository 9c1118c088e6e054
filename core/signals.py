"""End a command cleanly on Ctrl-C, SIGTERM or SIGHUP.

The first signal raises `Stopped` in the main thread, so that the cleanup deletes folders and ends
processes. A later second signal ends the process at once. So does a thread if the cleanup takes too
long: native code may be running, or a thread that cannot be stopped.
"""

import atexit
import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn, TypeGuard

ENDING = frozenset((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
SAME_S = 1.0
"""Signals so soon after the first are the same request: `timeout` sends its signal twice."""
GRACE_S = 8.0
"""Time for cleanup. Docker kills after 10 s, Slurm and Kubernetes after 30."""
TOLD_S = 0.3
"""A cleanup that takes longer is announced."""
LAST_S = 1.0
"""Time for threads and exit handlers after the last message."""


class Stopped(KeyboardInterrupt):
    """A signal asks the process to end; code that handles Ctrl-C handles this too."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def number_of(error: KeyboardInterrupt) -> int:
    return error.number if isinstance(error, Stopped) else signal.SIGINT


def sentence(number: int, goes_on: bool) -> str:
    """Return the message of a run that a signal ended; `goes_on` as in `reported_errors`."""
    message = (
        "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    )
    return message + ("; run the same command again to resume" if goes_on else "")


class Listener:
    """Handles the signals of this process.

    Attributes:
      goes_on: see `sentence`.
      number: the first signal; None if none came.
      is_idle: whether there is nothing to clean up.
      is_held: whether signals wait; see `held`.
      is_said: whether the message was printed; the process then ends within LAST_S.
    """

    def __init__(self, *, goes_on: bool = False) -> None:
        self.goes_on = goes_on
        self.number: int | None = None
        self.is_idle = False
        self.is_held = False
        self.is_said = False
        self._came_s = 0.0
        self._is_raised = False
        self._is_starting = False

    def hear(self, number: int, frame: FrameType | None) -> None:
        if self.number is None:
            self._is_starting = True
            self.number, self._came_s = number, time.monotonic()
            if self.is_idle:
                self._end_at_once()
            _start(self._see_to_the_end)
            self._is_starting = False
        elif self._is_starting:
            return  # into the handler of the first one, which must not be cut short
        elif self._is_raised and time.monotonic() - self._came_s > SAME_S:
            self._end_at_once()
        # An extension that is half imported may abort the process.
        if not self._is_raised and not self.is_held and not _is_importing(frame):
            self._is_raised = True
            raise Stopped(self.number)

    def _see_to_the_end(self) -> None:
        main = threading.main_thread().ident
        is_told = False
        while self.number is not None and not self.is_said and self._has_time(GRACE_S):
            time.sleep(0.05)
            if self.is_said:
                break
            if self.number is not None and not self._is_raised and main is not None:
                signal.pthread_kill(main, self.number)
            elif not is_told and not self._has_time(TOLD_S):
                is_told = True
                _write("stopping; press Ctrl-C again or send a second signal to stop at once")
        if self.is_said:
            time.sleep(LAST_S)
        if self.number is not None:
            self._end_at_once()

    def hear_lost(self, lost: "sys.UnraisableHookArgs") -> bool:
        """Raise the signal's exception again if Python dropped it, as it does in `__del__`."""
        is_own = issubclass(lost.exc_type, Stopped)
        if is_own:
            self._is_raised = False
        return is_own

    def forget(self) -> None:
        self.number, self._is_raised = None, False

    def _has_time(self, seconds: float) -> bool:
        return time.monotonic() - self._came_s < seconds

    def _end_at_once(self) -> None:
        """End the process; its children notice and end too."""
        number = self.number or signal.SIGINT
        if not self.is_said:
            _write(sentence(number, self.goes_on))
        os._exit(128 + number)


def _write(text: str) -> None:
    with contextlib.suppress(OSError):  # print may have been interrupted
        os.write(2, f"eqforge: {text}\n".encode())


_listener = Listener()


def _start(watch: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # no memory for a thread: then without
        threading.Thread(target=watch, daemon=True).start()


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def heard(*, goes_on: bool = False) -> Iterator[Listener]:
    """Make signals that end the process raise Stopped in the block; yield the outermost listener.

    Ignored signals stay ignored, as SIGHUP under nohup, and so do handlers of other programs.
    Outside the main thread nothing changes.
    """
    global _listener
    before = {number: signal.getsignal(number) for number in sorted(ENDING)}
    default_signals = [
        number
        for number, handler in before.items()
        if handler in (signal.SIG_DFL, signal.default_int_handler)
    ]
    if not default_signals or threading.current_thread() is not threading.main_thread():
        yield _listener if _listener.hear in before.values() else Listener()
        return
    _listener = Listener(goes_on=goes_on)
    tell = sys.unraisablehook
    sys.unraisablehook = lambda lost: None if _listener.hear_lost(lost) else tell(lost)
    try:
        for number in default_signals:
            signal.signal(number, _listener.hear)
        yield _listener
    finally:
        sys.unraisablehook = tell
        for number in default_signals:
            signal.signal(number, before[number])


@contextlib.contextmanager
def idle() -> Iterator[None]:
    """Make a signal end the process at once during the block: nothing needs cleanup yet."""
    _listener.is_idle = True
    try:
        yield
    finally:
        _listener.is_idle = False


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Make signals wait until the block is over, or until `released` within it."""
    _listener.is_held = True
    try:
        yield
    finally:
        _listener.is_held = False


@contextlib.contextmanager
def released() -> Iterator[None]:
    _listener.is_held = False
    try:
        yield
    finally:
        _listener.is_held = True


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """Ignore signals in the block, because the work is complete."""
    with held():
        try:
            yield
        finally:
            forget()


def forget() -> None:
    """Forget the signal, because the work it should end has ended."""
    _listener.forget()


def is_of_signal(status: object) -> TypeGuard[int]:
    return status in {128 + number for number in ENDING}


def end(status: int) -> NoReturn:
    """Run the exit handlers and end the process without waiting for threads.

    Threads of gRPC that run while Python shuts down abort the process.
    """
    atexit._run_exitfuncs()
    os._exit(status)


def quieten_way_out() -> None:
    """Silence threads that lose their servers in cleanup; call once, after setting up the log."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(lambda _: _listener.number is None)
    tell = threading.excepthook

    def tell_before_the_end(failed: threading.ExceptHookArgs) -> None:
        if _listener.number is None:
            tell(failed)

    threading.excepthook = tell_before_the_end


def end_within(seconds: float, status: int) -> None:
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)

    def end() -> None:
        time.sleep(seconds)
        os._exit(status)

    _start(end)


@contextlib.contextmanager
def blocked() -> Iterator[None]:
    """Block these signals in processes that are started in the block: their parent ends them.

    A signal to the whole process group, as a terminal and Slurm send it, would end them or make
    them print a traceback before their parent knows why. It has to end them by SIGKILL, or by
    closing what they read.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
