"""`eqforge completion`: tyro's script that completes commands, datasets, options and values."""

import contextlib
import dataclasses
import functools
import importlib
import io
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, subcommand

from eqforge.core.console import ConsoleOptions, DocumentOptions
from eqforge.core.errors import MissingExtra
from eqforge.core.shell import Command, in_words, with_console
from eqforge.evaluation.training.command import FinetuneSettings
from eqforge.pipelines import combined, pipeline_of
from eqforge.pipelines.base.command import PlanOptions
from eqforge.schemas.tables.datasets import MADE_BY


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Print a shell script for Tab completion of commands, datasets, options and values."""

    shell: Annotated[Literal["bash", "zsh"], tyro.conf.Positional]
    """Your shell. To install the script, see docs/guides/building.md."""


def complete(arguments: Arguments) -> None:
    from eqforge.cli import COMMANDS, module_of  # which knows this module by its name alone

    known = {name: _options(name, module_of(name)) for name in COMMANDS}
    whole = _one_of({name: kind for name, kind in known.items() if kind is not None})
    script = io.StringIO()
    with in_words(), contextlib.redirect_stdout(script), contextlib.suppress(SystemExit):
        tyro.cli(
            whole,
            config=(OmitSubcommandPrefixes, OmitArgPrefixes),
            args=["--tyro-print-completion", arguments.shell],
            prog="eqforge",
        )
    # A shell would take each line of a help text as one more word to choose from.
    text = script.getvalue()
    print(re.sub(r"(?m)^COMPLETION_SPEC.*", lambda line: line[0].replace(r"\n", " "), text))


def _options(name: str, module: str) -> Any:
    if name in ("plan", "build", "import"):
        console = PlanOptions if name == "plan" else DocumentOptions
        return _one_of(
            {each: with_console(pipeline_of(each).Config, console) for each in MADE_BY[name]}
        )
    if name == "combine":
        return with_console(combined.Config, DocumentOptions)
    if name == "finetune":
        return with_console(FinetuneSettings, ConsoleOptions)
    try:
        main = importlib.import_module(f"eqforge.{module}").main
    except (MissingExtra, ImportError):
        return None
    kinds = with_console(main.settings, main.console)
    return kinds if isinstance(kinds, type) else dataclasses.make_dataclass(name, [("of", kinds)])


def _one_of(kinds: Mapping[str, Any]) -> type:
    named = (Annotated[kind, subcommand(name)] for name, kind in kinds.items())
    return dataclasses.make_dataclass("Chosen", [("of", functools.reduce(operator.or_, named))])


main: Any = Command("eqforge completion", Arguments, complete, keeps_output=True)
