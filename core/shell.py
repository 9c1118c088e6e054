"""The wrapper of every command: options, one-sentence errors, signals."""

import dataclasses
import functools
import operator
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, get_args

import tyro
from tyro.conf import OmitArgPrefixes
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from eqforge.core.console import ConsoleOptions, apply_console_options, session
from eqforge.core.errors import InputError, reported_errors
from eqforge.core.files.owned import check_outputs
from eqforge.core.help import ALL, Help, asked_help, subcommands_help
from eqforge.core.identity import Trace
from eqforge.core.options import check_line, options_of, read_presets
from eqforge.core.ranges import check_numbers
from eqforge.core.urls import copy_of, takes_urls
from eqforge.core.visible import nearest

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)|data:")
_TYPES = {"STR": "TEXT", "INT": "NUMBER", "FLOAT": "NUMBER"}
_TYPE = re.compile(r"\b(STR|INT|FLOAT)\b")


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """The `main` of a command.

    Attributes:
      program: its name in the help, such as `eqforge lint`.
      settings: the class of its options, or a union of such classes; its docstring is the help.
      run: does the work, and returns the exit status if it is not 0.
      example: a working command line, for the help; one for each subcommand.
      basics: the options that the help shows first; see Help.
      console: its output options: DocumentOptions for a command that prints a document.
      keeps_output: see `console.session`.
    """

    program: str
    settings: Any
    run: Callable[[Any], int | None]
    _: dataclasses.KW_ONLY
    example: str = ""
    basics: tuple[str, ...] = ()
    console: type[ConsoleOptions] = ConsoleOptions
    keeps_output: bool = False

    def __call__(self, argv: Sequence[str] | None = None) -> int:
        with reported_errors(), session(keeps_output=self.keeps_output):
            about = Help(program=self.program, example=self.example, basics=self.basics)
            return self.run(parse_line(self.settings, argv, about, self.console).settings) or 0
        raise AssertionError("reported_errors swallows nothing")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CommandLine:
    """A parsed command line; `sources` names where options were set (see Presets)."""

    settings: Any
    console: Any
    sources: dict[str, str]


def parse_line(
    settings: Any,
    argv: Sequence[str] | None,
    about: Help,
    console: type[ConsoleOptions] = ConsoleOptions,
    default: Callable[[Sequence[str]], Any] | None = None,
) -> CommandLine:
    """Parse a command line, and apply its output options to the session.

    Args:
      settings: a dataclass, or a union of dataclasses: one for each subcommand.
      default: returns the settings of an empty command line, given all arguments; None takes
        the dataclass's own.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    chosen = list[str]()
    if not isinstance(settings, type):
        settings, chosen = _subcommand(settings, arguments, about)
        program = " ".join((about.program, *chosen))
        own = (line for line in about.example.splitlines() if line.startswith(program))
        about = dataclasses.replace(about, program=program, example="\n".join(own))
        arguments = arguments[1:]
    with in_words():
        usual = default(arguments) if default is not None else None
        options = [*options_of(settings, usual), *options_of(console, group=_CONSOLE)]
        if (text := asked_help(about, settings, options, arguments)) is not None:
            print(text)
            raise SystemExit(0)
        presets = read_presets(options, arguments)
        arguments += presets.arguments
        start = tyro.MISSING_NONPROP
        if default is not None:
            known = default(arguments)
            options = [*options_of(settings, known), *options_of(console, group=_CONSOLE)]
            values = {field.name: getattr(known, field.name) for field in dataclasses.fields(known)}
            start = with_console(type(known), console)(**values)
        check_line(options, arguments, about.program)
        found = tyro.cli(
            with_console(settings, console), args=arguments, default=start, prog=about.program
        )
    field_values = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    output = field_values.pop(_CONSOLE)
    apply_console_options(output)
    parsed = settings(**field_values)
    check_numbers(parsed)
    check_outputs(parsed)
    common = {option.name for option in options_of(console)}
    sources = {name: source for name, source in presets.sources.items() if name not in common}
    return CommandLine(settings=parsed, console=output, sources=sources)


def _subcommand(settings: Any, argv: Sequence[str], about: Help) -> tuple[type, list[str]]:
    """Return the settings of the subcommand that comes first, and its name."""
    kinds = {kind.__name__.lower(): kind for kind in get_args(settings)}
    if argv and argv[0] in kinds:
        return kinds[argv[0]], [argv[0]]
    if argv and argv[0] not in ("-h", "--help", ALL):
        raise InputError(f"{about.program}: unknown command {argv[0]!r}{nearest(argv[0], kinds)}")
    print(subcommands_help(about, kinds))
    raise SystemExit(0 if argv else 2)


def local_path(text: str) -> Path:
    """Return the path that an argument names; for a file in a store, the path of its copy."""
    if "://" in text and (copy := copy_of(text)) is not None:
        return copy
    if _URL.match(text):
        raise InputError(f"{text} is a URL; expected a local file or folder")
    return Path(text)


def media_root(text: str) -> str:
    return text if _URL.match(text) else str(Path(text))


MediaRoot = Annotated[
    str,
    Trace.GIVEN,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="PATH|URL",
        instance_from_str=lambda arguments: media_root(arguments[0]),
        is_instance=lambda value: isinstance(value, str),
        str_from_instance=lambda value: [value],
    ),
]
"""A folder of media: local, in a store, or tar shards."""

_CONSOLE = "console"


def with_console(settings: Any, console: type[ConsoleOptions]) -> Any:
    if not isinstance(settings, type):
        return functools.reduce(
            operator.or_, (with_console(kind, console) for kind in get_args(settings))
        )
    return dataclasses.make_dataclass(
        settings.__name__,
        [(_CONSOLE, Annotated[console, OmitArgPrefixes], console())],
        bases=(settings,),
        namespace={"__doc__": settings.__doc__},
        frozen=True,
        kw_only=True,
    )


def in_words() -> AbstractContextManager[Any]:
    """Return the context in which types read as words, and paths reject or fetch URLs."""
    registry = ConstructorRegistry()
    known: list[PrimitiveTypeInfo] = []

    @registry.primitive_rule
    def path(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Path] | None:
        if info.type is not Path:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="PATH|URL" if takes_urls() else "PATH",
            instance_from_str=lambda arguments: local_path(arguments[0]),
            is_instance=lambda value: isinstance(value, Path),
            str_from_instance=lambda value: [str(value)],
        )

    @registry.primitive_rule
    def words(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        if info.type is Path or any(info is other for other in known):
            return None
        known.append(info)
        spec = ConstructorRegistry.get_primitive_spec(info)  # of the other rules
        known.pop()
        if isinstance(spec, PrimitiveConstructorSpec):
            return dataclasses.replace(
                spec,
                metavar=_in_words(spec.metavar),
                instance_from_str=_read_in_words(spec, info.type),
            )
        return None

    return registry


def _read_in_words(spec: PrimitiveConstructorSpec[Any], kind: Any) -> Callable[[list[str]], Any]:
    def read(arguments: list[str]) -> Any:
        try:
            return spec.instance_from_str(arguments)
        except ValueError as error:
            text = " ".join(arguments)
            raise ValueError(f"expected {_expected(kind, spec, text)}") from error

    return read


def _expected(kind: Any, spec: PrimitiveConstructorSpec[Any], text: str) -> str:
    """Describe the values of an option, and show how to write a percentage as a number."""
    kinds = (kind, *get_args(kind))
    numbers = {float: "a number", int: "a whole number"}
    number = next((numbers[each] for each in numbers if each in kinds), None)
    if number is None:
        return f"{_in_words(spec.metavar)}, found {text!r}"
    percentage = re.fullmatch(r"(\d+(?:\.\d*)?) ?%", text) if float in kinds else None
    hint = f"; write {float(percentage[1]) / 100:g} for {text}" if percentage else ""
    return f"{number}{' or None' if type(None) in kinds else ''}, found {text!r}{hint}"


def _in_words(metavar: str) -> str:
    """Return a type as words: `{None}|INT` is `NUMBER or None`, `[STR [STR ...]]` `TEXT ...`."""
    text = re.sub(r"\[(.+) \[(?:\1 )?\.\.\.\]\]", r"\1 ...", metavar)
    text = re.sub(r"^\{None\}\|(.+)$", r"\1 or None", text)
    text = re.sub(r"^\{None,(.+)\}$", r"{\1} or None", text)
    return _TYPE.sub(lambda found: _TYPES[found[0]], text)
