"""Options from a file and from the environment, as arguments of a command line.

A file has the options' names as keys, `max-side = 256`; a variable is named `EQFORGE_MAX_SIDE`. An
option of the command line beats the file, which beats the environment.
"""

import dataclasses
import itertools
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from tyro.conf import FlagCreatePairsOff, Positional, UseAppendAction
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from eqforge.core.errors import InputError
from eqforge.core.visible import nearest

PREFIX = "EQFORGE_"
CONFIG = "config"
COMMAND_LINE = "command line"
_POSITIONAL, _NO_PAIR, _APPENDS = (
    get_args(mark[bool])[1] for mark in (Positional, FlagCreatePairsOff, UseAppendAction)
)
_WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class Presets:
    """Options from files and variables.

    Attributes:
      arguments: for the options that the command line omits.
      sources: where options were set, by their names: `command line`, a file or a variable.
    """

    arguments: tuple[str, ...]
    sources: dict[str, str]


def read_presets(
    kinds: Sequence[type], argv: Sequence[str], environment: Mapping[str, str] = os.environ
) -> Presets:
    """Return the options that a file, named in `argv` by `--config`, and the environment set."""
    options = {option.name: option for kind in kinds for option in options_of(kind)}
    sources = {
        name: COMMAND_LINE
        for name in options
        if any(_option(text) in (name, f"no-{name}") for text in argv)
    }
    arguments: list[str] = []
    for source, given in (*_from_file(argv, options), *_from_variables(environment, options)):
        for name, value in given.items():
            if name not in sources:
                sources[name] = source
                arguments += _checked(options[name], value, source)
    sources.pop(CONFIG, None)
    return Presets(arguments=tuple(arguments), sources=sources)


def check_names(kinds: Sequence[type], argv: Sequence[str]) -> None:
    """Check that a command line has no misspelt option; the parser checks the rest."""
    known = {"help"} | {option.name for kind in kinds for option in options_of(kind)}
    for name in filter(None, map(_option, argv)):
        is_known = name.removeprefix("no-") in known or name.startswith("tyro-")
        hint = "" if is_known else nearest(f"--{name}", [f"--{other}" for other in sorted(known)])
        if hint:
            raise InputError(f"no option --{name}{hint}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """An option of a command: its name, type and tyro's marks; groups are not part of the name."""

    name: str
    kind: Any
    marks: tuple[Any, ...]


def options_of(kind: type) -> Iterator[Option]:
    """Yield the options of a dataclass, without positional ones."""
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        found = hints[field.name]
        hint, *marks = get_args(found) if get_origin(found) is Annotated else (found,)
        if dataclasses.is_dataclass(hint):
            yield from options_of(cast(type, hint))
        elif _POSITIONAL not in marks:
            yield Option(name=field.name.replace("_", "-"), kind=hint, marks=tuple(marks))


def _option(argument: str) -> str | None:
    is_option = argument.startswith("--")
    return argument[2:].partition("=")[0].replace("_", "-") if is_option else None


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
            yield variable, {name: shlex.split(text) if _is_list(option) else text}


def _checked(option: Option, value: Any, source: str) -> list[str]:
    """Return a value as arguments, checked here: the parser does not know their source."""
    arguments = _arguments(option, value, source)
    _, *values = [*arguments[0].split("=", 1), *arguments[1:]] if arguments else [""]
    spec = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(option.kind, set()))
    if values and isinstance(spec, PrimitiveConstructorSpec):
        try:
            if spec.choices and (wrong := [text for text in values if text not in spec.choices]):
                raise ValueError(f"found {wrong[0]!r}, expected one of {', '.join(spec.choices)}")
            spec.instance_from_str(values)
        except ValueError as error:
            raise InputError(f"{source}: {option.name}: {error}") from error
    return arguments


def _is_list(option: Option) -> bool:
    return get_origin(option.kind) is tuple


def _arguments(option: Option, value: Any, source: str) -> list[str]:
    name = option.name
    if option.kind is bool:
        value = _WORDS.get(value.lower(), value) if isinstance(value, str) else value
        if not isinstance(value, bool):
            raise InputError(f"{source}: {name} is {value!r}; expected true or false")
        has_no = _NO_PAIR not in option.marks  # without it, false is the default
        return [f"--{name}"] if value else [f"--no-{name}"] if has_no else []
    if isinstance(value, list) and _APPENDS in option.marks:
        return [f"--{name}={each}" for each in value]
    if isinstance(value, list) and _is_list(option):
        return [f"--{name}", *map(str, value)]
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return [f"--{name}", str(value)] if _is_list(option) else [f"--{name}={value}"]
    raise InputError(f"{source}: {name} is {value!r}; expected a text or a number")
