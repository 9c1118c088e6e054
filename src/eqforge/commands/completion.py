"""`eqforge completion`: the script that completes commands, datasets, options and values by Tab.

It holds all words, so that a shell answers at once without starting Python.
"""

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

import tyro

from eqforge.core.console import ConsoleOptions, DocumentOptions
from eqforge.core.errors import MissingExtra
from eqforge.core.presets import Option, options_of
from eqforge.core.shell import shell
from eqforge.evaluation.training.settings import FinetuneSettings
from eqforge.pipelines import combined
from eqforge.pipelines.shared.planning import PlanOptions
from eqforge.pipelines.shared.registry import pipeline_of
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import DATASETS
from eqforge.transforms.export.formats import FORMATS

RECIPE = Option(name="recipe", kind=str, marks=())
"""It chooses the settings, so that none of them has it; it may stand in place of the dataset."""

_BASH = """_eqforge() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
  case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}} $prev" in
{cases}
  esac
  [[ $COMP_CWORD == 1 ]] && words="{commands}"
  [[ $COMP_CWORD == 2 && ${{COMP_WORDS[1]}} == build ]] && words="{datasets} --recipe"
  [[ $COMP_CWORD == 2 && ${{COMP_WORDS[1]}} == import ]] && words="{benchmarks} --recipe"
  [[ $COMP_CWORD == 2 && ${{COMP_WORDS[1]}} == plan ]] && words="{datasets} {benchmarks} --recipe"
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _eqforge eqforge
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Print the script that completes commands, datasets, options and values by Tab."""

    shell: Annotated[Literal["bash", "zsh", "fish"], tyro.conf.Positional]
    """The shell; docs/guides/commands.md has the line that installs the script."""


def complete(arguments: Arguments) -> int:
    """Prints the script."""
    print("\n".join(_fish()) if arguments.shell == "fish" else _bash(arguments.shell), end="")
    return 0


def _bash(name: str) -> str:
    cases = [
        f'    {_beginning(place)}"--{option.name}") words="{" ".join(values)}" ;;'
        for place, options in _places()
        for option in options
        if (values := _values(place, option))
    ]
    cases += [
        f'    "{place} "*) words="{" ".join(_flags(options))}" ;;' for place, options in _places()
    ]
    named = {"commands": _commands(), "datasets": DATASETS, "benchmarks": BENCHMARKS}
    words = {name: " ".join(each) for name, each in named.items()}
    start = "autoload -U +X bashcompinit && bashcompinit\n" if name == "zsh" else ""
    return start + _BASH.format(cases="\n".join(cases), **words)


def _beginning(place: str) -> str:
    """Returns the pattern of the first two words of a command line, of which one may be free."""
    return f'"{place} "' if " " in place else f'"{place} "*" "'


def _fish() -> Iterator[str]:
    yield "complete -c eqforge -n __fish_use_subcommand -f -a '" + " ".join(_commands()) + "'"
    chosen = "__fish_seen_subcommand_from"
    for commands, known in (
        ("build", DATASETS),
        ("import", BENCHMARKS),
        ("plan", [*DATASETS, *BENCHMARKS]),
    ):
        names = " ".join(known)
        first = f"{chosen} {commands}; and not {chosen} {names}"
        yield f"complete -c eqforge -n '{first}' -f -a '{names}'"
        if commands != "import":  # whose options follow, whatever the benchmark
            yield f"complete -c eqforge -n '{first}' -l recipe -r"
    for place, options in _places():
        seen = "; and ".join(f"{chosen} {word}" for word in place.split())
        for option in options:
            line = f"complete -c eqforge -n '{seen}' -l {option.name}"
            values = _values(place, option)
            yield f"{line} -x -a '{' '.join(values)}'" if values else line
            if option.kind is bool:
                yield f"complete -c eqforge -n '{seen}' -l no-{option.name}"
    yield ""


def _places() -> Iterator[tuple[str, list[Option]]]:
    """Yields what a command line begins with, and the options that it takes then."""
    for name, (module, _) in _commands().items():
        if name in ("plan", "build"):
            console = PlanOptions if name == "plan" else DocumentOptions
            for dataset in (*DATASETS, *BENCHMARKS) if name == "plan" else DATASETS:
                yield f"{name} {dataset}", [*_options(pipeline_of(dataset).config, console), RECIPE]
        elif name == "import":  # all have the same
            config = pipeline_of(next(iter(BENCHMARKS))).config
            yield name, [*_options(config, DocumentOptions), RECIPE]
        elif name == "combine":
            yield name, _options(combined.Config, DocumentOptions)
        else:
            yield from _of_command(name, module)


def _commands() -> dict[str, tuple[str, str]]:
    from eqforge.cli import COMMANDS  # which knows this module by its name alone

    return COMMANDS


def _of_command(name: str, module: str) -> Iterator[tuple[str, list[Option]]]:
    if name == "finetune":
        yield name, _options(FinetuneSettings, ConsoleOptions)
        return
    try:
        main = importlib.import_module(module).main
    except (MissingExtra, ImportError):
        return  # it cannot run either
    for kind in get_args(main.settings):
        yield f"{name} {kind.__name__.lower()}", _options(kind, main.console)
    if isinstance(main.settings, type):
        yield name, _options(main.settings, main.console)


def _options(*kinds: type) -> list[Option]:
    return [option for kind in kinds for option in options_of(kind)]


def _values(place: str, option: Option) -> tuple[str, ...]:
    """Returns the values that an option of a command may have, if there are few."""
    if (place, option.name) == ("export", "format"):
        return tuple(FORMATS)
    kinds = (option.kind, *get_args(option.kind))
    found = [get_args(kind) for kind in kinds if get_origin(kind) is Literal]
    return tuple(map(str, found[0])) if found else ()


def _flags(options: Iterable[Option]) -> Iterator[str]:
    yield "--help"
    for option in options:
        yield f"--{option.name}"
        if option.kind is bool:
            yield f"--no-{option.name}"


main: Any = shell("eqforge completion", Arguments, complete, keeps_output=True)
"""Prints the script for the shell that a command line names."""
