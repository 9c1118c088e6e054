"""Locks an output folder for one run at a time."""

import contextlib
import fcntl
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from eqforge.core.errors import BuildError, InputError
from eqforge.core.files import disk, storage
from eqforge.core.visible import shortened
from eqforge.schemas.dataset.manifest import WORK

_RENEWALS = 6
_LOOKS = 60


def locked(
    output: str, *, lease_s: float = 60.0, sleep: Callable[[float], object] = time.sleep
) -> contextlib.AbstractContextManager[None]:
    """Lock an output folder for one run during the block; no crash leaves the lock behind.

    On a disk the system releases the lock when the process ends, however it ends. Elsewhere the run
    holds a lease: see `_Lease`.

    Args:
      output: path or URL of the folder.
      lease_s: seconds without renewal after which a lease belongs to a dead run.

    Raises:
      InputError: another run is writing there, or the folder is not writable.
      BuildError: the lease was lost during the run, as when the machine was suspended.
    """
    is_local = storage.is_local(output)
    return _flocked(output) if is_local else _leased(_Lease(output, lease_s, sleep))


@contextlib.contextmanager
def _flocked(output: str) -> Iterator[None]:
    path = Path(storage.locate(output)[1]) / WORK / "lock"
    with contextlib.ExitStack() as stack:
        try:
            disk.make_folder(path.parent)
            stream = stack.enter_context(open(path, "w", encoding="utf-8"))
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"--output {output}: another run is writing there; wait for it to end, or choose a "
                "different folder"
            ) from error
        except OSError as error:
            raise InputError(f"--output {output}: cannot be written: {error.strerror}") from error
        yield


@contextlib.contextmanager
def _leased(lease: "_Lease") -> Iterator[None]:
    try:
        lease.acquire()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"--output {lease.output}: cannot be written: {reason}") from error
    try:
        yield
    except KeyboardInterrupt as error:
        if lease.lost:
            raise lease.lost from error
        raise
    finally:
        lease.release()
    if lease.lost:
        raise lease.lost


class _Lease:
    """The lease of a folder in a store: an object that its owner rewrites every few seconds.

    Its name is a number, and the highest is valid. A run that finds a lease watches it: if it
    changes, its owner is alive and the new run is rejected. If it stays the same for `lease_s`, the
    new run takes the next number by creating an object, which the store grants to one run only. A
    run that finds a higher number ends. Each run uses its own monotonic clock, so setting a clock
    does no harm.

    If a store has no exclusive creation, two runs that start within the same second may both begin;
    one of them ends at its next renewal.
    """

    def __init__(self, output: str, lease_s: float, sleep: Callable[[float], object]) -> None:
        self.lost: BuildError | None = None
        self.output = output
        self._lease_s, self._sleep = lease_s, sleep
        self._folder = storage.join(output, WORK, "lease")
        self._number, self._content = 0, b""
        self._over = threading.Event()
        self._renewer = threading.Thread(target=self._keep, name="eqforge-lease", daemon=True)

    def acquire(self) -> None:
        """Take the lease, if its run is dead, and keep renewing it."""
        number, content = self._newest()
        if content is not None:
            self._watch(number, content)
        self._number, self._content = number + 1, self._beat()
        with contextlib.suppress(FileExistsError):
            system, path = storage.locate(self._url(self._number))
            storage.make_parents(system, path)
            system.pipe_file(path, self._content, mode="create")
        # A retried request finds its own object already there, so compare the content.
        if self._newest() != (self._number, self._content):
            raise self._refusal()
        storage.delete(self._url(number))
        self._renewer.start()

    def release(self) -> None:
        self._over.set()
        self._renewer.join()
        if not self.lost:
            storage.delete(self._url(self._number))

    def _newest(self) -> tuple[int, bytes | None]:
        storage.locate(self._folder)[0].invalidate_cache()
        numbers = [int(name) for name in storage.list_files(self._folder) if name.isdigit()]
        if not numbers:
            return 0, None
        with contextlib.suppress(FileNotFoundError):
            return max(numbers), storage.read_bytes(self._url(max(numbers)))
        return max(numbers), None

    def _watch(self, number: int, content: bytes) -> None:
        """Wait until a lease is known to belong to a dead run."""
        owner = content.decode(errors="replace").partition(";")[0]
        print(
            f"{self.output}: {shortened(owner, 100)} was writing there; checking for up to "
            f"{self._lease_s:.0f} s whether it still runs",
            file=sys.stderr,
        )
        for _ in range(_LOOKS):
            self._sleep(self._lease_s / _LOOKS)
            if self._newest() != (number, content):
                raise self._refusal()

    def _keep(self) -> None:
        renewed = time.monotonic()
        while not self._over.wait(self._lease_s / _RENEWALS):
            try:
                if self._newest() != (self._number, self._content):
                    return self._lose("another run took over the output folder")
                self._content = self._beat()
                storage.write_bytes(self._url(self._number), self._content)
                renewed = time.monotonic()
            except Exception as error:
                # A store may be unreachable for a while, but not until others assume us dead.
                if time.monotonic() - renewed > self._lease_s:
                    return self._lose(f"the output folder can no longer be reached: {error}")

    def _lose(self, reason: str) -> None:
        self.lost = BuildError(f"--output {self.output}: the run was stopped, because {reason}")
        # Like Ctrl-C: the main thread waits for the runner. Shells make background processes
        # ignore Ctrl-C.
        is_ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGTERM if is_ignored else signal.SIGINT)

    def _beat(self) -> bytes:
        owner = f"process {os.getpid()} on {socket.gethostname()}"
        return f"{owner}; {uuid.uuid4().hex}".encode()

    def _url(self, number: int) -> str:
        return storage.join(self._folder, f"{number:08d}")

    def _refusal(self) -> InputError:
        return InputError(
            f"--output {self.output}: another run is writing there; wait for it to end, or choose "
            "a different folder"
        )
