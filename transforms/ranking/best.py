"""Which drawing of a pair is the best: the one with the least mean rank over what is measured.

Ranks, and not the measures themselves, are averaged, since their scales have nothing in common. A
measure counts if one of the drawings has it; a drawing without it comes last.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from eqforge.schemas.records.scores import Score
from eqforge.transforms.filters.minimality import PairMeasures
from eqforge.transforms.oracle.scores import PAIR_CELLS
from eqforge.transforms.ranking.model_scores import DIRECTION

Measured = Mapping[str, float | None]
"""What is measured of a drawing, by name."""

OUTSIDE: Final = "changed_outside"
BACKGROUND: Final = "background_ssim"
MARGIN: Final = "margin"
_LESS_IS_BETTER: Final = frozenset({OUTSIDE})
_CELL: Final = re.compile(rf"(.+)_({'|'.join(PAIR_CELLS)})")


def measured_of(scores: Iterable[Score], measures: PairMeasures) -> dict[str, float | None]:
    """Returns what speaks for a drawing, or against it.

    These are the `direction`; the margin of every model that says whether each caption matches each
    picture, `oracle_1_margin` and `vqa_margin`: the least of the captions with their own pictures,
    less the greatest of those with the other one; and how little differs where nothing is to
    change: outside the mask, or where none is known outside the changed area, as SSIM.
    """
    found = {score.name: score.value for score in scores}
    measured: dict[str, float | None] = {}
    if DIRECTION in found:
        measured[DIRECTION] = found[DIRECTION]
    for model in dict.fromkeys(cell[1] for name in found if (cell := _CELL.fullmatch(name))):
        measured[f"{model}_{MARGIN}"] = _margin(model, found)
    if OUTSIDE in found:
        measured[OUTSIDE] = found[OUTSIDE]
    else:
        measured[BACKGROUND] = measures.background_ssim
    return measured


def _margin(model: str, found: Measured) -> float | None:
    own: list[float] = []
    crossed: list[float] = []
    for cell, (image, caption) in PAIR_CELLS.items():
        value = found.get(f"{model}_{cell}")
        if value is None:
            return None
        (own if image == caption else crossed).append(value)
    return round(min(own) - max(crossed), 6)


def mean_ranks(drawings: Sequence[Measured]) -> list[float]:
    """Returns the mean rank of each drawing, 1 for one that is the best in everything.

    Drawings that are equal in a measure share the mean of their ranks. Where nothing is measured,
    all are equal.

    Args:
      drawings: what is measured of each; any order gives each the same mean rank.
    """
    names = dict.fromkeys(name for each in drawings for name in each)
    counting = [name for name in names if any(each.get(name) is not None for each in drawings)]
    columns = [_ranks([_goodness(name, each.get(name)) for each in drawings]) for name in counting]
    if not columns:
        return [(len(drawings) + 1) / 2] * len(drawings)
    return [sum(ranks) / len(ranks) for ranks in zip(*columns, strict=True)]


def _goodness(name: str, value: float | None) -> float:
    if value is None:
        return -float("inf")
    return -value if name in _LESS_IS_BETTER else value


def _ranks(values: Sequence[float]) -> list[float]:
    """Returns the rank of each value, the greatest first; equal ones share the mean of theirs."""
    return [
        sum(other > value for other in values) + (sum(other == value for other in values) + 1) / 2
        for value in values
    ]
