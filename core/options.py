"""The options of a command: names, groups, types, defaults, help texts and preset values.

A file given with `--config` has the options' names as keys, `max-side = 256`; an environment
variable is named `EQFORGE_MAX_SIDE`. The command line overrides the file, which overrides the
environment.
"""

import dataclasses
import functools
import itertools
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import tyro
from tyro.conf import FlagCreatePairsOff, Positional, Suppress, UseAppendAction
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from eqforge.core.errors import InputError
from eqforge.core.visible import nearest, series

POSITIONAL, NO_PAIR, APPENDS, _HIDDEN = (
    get_args(mark[bool])[1] for mark in (Positional, FlagCreatePairsOff, UseAppendAction, Suppress)
)
_NUMBER = re.compile(r"-\.?\d")


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """An option of a command.

    Attributes:
        name: without dashes and without the names of groups.
        group: the field that holds its settings class; "" for the command's own options.
        default: `tyro.MISSING` if the option is required.
        owner: the settings class that declares it.
    """

    name: str
    kind: Any
    marks: tuple[Any, ...] = ()
    group: str = ""
    default: Any = tyro.MISSING
    owner: type

    @property
    def is_positional(self) -> bool:
        return POSITIONAL in self.marks

    @property
    def is_list(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def spec(self) -> PrimitiveConstructorSpec[Any]:
        """Parser and formatter of its values; in plain words inside `shell.in_words`."""
        kind = get_args(self.kind)[0] if APPENDS in self.marks else self.kind
        specs = [mark for mark in self.marks if isinstance(mark, PrimitiveConstructorSpec)]
        found = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(kind, set()))
        spec = specs[0] if specs else found
        assert isinstance(spec, PrimitiveConstructorSpec), self.name
        return spec

    @property
    def text(self) -> str:
        help_text = next((mark.help for mark in self.marks if getattr(mark, "help", None)), None)
        text = help_text or _texts(self.owner).get(self.name.replace("-", "_")) or ""
        return "\n\n".join(" ".join(each.split()) for each in text.split("\n\n"))

    def read(self, values: Sequence[str], where: str) -> None:
        try:
            spec = self.spec
            if spec.choices and (wrong := [text for text in values if text not in spec.choices]):
                raise ValueError(f"expected one of {', '.join(spec.choices)}; found {wrong[0]!r}")
            spec.instance_from_str(list(values))
        except ValueError as error:
            raise InputError(f"{where}: {error}") from error


def options_of(kind: type, defaults: Any = None, group: str = "") -> Iterator[Option]:
    """Yield the options of a settings class and of its groups, which are dataclass fields.

    Args:
        defaults: an instance with the defaults; None takes the class's own.
    """
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        found = hints[field.name]
        hint, *marks = get_args(found) if get_origin(found) is Annotated else (found,)
        default = field.default
        if defaults is not None:
            default = getattr(defaults, field.name)
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if dataclasses.is_dataclass(hint):
            inner = default if isinstance(default, cast(type, hint)) else None
            yield from options_of(cast(type, hint), inner, field.name)
        elif _HIDDEN not in marks:
            yield Option(
                name=field.name.replace("_", "-"),
                kind=hint,
                marks=tuple(marks),
                group=group,
                default=tyro.MISSING if default is dataclasses.MISSING else default,
                owner=kind,
            )


@functools.cache
def _texts(kind: type) -> dict[str, str]:
    import docstring_parser  # only for a help text

    found: dict[str, str] = {}
    for each in reversed(kind.__mro__[:-1]):
        try:
            docstring = docstring_parser.parse_from_object(each)
        except OSError:  # a class without a source, as of make_dataclass
            continue
        found |= {one.arg_name: one.description for one in docstring.params if one.description}
    return found


def name_of(argument: str) -> str | None:
    is_option = argument.startswith("--") and argument != "--"
    return argument[2:].partition("=")[0].replace("_", "-") if is_option else None


def check_line(options: Sequence[Option], argv: Sequence[str], program: str) -> None:
    """Check names, values and missing options of a command line before it is parsed.

    Raises:
        InputError: in one sentence; tyro would print a page.
    """
    known = {option.name: option for option in options if not option.is_positional}
    option_names, rest = set[str](), list(argv)
    positional: list[str] = []
    while rest:
        argument = rest.pop(0)
        if (name := name_of(argument)) is None:
            positional.append(argument)
            continue
        option = known.get(name) or known.get(name.removeprefix("no-"))
        if option is None:
            raise InputError(f"unknown option --{name}{_hint(name, known, program)}")
        option_names.add(option.name)
        if option.kind is bool:
            continue
        values = [argument.partition("=")[2]] if "=" in argument else []
        number = option.spec.nargs
        most = number if isinstance(number, int) else len(argv)
        while rest and len(values) < most and _is_value(rest[0]):
            values.append(rest.pop(0))
        if values:
            option.read(values, f"--{name}")
        elif number != "*":
            raise InputError(f"--{name}: expected {option.spec.metavar} after this option")
    missing = [f"--{name}" for name, each in known.items() if each.default is tyro.MISSING]
    missing = [name for name in missing if name[2:] not in option_names]
    own = [option for option in options if option.is_positional]
    if positional and not own:
        raise InputError(
            f"unexpected argument {positional[0]!r}. For the options, run {program} --help"
        )
    named = [each.name.upper() for each in own if each.default is tyro.MISSING][len(positional) :]
    if missing or named:
        needed = series((*named, *missing))
        raise InputError(f"{program} needs {needed}. For an example, run {program} --help")


def _is_value(argument: str) -> bool:
    return not argument.startswith("-") or argument == "-" or bool(_NUMBER.match(argument))


def _hint(name: str, known: dict[str, Option], program: str) -> str:
    if name == "dry-run":
        return "; run `eqforge plan` to preview a build"
    hint = nearest(f"--{name}", [f"--{other}" for other in sorted(known)])
    return hint or f". For the options, run {program} --help-all"


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
    for source, values in (*_from_file(argv, options), *_from_variables(environment, options)):
        for name, value in values.items():
            if name not in sources:
                sources[name] = source
                arguments += _checked(options[name], value, source)
    sources.pop(CONFIG, None)
    return Presets(arguments=tuple(arguments), sources=sources)


def _from_file(
    argv: Sequence[str], options: Mapping[str, Option]
) -> Iterator[tuple[str, dict[str, Any]]]:
    paths = [b for a, b in itertools.pairwise(argv) if a == f"--{CONFIG}"]
    paths += [text.partition("=")[2] for text in argv if text.startswith(f"--{CONFIG}=")]
    if not paths:
        return
    from eqforge.core.files.checked import read_toml

    path = Path(paths[-1])
    try:
        values = read_toml(path)
    except InputError as error:
        raise InputError(f"--{CONFIG} {error}") from error
    named = {name.replace("_", "-"): value for name, value in values.items()}
    for name in named:
        if name not in options or name == CONFIG:
            hint = nearest(name, options) or "; --help lists the command's options"
            raise InputError(f"--{CONFIG} {path}: unknown option {name!r}{hint}")
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
    raise InputError(f"{source}: {name} is {value!r}; expected a string or a number")
