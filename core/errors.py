"""The errors that eqforge raises.

EqforgeError
  InputError      the user's input or settings are wrong; the command line exits with 2
  BuildError      a build ended before its dataset was complete; the command line exits with 1
  MissingExtra    an optional package is not installed; the command line exits with 2
"""

import contextlib
import errno
import logging
import os
import resource
import select
import sys
import tempfile
import traceback
from collections.abc import Iterator
from typing import NoReturn

from eqforge.core import signals
from eqforge.core.visible import shortened

MAX_MESSAGE_CHARS = 4_000


class EqforgeError(Exception):
    """Base class of the errors that eqforge raises. The message says what to do."""


class InputError(EqforgeError):
    """An input file, a setting or an output folder is wrong."""


class BuildError(EqforgeError):
    """A build ended before its dataset was complete."""


class MissingExtra(EqforgeError):
    """An optional package is missing.

    Args:
        extra: extra of eqforge that installs the package.
        then: command to run after the installation, or empty for most packages.
    """

    def __init__(self, package: str, extra: str, then: str = "") -> None:
        commands = [f"pip install 'eqforge[{extra}]'", *([then] if then else [])]
        super().__init__(f"{package} is not installed; run {' && '.join(commands)}")
        self.package, self.extra, self.then = package, extra, then

    def __reduce__(self) -> tuple[type["MissingExtra"], tuple[str, str, str]]:
        return type(self), (self.package, self.extra, self.then)


@contextlib.contextmanager
def importing(package: str, extra: str) -> Iterator[None]:
    """Raise MissingExtra if an import in the block fails."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(package, extra) from error


NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_FREE_SPACE = "; free some space and run the same command again"
_UNWRITABLE = {
    errno.ENOSPC: _FREE_SPACE,
    errno.EDQUOT: _FREE_SPACE,
    errno.EROFS: "; choose a different folder",
}
# Errors of the system that are bugs of eqforge itself.
_MISTAKES = frozenset(
    (errno.EBADF, errno.ECHILD, errno.EFAULT, errno.EINVAL, errno.ENOTSOCK, errno.ENOTTY)
)
LEAST_MEMORY = 3 * 10**9
"""Bytes of address space: with less, a build of video pairs crashed on two cores."""
TRACEBACK = "EQFORGE_TRACEBACK"


@contextlib.contextmanager
def reported_errors(*, goes_on: bool = False) -> Iterator[None]:
    """Turn eqforge's own errors, and the system's, into one message and an exit status.

    Signals that end the process raise an exception in the block; see `signals`. With
    EQFORGE_TRACEBACK=1 the traceback is printed above the message.

    Args:
      goes_on: whether the same command resumes after a signal; the message then says so. In nested
        blocks, the outermost value counts.

    Raises:
      SystemExit: 1 for a build that did not finish or a system error, such as a full disk; 2 for
        wrong input; 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP; 1 without a message if the
        reader of the output, such as `head`, has closed it.
    """
    try:
        with signals.heard(goes_on=goes_on) as listener:
            yield
    except KeyboardInterrupt as error:
        listener.is_said = True
        number = signals.number_of(error)
        _leave(signals.sentence(number, listener.goes_on), 128 + number)
    except Exception as error:
        # Failures from a signal to the whole process group are not reported; a lost lease is.
        if listener.number is not None and not isinstance(error.__cause__, KeyboardInterrupt):
            listener.is_said = True
            _leave(signals.sentence(listener.number, listener.goes_on), 128 + listener.number)
        _report(error)
        raise


def _report(error: Exception) -> None:
    """Exit with the message and the status of an error; return if the error is a bug."""
    if isinstance(error, BuildError):
        _leave(str(error), 1)
    if isinstance(error, EqforgeError):
        _leave(str(error), 2)
    if isinstance(error, BrokenPipeError):
        poll = select.poll()
        with contextlib.suppress(ValueError):  # there may be no such file, as in a notebook
            poll.register(sys.stdout.fileno(), 0)
        if any(event & select.POLLERR for _, event in poll.poll(0)):
            _forget_output()
            raise SystemExit(1) from error
    # An error of the system names a file, or is no mistake of the code.
    if (
        isinstance(error, OSError)
        and error.errno is not None
        and (error.filename is not None or error.errno not in _MISTAKES)
    ):
        try:
            sys.stdout.flush()
        except OSError:
            _forget_output()
        _leave(_of_system(error), 1)
    if is_want_of_memory(error):
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        where = (
            "" if limit == resource.RLIM_INFINITY else f" (ulimit -v allows {limit / 1e9:.1f} GB)"
        )
        _leave(f"out of memory{where}, or too many processes are running: {error!r}", 1)


def _of_system(error: OSError) -> str:
    if error.filename is not None and error.errno in _UNWRITABLE:
        # A temporary file's name says nothing to users, so name its folder.
        folder = os.path.dirname(os.fsdecode(error.filename)) or "."
        return f"{folder}: cannot be written: {error.strerror}{_UNWRITABLE[error.errno]}"
    return f"the operating system reported an error: {error}{_full_disk(error)}"


def check_memory() -> None:
    """Check that there is memory to load libraries: without it, OpenBLAS hangs, OpenCV crashes."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST_MEMORY:
        raise InputError(
            f"ulimit -v allows {limit / 1e9:.1f} GB, but eqforge needs {LEAST_MEMORY / 1e9:.0f} GB "
            "of address space. Raise this limit. To limit memory, use a container or a cgroup."
        )


def is_want_of_memory(error: BaseException) -> bool:
    """Return True for a lack of memory or threads; Python 3.11 has no class for lack of threads."""
    return isinstance(error, MemoryError) or "can't start new thread" in str(error)


@contextlib.contextmanager
def room_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add the file and its disk to errors in the block that report a full disk and name no file."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM or error.filename is not None:
            raise
        disk = f"{error.strerror} on the disk mounted at {mount_point(path)}"
        raise OSError(error.errno, disk, os.fspath(path)) from error


@contextlib.contextmanager
def readable(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


def mount_point(path: str | os.PathLike[str]) -> str:
    place = os.path.realpath(path)
    while place != os.path.dirname(place) and not os.path.ismount(place):
        place = os.path.dirname(place)
    return place


def _full_disk(error: OSError) -> str:
    if error.errno not in NO_ROOM or error.filename is not None:
        return ""
    with contextlib.suppress(OSError):
        folder = tempfile.gettempdir()
        if not has_room(folder):
            return f" on the disk mounted at {mount_point(folder)}"
    return ""


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].removesuffix(".")


def has_room(folder: str) -> bool:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize >= 1 << 20 and (found.f_favail > 0 or not found.f_files)


def _leave(message: str, status: int) -> NoReturn:
    if os.environ.get(TRACEBACK):
        traceback.print_exc()
    print(f"eqforge: {shortened(message, MAX_MESSAGE_CHARS)}", file=sys.stderr)
    raise SystemExit(status)


def is_not_about_gcp(record: logging.LogRecord) -> bool:
    """Filter out Beam's warning on import of an extra that only Dataflow needs."""
    return "apitools not found" not in record.getMessage()


def _forget_output() -> None:
    """Redirect standard output to /dev/null, so that Python's flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
