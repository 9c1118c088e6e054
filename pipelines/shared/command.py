"""The command line of a pipeline: made from its configuration, with strict parsing."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args

import tyro

from eqforge.core import shell
from eqforge.core.console import ConsoleOptions, DocumentOptions
from eqforge.pipelines.shared.settings import DatasetConfig, Mode, RunSettings

Configured = TypeVar("Configured", bound=DatasetConfig)


def parse(
    kind: type[Configured],
    defaults: Callable[[Mode], dict[str, Any]],
    argv: Sequence[str],
    program: str,
    note: str = "",
) -> tuple[Configured, list[str]]:
    """Returns the configuration of a command line, and Beam's arguments; see parse_line."""
    line, beam_args = parse_line(kind, defaults, argv, program, note)
    return line.settings, beam_args


def parse_line(
    kind: type[Configured],
    defaults: Callable[[Mode], dict[str, Any]],
    argv: Sequence[str],
    program: str,
    note: str = "",
    console: type[ConsoleOptions] = DocumentOptions,
    default: Configured | None = None,
) -> tuple[shell.CommandLine, list[str]]:
    """Returns a parsed command line, and Beam's arguments after `--`.

    Args:
      kind: the configuration's dataclass.
      defaults: the fields that a mode sets.
      argv: the arguments after the command.
      program: what the help calls the command.
      note: added to the help.
      console: the options of the output.
      default: the configuration of an empty command line; None takes that of the mode.

    Raises:
      InputError, SystemExit: see shell.parse_line.
    """
    split = list(argv).index("--") if "--" in argv else len(argv)
    line = shell.parse_line(
        kind,
        argv[:split],
        prog=program,
        description=f"{kind.__doc__} {note}".strip(),
        console=console,
        default=lambda own: default or default_config(kind, defaults, _mode_of(own)),
    )
    return line, list(argv[split + 1 :])


def _mode_of(arguments: Sequence[str]) -> Mode:
    """Returns the mode that a command line asks for, before it is parsed: defaults depend on it."""
    given = [value for flag, value in itertools.pairwise(arguments) if flag == "--mode"]
    given += [text.partition("=")[2] for text in arguments if text.startswith("--mode=")]
    return "paper" if given[-1:] == ["paper"] else "corrected"


def default_config(
    kind: type[Configured], defaults: Callable[[Mode], dict[str, Any]], mode: Mode = "corrected"
) -> Configured:
    """Returns the configuration of an empty command line, without its required fields."""
    assert mode in get_args(Mode)
    values: dict[str, Any] = {
        field.name: tyro.MISSING
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    values["run"] = RunSettings(output=tyro.MISSING)
    values |= {"mode": mode, **defaults(mode)}
    return kind(**values)
