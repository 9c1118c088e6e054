"""The limits that scores were compared with: from the settings, and from what was refused."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

_ENDINGS: Final = ("", "_fraction", "_mean", "_0", "_1")
_SIDES: Final = ("min_", "max_")

_OTHERS: Final = {
    "face_threshold": "face_dlib_hog",
    "face_opencv_threshold": "face_opencv_haar",
    "min_histogram_change": "cut_histogram_change",
    "max_registered_points": "cut_registered_points",
}
"""Settings that are limits of scores of other names."""


def limits_of_settings(config: Mapping[str, Any]) -> dict[str, list[tuple[str, float]]]:
    """Returns limits by the name of the score: of each the setting, such as `max_ssim`, and value.

    A setting `min_NAME` or `max_NAME` limits the score NAME, NAME_fraction or NAME_mean, and where
    both pictures of a pair have one, NAME_0 and NAME_1.
    """
    found: dict[str, list[tuple[str, float]]] = {}
    for setting, value in _settings(config):
        for score in _scores(setting):
            found.setdefault(score, []).append((setting, value))
    return found


def _scores(setting: str) -> Iterable[str]:
    """Returns the scores that a setting may limit."""
    if setting in _OTHERS:
        return (_OTHERS[setting],)
    name = setting[len(_SIDES[0]) :]
    return (name + ending for ending in _ENDINGS)


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _settings(value)
        elif (name.startswith(_SIDES) or name in _OTHERS) and type(value) in (int, float):
            yield name, value


def limits_of_rejects(rejects: Iterable[Mapping[str, Any]]) -> dict[str, list[tuple[str, float]]]:
    """Returns limits by the name of the score, as rejects state them: the reason and the limit."""
    found: dict[str, dict[tuple[str, float], None]] = {}
    for row in rejects:
        if row["value"] is not None and row["threshold"] is not None:
            found.setdefault(row["detail"], {})[row["reason"], row["threshold"]] = None
    return {name: sorted(limits) for name, limits in found.items()}


def refused_values(rejects: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Returns the values that were beyond a limit, by the name of the score."""
    found: dict[str, list[float]] = {}
    for row in rejects:
        if row["value"] is not None and row["threshold"] is not None:
            found.setdefault(row["detail"], []).append(row["value"])
    return found


def joined(
    title: str, *known: Mapping[str, list[tuple[str, float]]]
) -> list[dict[str, str | float]]:
    """Returns the limits of a score, those of one value once."""
    by_value: dict[float, str] = {}
    for limits in known:
        for label, value in limits.get(title, ()):
            by_value.setdefault(value, label)
    return [{"label": label, "value": value} for value, label in sorted(by_value.items())]
