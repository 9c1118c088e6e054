"""Limits of gates that were fitted to pairs which people looked at, in a configuration."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from eqforge.core.errors import InputError
from eqforge.pipelines.shared.command import default_config
from eqforge.pipelines.shared.settings import DatasetConfig, Mode
from eqforge.sources.gate_limits import WHOLE, GateLimits, read_gate_limits

Configured = TypeVar("Configured", bound=DatasetConfig)

_MODELS: Final = {
    "max_perceptual": "--perceptual",
    "max_implausibility": "--plausibility",
    "oracle_min": "--oracle",
    "oracle_max": "--oracle",
}
"""Limits on what a model says, with the option that names it."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CalibrationSettings:
    """Where the limits of the gates come from."""

    calibration: Path | None = None
    """A file that eqforge review calibrate wrote: its limits take the place of this dataset's
    own."""


def with_limits(
    config: Configured, defaults: Callable[[Mode], dict[str, Any]], path: Path | None
) -> Configured:
    """Returns a configuration with the limits of a calibration.

    Args:
      config: of a dataset; limits stand in the settings within it.
      defaults: the fields that a mode sets, to tell what a user set.
      path: the calibration; None for none.

    Raises:
      InputError: the file cannot be taken, holds a limit that the dataset does not have, or the
        user sets one of its limits to something else.
    """
    if path is None:
        return config
    found = read_gate_limits(path).limits
    usual = default_config(type(config), defaults, config.mode)
    before, default = dict(_limits(config)), dict(_limits(usual))
    for name, value in found.items():
        flag = f"--{name.replace('_', '-')}"
        if name not in before:
            raise InputError(f"--calibration {path}: sets {flag}, which this dataset has not")
        if before[name] not in (default[name], value):
            raise InputError(
                f"{flag} {before[name]:g}: --calibration {path} sets it to {value:g}; leave one out"
            )
    replaced: Configured = _replaced(config, found)
    return replaced


def _limits(settings: Any) -> Iterator[tuple[str, Any]]:
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            yield from _limits(value)
        else:
            yield field.name, value


def _replaced(settings: Any, found: Mapping[str, float]) -> Any:
    """Returns settings with other limits, and the same ones where there is none in them."""
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            inner = _replaced(value, found)
            changes |= {} if inner is value else {field.name: inner}
        elif field.name in found:
            limit = found[field.name]
            changes[field.name] = int(limit) if field.name in WHOLE else limit
    return dataclasses.replace(settings, **changes) if changes else settings


def check_models(path: Path | None, models: Mapping[str, str | None]) -> None:
    """Checks that limits on what models say were fitted to the same models.

    Args:
      path: the calibration; None for none.
      models: the revision of the model of each option of _MODELS; None where none is named.

    Raises:
      InputError: one was fitted to another model.
    """
    if path is None:
        return
    found = read_gate_limits(path)
    for name in found.limits:
        option = _MODELS.get(name)
        if option is not None and models[option] != found.fit(name).version:
            raise InputError(
                f"--calibration {path}: --{name.replace('_', '-')} was fitted to what "
                f"{found.fit(name).scorer} {found.fit(name).version} says; {option} names "
                f"{models[option] or 'none'}"
            )


def told_limits(path: Path) -> str:
    """Returns what is to be known of the limits of a calibration."""
    return _told(read_gate_limits(path))


def _told(found: GateLimits) -> str:
    parts = []
    for name, value in found.limits.items():
        held = found.fit(name).held_out
        share = "" if held.precision is None else f", {held.right} of {held.kept} kept are right"
        parts.append(f"--{name.replace('_', '-')} {value:g}{share}")
    return (
        f"Limits were fitted to {found.pairs} pairs of {found.dataset} that people decided on: "
        f"{'; '.join(parts)} (of pairs that they were not fitted to). Other limits are not "
        "calibrated."
    )
