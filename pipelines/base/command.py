"""The command line of a dataset's pipeline, made from its configuration."""

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eqforge.core import shell, signals
from eqforge.core.console import ConsoleOptions, DocumentOptions, give, session
from eqforge.core.errors import reported_errors
from eqforge.core.urls import copied_urls
from eqforge.pipelines.base.pipeline import Pipeline
from eqforge.pipelines.base.settings import Mode
from eqforge.transforms.engines.run_folder import private_folder


@dataclass(frozen=True, slots=True)
class Main:
    """The command line of a dataset's pipeline."""

    pipeline: type[Pipeline[Any]]
    command: str = "build"

    def __call__(self, argv: Sequence[str]) -> int:
        """Builds the dataset as its command line says; returns the exit status."""
        return build_command(self.pipeline, argv, self.command)


def import_command(pipeline: type[Pipeline[Any]], argv: Sequence[str]) -> int:
    """Imports a benchmark as its command line says; returns the exit status."""
    return build_command(pipeline, argv, "import")


def build_command(
    pipeline: type[Pipeline[Any]], argv: Sequence[str], command: str = "build"
) -> int:
    """Builds a dataset as its command line says; returns the exit status."""
    rest = contextlib.ExitStack()
    with reported_errors(goes_on=True), rest, session(), inputs_from_stores():
        program = f"eqforge {command} {pipeline.name}".rstrip()
        line, beam_args = parse_line(pipeline, argv, program)
        with signals.idle():  # an exception may leave a library half loaded
            from eqforge.pipelines.base.runner import build_dataset
        report = build_dataset(pipeline(line.settings), beam_args, print)
        rest.enter_context(signals.ignored())
        give(report)
        return 0
    return 2


def parse_line(
    pipeline: type[Pipeline[Any]],
    argv: Sequence[str],
    program: str,
    note: str = "",
    console: type[ConsoleOptions] = DocumentOptions,
    default: Callable[[Mode], Any] | None = None,
) -> tuple[shell.CommandLine, list[str]]:
    """Returns a parsed command line, and Beam's arguments after `--`.

    Args:
      pipeline: the dataset.
      argv: the arguments after the command.
      program: what the help calls the command.
      note: added to the help.
      console: the options of the output.
      default: returns the configuration of an empty command line in a mode.

    Raises:
      InputError, SystemExit: see shell.parse_line.
    """
    split = list(argv).index("--") if "--" in argv else len(argv)
    usual = default or (lambda mode: pipeline.usual(mode))
    line = shell.parse_line(
        pipeline.Config,
        argv[:split],
        prog=program,
        description=f"{pipeline.Config.__doc__} {note}".strip(),
        console=console,
        default=lambda own: usual(_mode_of(own)),
    )
    return line, list(argv[split + 1 :])


def _mode_of(arguments: Sequence[str]) -> Mode:
    """Returns the mode that a command line asks for, before it is parsed: defaults depend on it."""
    given = [value for flag, value in itertools.pairwise(arguments) if flag == "--mode"]
    given += [text.partition("=")[2] for text in arguments if text.startswith("--mode=")]
    return "paper" if given[-1:] == ["paper"] else "corrected"


@contextlib.contextmanager
def inputs_from_stores() -> Iterator[None]:
    """Lets the options of a dataset that name a file take URLs in the block; see `copied_urls`."""
    with private_folder(tempfile.gettempdir()) as folder, copied_urls(folder):
        yield
