"""The first page of a dataset's report: counts, reasons for rejects, and distributions."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from eqforge.core.identity import version
from eqforge.core.visible import counted
from eqforge.evaluation.report.folder import link
from eqforge.evaluation.report.tables import LABELS, Numbers, Written, label_of
from eqforge.schemas.dataset import statements
from eqforge.schemas.dataset.manifest import Manifest, run_of
from eqforge.schemas.dataset.profile import UNSTATED, Profile, unit_of_sources
from eqforge.schemas.dataset.reader import Dataset

SAMPLES: Final = "samples.html"
REJECTS: Final = "rejects.html"
_MOST_VALUES: Final = 40
_MOST_SOURCES: Final = 20
_BINS: Final = 40
_MOST_CHARTS: Final = 60
_BORDERLINE: Final = 10

_ENDINGS: Final = ("", "_fraction", "_mean", "_0", "_1")
_OTHERS: Final = {
    "face_threshold": "face_yunet",
    "min_histogram_change": "cut_histogram_change",
    "max_registered_points": "cut_registered_points",
}
"""Settings that limit scores with different names."""

Limits = Mapping[str, Sequence[tuple[str, float]]]


def summary(
    dataset: Dataset, profile: Profile, tables: dict[str, Written], thing: str
) -> dict[str, Any]:
    manifest = profile.manifest
    return {
        "title": statements.title(profile),
        "thing": thing,
        "mode": manifest.mode if statements.has_mode(profile) else "",
        "what": statements.description(profile),
        "built_with": f"eqforge {manifest.versions.get('eqforge', '')}".strip(),
        "reported_with": f"eqforge {version('eqforge')}",
        "sha256": dataset.sha256,
        "counts": list(_counts(manifest, tables, thing)),
        "sources": [
            {"name": file.name, "sha256": file.sha256} for file in manifest.inputs[:_MOST_SOURCES]
        ],
        "licences": [
            {
                "name": "not stated" if name == UNSTATED else name,
                "sources": counted(count, unit_of_sources(profile)),
            }
            for name, count in profile.facts.licences.items()
        ],
        "settings": [
            [name, str(value)]
            for name in ("seed", "sample", "limit", "only")
            if (value := run_of(manifest.config).get(name)) not in (None, [], "", "100%")
        ],
        "warnings": list(manifest.warnings),
        "errata": len(manifest.errata),
        "commands": list(profile.commands),
        "stages": [_stage(profile, name) for name in manifest.stages],
        "facets": list(_facets(tables["samples"])),
        "strip": tables["samples"].strip,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Borderline:
    """The samples and rejects nearest the limits of one score, each as place -> value."""

    score: str = ""
    kept: dict[int, float] = field(default_factory=dict)
    rejected: dict[int, float] = field(default_factory=dict)

    def data(self, tables: Mapping[str, Written]) -> dict[str, Any]:
        sides = (("samples", self.kept), ("rejects", self.rejected))
        return {"label": label_of(self.score) if self.score else ""} | {
            name: [(tables[name].asked[place], f"{value:.3g}") for place, value in found.items()]
            for name, found in sides
        }


def borderline(samples: pa.Table, rejects: pa.Table) -> Borderline:
    """Find the score that rejects most candidates, and the rows on both sides of its limits."""
    if not samples.num_rows or not rejects.num_rows:
        return Borderline()
    rows = enumerate(rejects.select(["detail", "value", "threshold"]).to_pylist())
    measured = [(n, row) for n, row in rows if None not in (row["value"], row["threshold"])]
    for score, _ in Counter(row["detail"] for _, row in measured).most_common():
        values = {n: value for n, value in enumerate(_values(samples, score)) if value is not None}
        found = {n: row["value"] for n, row in measured if row["detail"] == score}
        limits = {row["threshold"] for _, row in measured if row["detail"] == score}
        if values:
            return Borderline(
                score=score, kept=_nearest(values, limits), rejected=_nearest(found, limits)
            )
    return Borderline()


def _values(samples: pa.Table, score: str) -> Iterator[float | None]:
    if score in samples.column_names:
        yield from samples[score].to_pylist()
    elif "scores" in samples.column_names:
        for scores in samples["scores"].to_pylist():
            yield next((each["value"] for each in scores or () if each["name"] == score), None)


def _nearest(values: Mapping[int, float], limits: Collection[float]) -> dict[int, float]:
    # A limit on a signed score, such as luminance_shift, limits its magnitude.
    by_distance = {n: min(abs(abs(v) - limit) for limit in limits) for n, v in values.items()}
    return {n: values[n] for n in sorted(values, key=by_distance.__getitem__)[:_BORDERLINE]}


def _counts(manifest: Manifest, tables: dict[str, Written], thing: str) -> Iterable[dict[str, Any]]:
    pages = {"samples": SAMPLES, "rejects": REJECTS if "rejects" in tables else ""}
    if tables["samples"].items != manifest.num_rows("samples"):
        yield {"name": thing, "rows": tables["samples"].items, "page": SAMPLES}
    for name in manifest.tables:
        rows = manifest.num_rows(name)
        words = counted(rows, name).partition(" ")[2]
        yield {"name": words, "rows": rows, "page": pages.get(name, "")}


def _stage(profile: Profile, name: str) -> dict[str, Any]:
    found = profile.manifest.stages[name]
    return {
        "name": name,
        "candidates": found.candidates,
        "kept": found.kept,
        "reasons": [
            {
                "reason": reason,
                "meaning": profile.meaning(name, reason),
                "count": count,
                "page": link(REJECTS, stage=name, reason=reason),
            }
            for reason, count in sorted(found.reasons.items(), key=lambda each: (-each[1], each[0]))
        ],
    }


def _facets(samples: Written) -> Iterable[dict[str, Any]]:
    for facet in samples.facets:
        if len(counts := facet.counts()) <= _MOST_VALUES:
            values = [
                {"value": value, "count": count, "page": link(SAMPLES, **{facet.title: value})}
                for value, count in counts.items()
            ]
            yield {"title": facet.title, "values": values}


def charts_of(
    written: Written, limits: Limits, rejects: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    measured = [row for row in rejects if None not in (row["value"], row["threshold"])]
    refused: dict[str, list[float]] = {}
    stated: dict[str, set[tuple[str, float]]] = {}
    for row in measured:
        refused.setdefault(row["detail"], []).append(row["value"])
        stated.setdefault(row["detail"], set()).add((row["reason"], row["threshold"]))
    grouped: dict[str, list[Numbers]] = {}
    for number in written.numbers:
        # The numbers of both images of a pair share one distribution.
        is_alone = number.group in ("", "scores") or _is_of_picture(number)
        key = number.title if is_alone else f"{number.group}: {number.title}"
        grouped.setdefault(key, []).append(number)
    charts = []
    for title, numbers in list(grouped.items())[:_MOST_CHARTS]:
        by_value: dict[float, str] = {}
        for label, value in (*limits.get(title, ()), *sorted(stated.get(title, ()))):
            by_value.setdefault(value, label)
        lines = [{"label": label, "value": value} for value, label in sorted(by_value.items())]
        charts.append(_chart(title, numbers, lines, refused.get(title, ())))
    return charts


def _is_of_picture(number: Numbers) -> bool:
    return number.group.startswith("image")


def _chart(
    title: str, numbers: Sequence[Numbers], limits: list[dict[str, Any]], refused: Sequence[float]
) -> dict[str, Any]:
    values = np.concatenate([number.values() for number in numbers]).astype(np.float64)
    finite = values[np.isfinite(values)]
    out = np.array(refused, dtype=np.float64)
    out = out[np.isfinite(out)]
    edges = _edges(np.concatenate([finite, out]), [float(limit["value"]) for limit in limits])
    return {
        "title": title,
        "label": label_of(title),
        "meaning": LABELS.get(title, ("", ""))[1],
        "edges": [float(edge) for edge in edges],
        **_counted(finite, edges),
        "missing": int(len(values) - len(finite)),
        "refused": _counted(out, edges) if len(out) else None,
        "limits": limits,
        "note": "for the images of all items" if any(map(_is_of_picture, numbers)) else "",
    }


def _counted(values: Any, edges: Any) -> dict[str, Any]:
    counts, _ = np.histogram(values, bins=edges)
    return {
        "counts": [int(count) for count in counts],
        "least": float(values.min()),
        "most": float(values.max()),
    }


def _edges(finite: Any, limits: list[float]) -> Any:
    least, most = min([*limits, finite.min()]), max([*limits, finite.max()])
    whole = all((values == np.round(values)).all() for values in (finite, np.array(limits)))
    if whole and most - least < _BINS:
        return np.arange(np.floor(least), np.ceil(most) + 2) - 0.5
    if least == most:
        return np.array([least - 0.5, least + 0.5])
    return np.linspace(least, most, _BINS + 1)


def limits_of_settings(config: Mapping[str, Any]) -> dict[str, list[tuple[str, float]]]:
    """Return the limits of each score: the setting, such as `max_ssim`, and its value.

    A setting `min_NAME` or `max_NAME` limits the scores NAME, NAME_fraction and NAME_mean, and for
    pairs NAME_0 and NAME_1.
    """
    found: dict[str, list[tuple[str, float]]] = {}
    for setting, value in _settings(config):
        names = [setting[4:] + ending for ending in _ENDINGS]
        for score in [_OTHERS[setting]] if setting in _OTHERS else names:
            found.setdefault(score, []).append((setting, value))
    return found


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _settings(value)
        elif (name.startswith(("min_", "max_")) or name in _OTHERS) and type(value) in (int, float):
            yield name, value
