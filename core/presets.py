"""Options from a file and from the environment, as arguments of a command line.

A file has the options' names as keys, `max-side = 256`; a variable is named `EQFORGE_MAX_SIDE`. The
command line overrides the file, which overrides the environment.
"""

import itertools
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eqforge.core.errors import InputError
from eqforge.core.options import APPENDS, NO_PAIR, Option, name_of
from eqforge.core.visible import nearest

PREFIX = "EQFORGE_"
CONFIG = "config"
COMMAND_LINE = "command line"
_WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class Presets:
    """Options from files and variables.

    Attributes:
      arguments: for the options that the command line omits.
      sources: origin of each option: `command line`, a file or a variable.
    """

    arguments: tuple[str, ...]
    sources: dict[str, str]


def read_presets(
    known: Sequence[Option], argv: Sequence[str], environment: Mapping[str, str] = os.environ
) -> Presets:
    """Return the options set by the environment and by the file given with `--config`."""
    options = {option.name: option for option in known if not option.is_positional}
    sources = {
        name: COMMAND_LINE
        for name in options
        if any(name_of(text) in (name, f"no-{name}") for text in argv)
    }
    arguments: list[str] = []
    for source, given in (*_from_file(argv, options), *_from_variables(environment, options)):
        for name, value in given.items():
            if name not in sources:
                sources[name] = source
                arguments += _checked(options[name], value, source)
    sources.pop(CONFIG, None)
    return Presets(arguments=tuple(arguments), sources=sources)


def _from_file(
    argv: Sequence[str], options: Mapping[str, Option]
) -> Iterator[tuple[str, dict[str, Any]]]:
    given = [b for a, b in itertools.pairwise(argv) if a == f"--{CONFIG}"]
    given += [text.partition("=")[2] for text in argv if text.startswith(f"--{CONFIG}=")]
    if not given:
        return
    from eqforge.core.files.checked import read_toml

    path = Path(given[-1])
    try:
        values = read_toml(path)
    except InputError as error:
        raise InputError(f"--{CONFIG} {error}") from error
    named = {name.replace("_", "-"): value for name, value in values.items()}
    for name in named:
        if name not in options or name == CONFIG:
            hint = nearest(name, options) or "; --help lists the command's options"
            raise InputError(f"--{CONFIG} {path}: no option {name!r}{hint}")
    yield str(path), named


def _from_variables(
    environment: Mapping[str, str], options: Mapping[str, Option]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, option in options.items():
        variable = PREFIX + name.replace("-", "_").upper()
        text = environment.get(variable)
        if text and name != CONFIG:
            yield variable, {name: shlex.split(text) if option.is_list else text}


def _checked(option: Option, value: Any, source: str) -> list[str]:
    """Return a value as arguments, checked here because the parser does not know their source."""
    arguments = _arguments(option, value, source)
    _, *values = [*arguments[0].split("=", 1), *arguments[1:]] if arguments else [""]
    if values:
        option.read(values, f"{source}: {option.name}")
    return arguments


def _arguments(option: Option, value: Any, source: str) -> list[str]:
    name = option.name
    if option.kind is bool:
        value = _WORDS.get(value.lower(), value) if isinstance(value, str) else value
        if not isinstance(value, bool):
            raise InputError(f"{source}: {name} is {value!r}; expected true or false")
        has_no = NO_PAIR not in option.marks  # without it, false is the default
        return [f"--{name}"] if value else [f"--no-{name}"] if has_no else []
    if isinstance(value, list) and APPENDS in option.marks:
        return [f"--{name}={each}" for each in value]
    if isinstance(value, list) and option.is_list:
        return [f"--{name}", *map(str, value)]
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return [f"--{name}", str(value)] if option.is_list else [f"--{name}={value}"]
    raise InputError(f"{source}: {name} is {value!r}; expected a text or a number")
