"""The wrapper of every command: its options, errors in one sentence, signals."""

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, Protocol

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from eqforge.schemas.errors import InputError, reported_errors
from eqforge.schemas.urls import copy_of, takes_urls

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(://|::)|data:")


class Main(Protocol):
    """Runs a command with `argv`, by default the program's own; returns the exit status."""

    def __call__(self, argv: Sequence[str] | None = None) -> int: ...


def shell(
    program: str,
    settings: Any,
    run: Callable[[Any], int],
    *,
    description: str | None = None,
) -> Main:
    """Returns the `main` of a command.

    Args:
      program: its name in the help, such as `eqforge lint`.
      settings: the class of its options, or a union of such classes; its docstring is the help.
      run: does the work, and returns the exit status.
      description: the help, if it is not the docstring.

    Returns:
      A function of a command line, by default the program's own. It returns the exit status of
      `run`, or raises SystemExit; see reported_errors.
    """

    def main(argv: Sequence[str] | None = None) -> int:
        with reported_errors():
            return run(parse(settings, argv, prog=program, description=description))
        raise AssertionError("reported_errors swallows nothing")

    return main


def parse(settings: Any, argv: Sequence[str] | None, **options: Any) -> Any:
    """Parses a command line into settings; see tyro.cli for the options.

    Raises:
      InputError: a URL is given where a file or folder of this machine is expected.
      SystemExit: help was asked for (0), or an option is unknown or wrong (2).
    """
    with local_paths():
        found = tyro.cli(settings, args=argv, **options)
    check_finite(found)
    return found


def check_finite(settings: Any) -> None:
    """Checks that no setting is NaN or infinite, which every comparison would take its own way.

    Raises:
      InputError: one is.
    """
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            check_finite(value)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                flag = field.name.replace("_", "-")
                raise InputError(f"--{flag} {number}: expected a finite number")


def local_path(text: str) -> Path:
    """Returns the path that an argument names, or that of the copy of a file in a store.

    Raises:
      InputError: it is a URL, in which a path would drop a slash, where `copied_urls` takes none.
    """
    if "://" in text and (copy := copy_of(text)) is not None:
        return copy
    if _URL.match(text):
        raise InputError(f"{text}: is a URL, where a file or folder of this machine is wanted")
    return Path(text)


def media_root(text: str) -> str:
    """Returns the path or URL of a folder that an argument names."""
    return text if _URL.match(text) else str(Path(text))


MediaRoot = Annotated[
    str,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="PATH|URL",
        instance_from_str=lambda arguments: media_root(arguments[0]),
        is_instance=lambda value: isinstance(value, str),
        str_from_instance=lambda value: [value],
    ),
]
"""A folder of media: of this machine, or in a store, or tar shards."""


def local_paths() -> AbstractContextManager[Any]:
    """Returns the context in which options that are paths refuse URLs, or fetch them."""
    registry = ConstructorRegistry()

    @registry.primitive_rule
    def rule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Path] | None:
        if info.type is not Path:
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="PATH|URL" if takes_urls() else "PATH",
            instance_from_str=lambda arguments: local_path(arguments[0]),
            is_instance=lambda value: isinstance(value, Path),
            str_from_instance=lambda value: [str(value)],
        )

    return registry
