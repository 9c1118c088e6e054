"""A setting changes a dataset's identity, unless its declaration says otherwise."""

import copy
import functools
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import tyro

from eqforge.core.identity import Trace, TraceOf, trace_of
from eqforge.pipelines import pipeline_of
from eqforge.pipelines.base.identity import settings_of_rows
from eqforge.schemas.tables.datasets import TYPES


def settings_in(config: Any, *group: str) -> Iterator[tuple[str, ...]]:
    for each in fields(config):
        value, name = getattr(config, each.name), (*group, each.name)
        yield from settings_in(value, *name) if is_dataclass(value) else [name]


def value_of(config: Any, name: Sequence[str]) -> Any:
    return functools.reduce(getattr, name, config)


def hint_of(config: Any, name: tuple[str, ...], *, extras: bool = False) -> Any:
    group = value_of(config, name[:-1])
    return get_type_hints(type(group), include_extras=extras)[name[-1]]


def another(hint: Any, value: Any) -> Any:
    """Return another value of a type than one that is given."""
    kinds = get_args(hint)
    if get_origin(hint) is Literal:
        return next(each for each in kinds if each != value)
    if get_origin(hint) is tuple:
        there = value if isinstance(value, tuple) else ()
        return (*there, another(kinds[0], there[0] if there else None))
    if type(None) in kinds:
        kind = next(each for each in kinds if each is not type(None))
        return another(kind, None) if value is None else None
    if hint is bool:
        return not value
    if hint in (int, float):
        return hint(value or 0) + 1
    return hint(f"{value}x")


def changed(config: Any, name: tuple[str, ...], value: Any) -> Any:
    """Return settings with another value, which no check sees."""
    found = copy.copy(config)
    inner = value if len(name) == 1 else changed(getattr(config, name[0]), name[1:], value)
    object.__setattr__(found, name[0], inner)
    return found


@pytest.mark.parametrize("dataset", TYPES)
def test_every_setting_without_a_trace_changes_the_identity(dataset: str) -> None:
    config = pipeline_of(dataset).usual("corrected", "out")
    for name in settings_in(config):
        if value_of(config, name) is tyro.MISSING:
            config = changed(config, name, another(hint_of(config, name), None))
    before = settings_of_rows(config)
    for name in settings_in(config):
        old, trace = value_of(config, name), trace_of(hint_of(config, name, extras=True))
        if isinstance(trace, TraceOf):
            continue  # its model would be loaded
        new = another(hint_of(config, name), old)
        is_known = trace is Trace.NONE
        is_known |= trace is Trace.GIVEN and old is not None and new is not None
        after = settings_of_rows(changed(config, name, new))
        assert (after == before) == is_known, name


def test_a_folder_counts_by_its_name_alone(tmp_path: Path) -> None:
    config = pipeline_of("eq-sd").usual("corrected", "out")
    for parent in ("a", "b"):
        (tmp_path / parent / "model").mkdir(parents=True)
    first, second = (
        settings_of_rows(changed(config, ("diffusion", "model"), str(tmp_path / parent / "model")))
        for parent in ("a", "b")
    )
    assert first == second
    assert first["diffusion"]["model"] == "model"
