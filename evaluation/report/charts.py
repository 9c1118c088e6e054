"""The distributions that the first page draws."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from eqforge.evaluation.report.columns import Numbers
from eqforge.evaluation.report.limits import joined
from eqforge.evaluation.report.tables import Written

_BINS: Final = 40
_MOST_CHARTS: Final = 60

Limits = Mapping[str, list[tuple[str, float]]]
Refused = Mapping[str, Sequence[float]]


def charts_of(
    table: str, written: Written, limits: Sequence[Limits], refused: Refused
) -> list[dict[str, Any]]:
    """Returns the distributions of a table's numbers, as the page draws them.

    Args:
      table: its name.
      written: its columns.
      limits: those of each score by its name, the settings' first.
      refused: the values by which candidates were refused, by the name of the score.
    """
    return [_chart(table, each, limits, refused) for each in _grouped(written)][:_MOST_CHARTS]


def _grouped(written: Written) -> list[tuple[str, list[Numbers]]]:
    """Returns numbers by their titles: those of both pictures of a pair are one distribution."""
    found: dict[str, list[Numbers]] = {}
    for number in written.numbers:
        pictures = number.group.startswith("image")
        title = number.title if not number.group else f"{number.group}: {number.title}"
        key = number.title if pictures or number.group == "scores" else title
        found.setdefault(key, []).append(number)
    return list(found.items())


def _chart(
    table: str, named: tuple[str, list[Numbers]], limits: Sequence[Limits], refused: Refused
) -> dict[str, Any]:
    title, numbers = named
    values = np.concatenate([number.values() for number in numbers]).astype(np.float64)
    finite = values[np.isfinite(values)]
    out = np.array(refused.get(title, ()), dtype=np.float64)
    out = out[np.isfinite(out)]
    drawn = joined(title, *limits)
    both = np.concatenate([finite, out])
    edges = _edges(both, [float(limit["value"]) for limit in drawn])
    return {
        "title": title,
        "table": table,
        "edges": [float(edge) for edge in edges],
        **_counted(finite, edges),
        "missing": int(len(values) - len(finite)),
        "refused": _counted(out, edges) if len(out) else None,
        "limits": drawn,
        "note": _note(numbers),
    }


def _counted(values: Any, edges: Any) -> dict[str, Any]:
    """Returns how many values lie in each bin, the least of them and the greatest."""
    counts, _ = np.histogram(values, bins=edges)
    return {
        "counts": [int(count) for count in counts],
        "least": float(values.min()),
        "most": float(values.max()),
    }


def _edges(finite: Any, limits: list[float]) -> Any:
    """Returns the edges of the bins: whole numbers get bins of their own, limits are inside."""
    least, most = min([*limits, finite.min()]), max([*limits, finite.max()])
    whole = all((some == np.round(some)).all() for some in (finite, np.array(limits)))
    if whole and most - least < _BINS:
        return np.arange(np.floor(least), np.ceil(most) + 2) - 0.5
    if least == most:
        return np.array([least - 0.5, least + 0.5])
    return np.linspace(least, most, _BINS + 1)


def _note(numbers: Sequence[Numbers]) -> str:
    pictures = sum(number.group.startswith("image") for number in numbers)
    return "of the pictures of all items" if pictures else ""
