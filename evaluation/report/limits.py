"""The limits that scores were compared with: from the settings, and from what was refused."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

_ENDINGS: Final = ("", "_fraction", "_mean")
_SIDES: Final = ("min_", "max_")


def limits_of_settings(config: Mapping[str, Any]) -> dict[str, list[tuple[str, float]]]:
    """Returns limits by the name of the score: of each the setting, such as `max_ssim`, and value.

    A setting `min_NAME` or `max_NAME` limits the score NAME, NAME_fraction or NAME_mean.
    """
    found: dict[str, list[tuple[str, float]]] = {}
    for setting, value in _settings(config):
        name = setting[len(_SIDES[0]) :]
        for ending in _ENDINGS:
            found.setdefault(name + ending, []).append((setting, value))
    return found


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _settings(value)
        elif name.startswith(_SIDES) and type(value) in (int, float):
            yield name, value


def limits_of_rejects(rejects: Iterable[Mapping[str, Any]]) -> dict[str, list[tuple[str, float]]]:
    """Returns limits by the name of the score, as rejects state them: the reason and the limit."""
    found: dict[str, dict[tuple[str, float], None]] = {}
    for row in rejects:
        if row["value"] is not None and row["threshold"] is not None:
            found.setdefault(row["detail"], {})[row["reason"], row["threshold"]] = None
    return {name: sorted(limits) for name, limits in found.items()}


def joined(
    title: str, *known: Mapping[str, list[tuple[str, float]]]
) -> list[dict[str, str | float]]:
    """Returns the limits of a score, those of one value once."""
    by_value: dict[float, str] = {}
    for limits in known:
        for label, value in limits.get(title, ()):
            by_value.setdefault(value, label)
    return [{"label": label, "value": value} for value, label in sorted(by_value.items())]
