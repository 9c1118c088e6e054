"""The errors eqforge raises on purpose.

EqforgeError
  InputError      the user's input or settings are wrong; the command line exits with 2
  BuildError      a run ended before its dataset was complete; the command line exits with 1
  MissingExtra    an optional package is not installed; the command line exits with 2
"""

import contextlib
import os
import select
import sys
from collections.abc import Iterator

from eqforge.schemas.visible import shortened

MAX_MESSAGE_CHARS = 4_000
"""Of a message on a terminal; what comes after them is cut."""


class EqforgeError(Exception):
    """Any error eqforge raises on purpose; its text says what to do."""


class InputError(EqforgeError):
    """An input file, a setting or an output folder is not what it has to be."""


class BuildError(EqforgeError):
    """A run ended before its dataset was complete."""


class MissingExtra(EqforgeError):
    """An optional package is missing.

    Args:
      package: the name that could not be imported.
      extra: the extra of eqforge that installs it.
      then: a command that is needed after that; none for most packages.
    """

    def __init__(self, package: str, extra: str, then: str = "") -> None:
        """Names the missing package and what brings it."""
        commands = [f"pip install 'eqforge[{extra}]'", *([then] if then else [])]
        super().__init__(f"{package} is not installed: {' && '.join(commands)}")
        self.package, self.extra, self.then = package, extra, then

    def __reduce__(self) -> tuple[type["MissingExtra"], tuple[str, str, str]]:
        """Lets the error travel from a worker to the driver."""
        return type(self), (self.package, self.extra, self.then)


@contextlib.contextmanager
def reported_errors(*, goes_on: bool = False) -> Iterator[None]:
    """Turns eqforge's own errors, and the system's, into one message and an exit status.

    Args:
      goes_on: whether the same command goes on where Ctrl-C stopped it, which is then said.

    Raises:
      SystemExit: 1 for a build that did not finish or a system that refused, as one with a full
        disk; 2 for wrong input, 130 for Ctrl-C. Where whoever read the output, such as `head`, has
        seen enough, it is 1 without a message.
    """
    try:
        yield
    except BuildError as error:
        _leave(str(error), 1)
    except EqforgeError as error:
        _leave(str(error), 2)
    except BrokenPipeError as error:
        if not _is_reader_gone():
            _leave(f"the system refused: {error}", 1)
        _forget_output()
        raise SystemExit(1) from error
    except OSError as error:
        if error.errno is None:
            raise
        try:
            sys.stdout.flush()
        except OSError:
            _forget_output()
        _leave(f"the system refused: {error}", 1)
    except KeyboardInterrupt:
        then = "; the same command goes on where this one stopped" if goes_on else ""
        _leave(f"interrupted{then}", 130)


def _leave(message: str, status: int) -> None:
    tell("eqforge", message)
    raise SystemExit(status)


def tell(program: str, error: object) -> None:
    """Says on standard error what is wrong: one line of bounded length that no terminal obeys."""
    print(f"{program}: {shortened(str(error), MAX_MESSAGE_CHARS)}", file=sys.stderr)


def _is_reader_gone() -> bool:
    poll = select.poll()
    with contextlib.suppress(ValueError):  # there may be no such file, as in a notebook
        poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _forget_output() -> None:
    """Lets Python find nothing wrong when it writes the rest of the output at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
