"""What gates measured of labelled pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.reviews import Decision
from eqforge.sources.gate_limits import LIMITS, SPARE_SCENES

_COLUMNS: Final = (
    *("changed_area_fraction", "ssim", "background_ssim"),
    *("luminance_shift", "phash_distance"),
)
_OWN: Final = ("oracle_1_c0_i0", "oracle_1_c1_i1")
_CROSSED: Final = ("oracle_1_c1_i0", "oracle_1_c0_i1")
_DRAWN: Final = {"eq-edit": ("implausibility_1",)}
"""The captions that are drawn, where it is not both: an edited photograph has its own caption."""
_BOTH: Final = ("implausibility_0", "implausibility_1")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledPair:
    """A pair that people looked at.

    Attributes:
      source: what it shares with other pairs, such as a photograph.
      is_right: whether people kept it.
      measures: by name, as LIMITS has them; those that the dataset does not have are missing, None
        is one that had nothing to say.
      scorers: kind and version of the model behind a measure, by its name.
      spared: limits that it is not held to.
    """

    source: str
    is_right: bool
    measures: Mapping[str, float | None]
    scorers: Mapping[str, tuple[str, str]]
    spared: frozenset[str]


def labelled_pairs(dataset: Dataset, decisions: Iterable[Decision]) -> list[LabelledPair]:
    """Returns the pairs that people kept or dropped, in the order of their ids.

    Args:
      dataset: what was reviewed.
      decisions: on its samples; those that are unsure are left out.

    Raises:
      InputError: it is no dataset of pairs, or was combined of several.
    """
    if not {"changed_area_fraction", "source_id"} <= set(dataset.columns("samples")):
        raise InputError(f"{dataset.folder}: its samples are no pairs that gates measure")
    verdicts = {each.id: each.decision for each in decisions}
    rows = sorted(dataset.rows("samples"), key=lambda row: row["sample_id"])
    found = ((row, verdicts.get(row["sample_id"])) for row in rows)
    return [
        _pair(row, verdict == "keep", dataset)
        for row, verdict in found
        if verdict in ("keep", "drop")
    ]


def _pair(row: dict[str, Any], is_right: bool, dataset: Dataset) -> LabelledPair:
    scores = {score["name"]: score for score in row.get("scores") or ()}
    values = {name: score["value"] for name, score in scores.items()}
    measures: dict[str, float | None] = {name: row[name] for name in _COLUMNS if name in row}
    if measures.get("luminance_shift") is not None:
        measures["luminance_shift"] = abs(measures["luminance_shift"] or 0.0)
    for name in ("changed_outside", "perceptual_distance"):
        if name in values:
            measures[name] = values[name]
    drawn = _DRAWN.get(dataset.manifest.dataset, _BOTH)
    measures |= _worst("implausibility", drawn, values, max)
    if not any(name.startswith("oracle_2_") for name in values):  # of two, both have to agree
        measures |= _worst("oracle_own", _OWN, values, min)
        measures |= _worst("oracle_crossed", _CROSSED, values, max)
    behind = {
        "perceptual_distance": "perceptual_distance",
        "implausibility": drawn[0],
        "oracle_own": _OWN[0],
        "oracle_crossed": _OWN[0],
    }
    return LabelledPair(
        source=row["source_id"],
        is_right=is_right,
        measures=measures,
        scorers={
            name: (scores[of]["scorer"], scores[of]["version"])
            for name, of in behind.items()
            if name in measures
        },
        spared=frozenset(SPARE_SCENES) if _is_spared(row, dataset) else frozenset(),
    )


def _worst(
    name: str, of: tuple[str, ...], values: Mapping[str, Any], choose: Any
) -> dict[str, Any]:
    if not all(each in values for each in of):
        return {}
    known = [values[each] for each in of]
    return {name: None if None in known else choose(known)}


def _is_spared(row: Mapping[str, Any], dataset: Dataset) -> bool:
    """Tells whether a pair's scene changes, and the build did not hold it to the same limits."""
    settings = dataset.manifest.config.get("settings") or {}
    return row.get("kind") == "scene" and settings.get("scenes_keep_background") is False


def measured_limits(pairs: Iterable[LabelledPair]) -> Iterator[str]:
    """Yields the limits whose measure all pairs have that are held to them."""
    known = list(pairs)
    for name, measure in LIMITS.items():
        held = [pair for pair in known if name not in pair.spared]
        if held and all(measure in pair.measures for pair in held):
            yield name
