"""The Pareto front of scores against times, with each model's probability of being on it.

A model is on the front if no other model is at least as good in both and better in one. VLUE
requires that no model "outperforms" it on both, which differs only for equal scores or times.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.checked import clipped, shown
from eqforge.core.files.foreign_tables import csv_rows
from eqforge.core.visible import counted, series
from eqforge.evaluation.efficiency.result import (
    Efficiency,
    draw_medians,
    read_efficiency,
    spread,
)
from eqforge.evaluation.metrics.ties import Credits, Unit
from eqforge.evaluation.statistics.bootstrap import Numbers, percentile_interval, resample_means
from eqforge.evaluation.tables.render import Rules
from eqforge.evaluation.tables.report import model_names
from eqforge.evaluation.tables.samples import read_samples
from eqforge.evaluation.tables.scores import places_of
from eqforge.evaluation.tasks.gap import Number, named, read_numbers
from eqforge.evaluation.tasks.samples import Task, task_of
from eqforge.schemas.dataset.reader import Dataset

_SIGMAS = 1.959963984540054
"""Half the width of a 95% interval of a normal distribution, in standard deviations."""
_MACHINE = ("cpu", "gpu", "cuda", "cudnn", "tf32", "torch_threads", "python")
_GPU = ("driver_version", "clocks.max.sm", "power.limit")
_SETTINGS = ("task", "items", "seed", "warm_up", "max_pixels", "decoder")
_REQUIRED = {"model", "score", "seconds"}
_COLUMNS = _REQUIRED | {f"{name}_{end}" for name in ("score", "seconds") for end in ("low", "high")}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Contest:
    """Models to be compared.

    Attributes:
      scores: higher is better [models].
      seconds: for one image-caption pair [models].
      score_bounds, second_bounds: 95% intervals of the scores and of the seconds [models, 2].
      score_draws, second_draws: resampled scores and seconds [resamples, models].
      what: what the score is, with its unit and number of samples where they are known.
    """

    models: tuple[str, ...]
    scores: Numbers
    seconds: Numbers
    score_bounds: Numbers
    second_bounds: Numbers
    score_draws: Numbers
    second_draws: Numbers
    what: str


def from_measurements(
    results: Sequence[Path], dataset: Dataset, scores: Sequence[Path], metric: str, rules: Rules
) -> Contest:
    """Return the contest of measured models that scored a dataset.

    All models share the same bootstrap samples of clusters; times are drawn independently. `scores`
    are a folder or file for each result, in order.
    """
    if len(results) != len(scores):
        raise InputError(
            "--scores: expected one folder or file per results file, in the same order; found "
            f"{len(scores)} for {counted(len(results), 'results files')}"
        )
    task = task_of(dataset)
    if task is None:
        raise InputError(
            f"eqforge cannot score the samples of {dataset.folder}; pass a CSV table of scores"
        )
    measured = [read_efficiency(path) for path in results]
    check_alike(results, measured)
    samples = read_samples(dataset, task.cluster, None)
    columns, units = zip(
        *(
            _credits(path, one, dataset, task, samples.keys, metric, rules)
            for path, one in zip(scores, measured, strict=True)
        ),
        strict=True,
    )
    means = resample_means(
        np.column_stack(columns), samples.clusters, seed=rules.seed, resamples=rules.resamples
    )
    times = [
        draw_medians(found.seconds, rules.resamples, rules.seed + 1 + place)
        for place, found in enumerate(measured)
    ]
    return Contest(
        models=tuple(model_names([found.model.name for found in measured], list(results))),
        scores=means.values,
        seconds=np.array([np.median(found.seconds) for found in measured]),
        score_bounds=np.array(
            [
                (means.share_interval if unit == "share" else means.interval)(place)
                for place, unit in enumerate(units)
            ]
        ),
        second_bounds=np.array([percentile_interval(drawn) for drawn in times]),
        score_draws=means.draws,
        second_draws=np.column_stack(times),
        what=_what(
            f"{metric} of {dataset.manifest.dataset}", {*units} == {"share"}, [len(samples.keys)]
        ),
    )


def _credits(
    path: Path,
    measured: Efficiency,
    dataset: Dataset,
    task: Task,
    keys: np.ndarray,
    metric: str,
    rules: Rules,
) -> tuple[Credits, Unit]:
    found = task.read(path, dataset, None)
    if path.is_dir() and found.model != measured.model.name:
        raise InputError(
            f"{path}: expected scores from {measured.model.name}, found scores from {found.model}; "
            "pass the scores in the same order as the results"
        )
    places = places_of(keys, found, str(path), allow_missing=True)
    if missing := int((places < 0).sum()):
        raise InputError(f"{path}: {missing:,} of {len(keys):,} samples have no score; score them")
    judged = task.judge(found.values[places], found.quantity, rules.ties)
    if metric not in judged.credits:
        raise InputError(f"--metric {metric}: expected one of {', '.join(judged.credits)}")
    return judged.credits[metric], judged.units.get(metric, "share")


def from_table(path: Path, rules: Rules) -> Contest:
    """Return the contest of a CSV table, such as a paper's.

    Its columns are `model`, `score` and `seconds`, and optionally the 95% intervals `score_low`,
    `score_high`, `seconds_low` and `seconds_high`. With an interval, scores are drawn from the
    matching normal distribution, times from the log-normal one; without it they are fixed.
    """
    names: list[str] = []
    rows = []
    for line, row in enumerate(csv_rows(path), start=2):
        if wrong := _REQUIRED - row.keys() or row.keys() - _COLUMNS:
            raise InputError(
                f"{path}: the column {shown(min(wrong, key=str))} is "
                f"{'missing' if wrong <= _REQUIRED else 'unknown'}. Required columns: model, score "
                f"and seconds. Optional columns: {series(sorted(_COLUMNS - _REQUIRED))}"
            )
        where = f"{path}: line {line}"
        rows.append([_bounds_of(row, name, where) for name in ("score", "seconds")])
        names.append(row["model"])
    if not rows:
        raise InputError(f"{path} contains no models")
    return _drawn(names, rows, rules, "score")


def from_numbers(
    results: Sequence[Path],
    tables: Sequence[Path],
    metric: str,
    subsets: Sequence[str],
    rules: Rules,
) -> Contest:
    """Return the contest of models by the mean of a metric over subsets, as VLUE's figure 2.

    Models are drawn as in `from_table`; the subsets' intervals are taken as independent.

    Args:
      results: files of `eqforge efficiency`, or CSV tables with the columns `model` and `seconds`.
        A measured model has its name in `tables`, or that of its file.
      tables: metrics.json or metrics.csv files, which together have all subsets of each model.
    """
    if not subsets:
        raise InputError("--subsets: pass at least one subset")
    numbers: dict[tuple[str, str, str], Number] = {}
    for path in tables:
        found = read_numbers(path)
        if twice := numbers.keys() & found.keys():
            raise InputError(
                f"{path}: the row with {named(*min(twice))} also appears in an earlier --metrics "
                "file; remove one of the two"
            )
        numbers |= found
    models = {model for model, *_ in numbers}
    times = list(_times(results, models, rules))
    if not times:
        raise InputError(f"{', '.join(map(str, results))}: no models found")
    rows = []
    for model, seconds in times:
        try:
            parts = [numbers[model, subset, metric].bounds for subset in subsets]
        except KeyError as error:
            known = sorted({named(name, s) for name, s, m in numbers if m == metric})
            raise InputError(
                f"{', '.join(map(str, tables))}: there is no row with {named(*error.args[0])}. "
                f"Rows with this metric: {'; '.join(known[:20]) or 'none'}"
            ) from None
        values, lows, highs = np.array(parts).T
        value, sides = float(values.mean()), np.nan_to_num([values - lows, highs - values])
        down, up = (np.linalg.norm(sides, axis=1) / len(subsets)).tolist()
        rows.append([(value, value - down, value + up), seconds])
    used = [numbers[model, subset, metric] for model, _ in times for subset in subsets]
    # A table of percentages has the unit `share` too if it names no unit.
    is_fraction = all(one.unit == "share" and 0 <= one.bounds[0] <= 1 for one in used)
    what = _what(f"{metric}, {', '.join(subsets)}", is_fraction, [one.scored for one in used])
    return _drawn([model for model, _ in times], rows, rules, what)


def _what(name: str, is_fraction: bool, counts: Sequence[int | None]) -> str:
    known = [count for count in counts if count is not None]
    parts = ["fraction"] if is_fraction else []
    if len(known) == len(counts):
        ends = dict.fromkeys(f"{count:,}" for count in (min(known), max(known)))
        parts.append(f"n = {' to '.join(ends)}")
    return f"{name} ({', '.join(parts)})" if parts else name


def _times(
    results: Sequence[Path], models: Collection[str], rules: Rules
) -> Iterator[tuple[str, tuple[float, ...]]]:
    measured = {path: read_efficiency(path) for path in results if path.suffix != ".csv"}
    if measured:
        check_alike(list(measured), list(measured.values()))
    for path in results:
        if path in measured:
            found = spread(measured[path].seconds, rules.resamples, rules.seed)
            names = (*model_names([measured[path].model.name], [path]), path.stem)
            name = next((name for name in names if name in models), names[0])
            yield name, (found.median, found.low, found.high)
            continue
        for line, row in enumerate(csv_rows(path), start=2):
            if not row.get("model"):
                raise InputError(f"{path}: line {line}: the column 'model' is missing or empty")
            yield row["model"], _bounds_of(row, "seconds", f"{path}: line {line}")


def _drawn(
    names: Sequence[str], rows: Sequence[Sequence[tuple[float, ...]]], rules: Rules, what: str
) -> Contest:
    """Return models whose scores and times are drawn from their intervals [models, 2, 3]."""
    if len(set(names)) < len(names):
        raise InputError(
            f"the model {max(names, key=names.count)!r} appears twice; rename one of the two"
        )
    scores, seconds = np.array(rows).transpose(1, 0, 2)
    noise = np.random.default_rng(rules.seed).standard_normal((2, rules.resamples, len(rows)))
    widths = (scores[:, 2] - scores[:, 1]) / (2 * _SIGMAS)
    logs = np.array([[math.log(value) for value in row[1:]] for row in seconds])
    shares = (logs[:, 1] - logs[:, 0]) / (2 * _SIGMAS)
    return Contest(
        models=tuple(names),
        scores=scores[:, 0],
        seconds=seconds[:, 0],
        score_bounds=scores[:, 1:],
        second_bounds=seconds[:, 1:],
        score_draws=scores[:, 0] + noise[0] * widths,
        second_draws=seconds[:, 0] * np.exp(noise[1] * shares),
        what=what,
    )


def _bounds_of(row: Mapping[str, str], name: str, where: str) -> tuple[float, ...]:
    try:
        value = float(row[name])
        bounds = tuple(float(row.get(f"{name}_{end}") or value) for end in ("low", "high"))
        if not math.isfinite(sum(bounds)) or (name == "seconds" and bounds[0] <= 0):
            above, found = " above 0" * (name == "seconds"), dict.fromkeys(map(str, bounds))
            raise ValueError(f"expected finite numbers{above}; found {series(found)}")
        if not bounds[0] <= value <= bounds[1]:
            raise ValueError(f"{value} is outside its interval, {bounds[0]} to {bounds[1]}")
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{where}: {name}: {clipped(str(error))}") from error
    return value, *bounds


def check_alike(paths: Sequence[Path], measured: Sequence[Efficiency]) -> None:
    expected = dict(_conditions(measured[0]))
    for path, one in zip(paths[1:], measured[1:], strict=True):
        for name, value in _conditions(one):
            if value != expected[name]:
                raise InputError(
                    f"{path}: {name} is {value}, but {expected[name]} in {paths[0]}, so the times "
                    "cannot be compared. Measure both models under the same conditions, or pass a "
                    "CSV table of times."
                )


def _conditions(found: Efficiency) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each condition that has to be equal; None if unknown."""
    before = found.clocks.get("before") or {}
    yield from ((name, found.machine.get(name)) for name in _MACHINE)
    libraries = found.machine.get("libraries") or {}
    yield "the libraries", ", ".join(f"{name} {libraries[name]}" for name in sorted(libraries))
    yield "the governor", before.get("cpu_governor")
    yield from ((f"the GPU's {name}", (before.get("nvidia_smi") or {}).get(name)) for name in _GPU)
    yield "the dataset's SHA-256", found.dataset_sha256
    yield from ((name, found.settings.get(name)) for name in _SETTINGS)


def on_front(
    scores: NDArray[Any], seconds: NDArray[Any], *, strict: bool = False
) -> NDArray[np.bool_]:
    """Return which models are on the Pareto front [..., models].

    Models equal in both values are all on it or all off it.

    Args:
        scores: [..., models]; higher is better.
        seconds: [..., models]; lower is better.
        strict: only a model that is better in both dominates, as VLUE's sentence says.

    Source: VLUE (Zhou et al. 2022), section 3.3.
    """
    better = scores[..., None, :] > scores[..., :, None]
    faster = seconds[..., None, :] < seconds[..., :, None]
    if strict:
        return np.asarray(~(better & faster).any(axis=-1))
    no_worse = (scores[..., None, :] >= scores[..., :, None]) & (
        seconds[..., None, :] <= seconds[..., :, None]
    )
    return np.asarray(~(no_worse & (better | faster)).any(axis=-1))


def membership(scores: Numbers, seconds: Numbers, *, strict: bool = False) -> Numbers:
    """Return the share of resamples in which each model is on the front [models]."""
    blocks = np.array_split(np.arange(len(scores)), max(1, scores.size * scores.shape[1] // 10**6))
    counts = sum(on_front(scores[b], seconds[b], strict=strict).sum(axis=0) for b in blocks)
    return np.asarray(counts / len(scores), dtype=np.float64)
