"""Settings of commands as keyword arguments: `--max-side 256` is `max_side=256`."""

import contextlib
import dataclasses
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import tyro

from eqforge.core.errors import BuildError, InputError
from eqforge.core.files.owned import check_outputs
from eqforge.core.ranges import check_numbers
from eqforge.core.shell import local_path
from eqforge.core.visible import counted, nearest, series

Settings = TypeVar("Settings")


def settings_from(
    kind: type[Settings], given: Mapping[str, Any], default: Settings | None = None
) -> Settings:
    """Return the settings of a command.

    Args:
      kind: their dataclass; the names of nested groups are not part of option names.
      given: values by the names of the options.
      default: values for missing options; None takes the dataclass's own.
    """
    names = dict(_names(kind))
    if unknown := sorted(given.keys() - names.keys()):
        hint = nearest(unknown[0], names) or f"; the settings are {', '.join(sorted(names))}"
        raise InputError(f"unknown setting {unknown[0]!r}{hint}")
    made = _make(kind, given, default)
    if missing := list(_missing(made)):
        count = counted(len(missing), "required arguments")
        raise InputError(f"missing {count}: {series(map(repr, missing))}")
    check_numbers(made)
    check_outputs(made)
    return made


def _names(kind: type) -> Iterator[tuple[str, Any]]:
    for name, hint in typing.get_type_hints(kind).items():
        if dataclasses.is_dataclass(hint):
            yield from _names(typing.cast(type, hint))
        else:
            yield name, hint


def _make(kind: type[Settings], given: Mapping[str, Any], default: Any) -> Settings:
    values: dict[str, Any] = {}
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(typing.cast(Any, kind)):
        hint, kept = hints[field.name], field.default
        if default is not None:
            kept = getattr(default, field.name)
        elif field.default_factory is not dataclasses.MISSING:
            kept = field.default_factory()
        kept = tyro.MISSING if kept is dataclasses.MISSING else kept
        if dataclasses.is_dataclass(hint):
            kept = None if kept is tyro.MISSING else kept
            values[field.name] = _make(typing.cast(type, hint), given, kept)
        elif field.name in given:
            values[field.name] = _converted(field.name, given[field.name], hint)
        else:
            values[field.name] = kept
    return kind(**values)


def _converted(name: str, value: Any, hint: Any) -> Any:
    if hint == tuple[Path, ...] and isinstance(value, str | Path):
        value = [value]  # a single file, as on a command line
    try:
        return msgspec.convert(_plain(value), hint, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise InputError(f"{name}={value!r}: {_expected(str(error), value, hint)}") from error


def _expected(error: str, value: Any, hint: Any) -> str:
    """Describe what is wrong with a value, with the valid values or in Python's words."""
    kinds = (hint, *typing.get_args(hint))
    known = [typing.get_args(kind) for kind in kinds if typing.get_origin(kind) is typing.Literal]
    if known and isinstance(value, str):
        return f"expected one of {', '.join(map(repr, known[0]))}{nearest(value, known[0])}"
    return error.replace("`array`", "a list").replace("`object`", "a mapping")


@contextlib.contextmanager
def in_keywords(kind: type) -> Iterator[None]:
    """Name settings by their keywords in errors of the block: `--max-side` becomes `max_side`."""
    hints = dict(_names(kind))

    def keyword(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        if name not in hints:
            return found[0]
        return f"{name}=True" if hints[name] is bool else name

    try:
        yield
    except (InputError, BuildError) as error:
        said = re.sub(r"--([a-z][a-z0-9-]*)", keyword, str(error))
        raise type(error)(said) from error


def _plain(value: Any) -> Any:
    """Return a value with its paths as text: outputs and datasets may be folders or URLs."""
    if isinstance(value, Path):
        return str(value)
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return local_path(value)
    raise ValueError(f"Expected a path, got `{type(value).__name__}`")


def _missing(settings: Any) -> Iterator[str]:
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            yield from _missing(value)
        elif value is tyro.MISSING:
            yield field.name
