"""Which filters of a configuration are on: what `eqforge plan` says before anything is refused."""

import dataclasses
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

from eqforge.pipelines.shared.settings import DatasetConfig
from eqforge.schemas.records.frames import FrameSettings

_FILTERS = ("settings", "choices")  # the fields of a dataset's configuration that hold them
_SWITCHES = ("distinct_captions", "drop_synonyms", "oracle")


def filter_lines(config: DatasetConfig) -> Iterator[str]:
    """Yields a line of the filters that are on, with their values, and one of those that are off.

    A filter is a limit (`min_…`, `max_…`, off if None), a choice that may be `off`, or one of the
    switches above. A dataset without filters yields nothing.
    """
    found = list(_filters_of(config))
    on = [_flag(name, value) for name, value in found if _is_on(value)]
    off = [_flag(name, True) for name, value in found if not _is_on(value)]
    if found:
        yield f"  filters on: {', '.join(on) or 'none'}"
        yield f"  filters off: {', '.join(off) or 'none'}"


def limits_of(config: DatasetConfig) -> dict[str, float | None]:
    """Returns the limits of a configuration's scores by option, such as `min-ssim`."""
    return {
        name.replace("_", "-"): value
        for name, value in _filters_of(config)
        if name.startswith(("min_", "max_")) and (value is None or not isinstance(value, str))
    }


def _filters_of(config: DatasetConfig) -> Iterator[tuple[str, Any]]:
    for name in _FILTERS:
        if hasattr(config, name):
            yield from _filters(getattr(config, name))


def _filters(settings: Any) -> Iterator[tuple[str, Any]]:
    """Yields the name and value of each filter in some settings, nested ones in field order."""
    hints = get_type_hints(type(settings))
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, FrameSettings):
            yield from _filters(value)
        elif _is_filter(field.name, hints[field.name]):
            yield field.name, value


def _is_filter(name: str, kind: Any) -> bool:
    may_be_off = get_origin(kind) is Literal and "off" in get_args(kind)
    return name.startswith(("min_", "max_")) or name in _SWITCHES or may_be_off


def _is_on(value: Any) -> bool:
    return value is not None and value is not False and value != "off"


def _flag(name: str, value: Any) -> str:
    flag = f"--{name.replace('_', '-')}"
    return flag if value is True else f"{flag} {value}"
