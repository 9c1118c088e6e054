"""Tables of datasets whose samples have a few images and captions each, or of files of scores."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.ties import Credits, Flags
from eqforge.evaluation.review.agreement import first_votes
from eqforge.evaluation.review.votes import Votes
from eqforge.evaluation.statistics.bootstrap import Resampled
from eqforge.evaluation.statistics.shares import NO_INTERVAL
from eqforge.evaluation.tables.errata import without_errata
from eqforge.evaluation.tables.human import judge_people, read_ranks
from eqforge.evaluation.tables.own_scores import read_file, read_labels
from eqforge.evaluation.tables.report import (
    Judged,
    Measure,
    ModelComparison,
    Report,
    Rules,
    measure,
)
from eqforge.evaluation.tables.sample_judges import TASKS, SampleTask, Verdict
from eqforge.evaluation.tables.sample_scores import (
    SampleScores,
    places_in,
    places_of,
    read_folder,
)
from eqforge.evaluation.tables.samples import (
    EVERYTHING,
    Samples,
    column_names,
    make_samples,
    read_samples,
    text_array,
)
from eqforge.evaluation.tables.several import compare_judged
from eqforge.schemas.dataset.reader import Dataset

MACRO = "macro average"
QUANTILES = (0.5, 0.9)
MoreMeasures = Callable[[str, str, Judged, Rules], Iterator[Measure]]
"""Yields further numbers of a model's subset, of what was judged of it."""
_HUMAN = "human"
_DIGEST = re.compile(r"([0-9a-f]{12})[0-9a-f]{28,}$")


def task_of(dataset: Dataset) -> SampleTask | None:
    """Returns the kind of a dataset's samples; None if samples are not scored one by one.

    Raises:
      InputError: a file is missing or damaged.
    """
    names = set(column_names(dataset, "samples"))
    for task in TASKS.values():
        if {*task.images, *task.captions, task.cluster} <= names:
            return task
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleRules:
    """How scores of samples are judged.

    Attributes:
      rules: ties, seed and resamples.
      by: the column that names subsets; None for the task's own, where the dataset has it.
      cluster: the column that names clusters; None for the task's own.
      quantity: what a score in a file is; None if unknown.
      allow_missing: whether samples may have no scores.
      errata: file of what is wrong with samples; None for none.
      human: votes of people who ranked captions; empty for none.
    """

    rules: Rules
    by: str | None = None
    cluster: str | None = None
    quantity: str | None = None
    allow_missing: bool = False
    errata: Path | None = None
    human: tuple[Path, ...] = ()


def samples_report(
    dataset: Dataset,
    task: SampleTask,
    paths: Sequence[Path],
    settings: SampleRules,
    samples: Samples | None = None,
    more: MoreMeasures | None = None,
) -> Report:
    """Returns the table of some models' scores of a dataset's samples.

    Args:
      dataset: what was scored.
      task: the kind of its samples.
      paths: a folder or file of scores for each model.
      settings: how they are judged.
      samples: the dataset's, in subsets; None for those by a column.
      more: further numbers of each subset; None for none.

    Raises:
      InputError: the scores are not of this dataset, or some are missing though not allowed to be.
    """
    if samples is None:
        names = column_names(dataset, "samples")
        by = settings.by or next((name for name in task.by if name in names), None)
        samples = read_samples(dataset, settings.cluster or task.cluster, by)
    scores = [read_scores(path, dataset, task, settings) for path in paths]
    people = read_ranks(settings.human, dataset, task) if settings.human else None
    title = f"{dataset.manifest.dataset}: {task.title}, in per cent"
    return _report(title, task, paths, samples, scores, settings, people, more)


def files_report(task: SampleTask, paths: Sequence[Path], settings: SampleRules) -> Report:
    """Returns the table of files of scores alone, without a dataset.

    Args:
      task: the kind of their samples.
      paths: for each model a file; see `read_file`. The columns `cluster` and `subset` are
        optional; a sample without `cluster` counts as independent. The samples of all files
        together are expected.
      settings: how they are judged.

    Raises:
      InputError: a file is malformed, files contradict each other, or one lacks samples though
        not allowed to.
    """
    scores = [read_file(path, task.width, settings.quantity) for path in paths]
    samples = _together(paths, scores)
    return _report(f"{task.title}, in per cent", task, paths, samples, scores, settings)


def _together(paths: Sequence[Path], scores: Sequence[SampleScores]) -> Samples:
    """Returns the samples of all files; what one file says of a sample holds for every file."""
    keys = sorted({str(key) for found in scores for key in found.keys})
    clusters, subsets = (_labels(name, paths, scores) for name in ("cluster", "subset"))
    return make_samples(
        keys, [clusters.get(key) for key in keys], [subsets.get(key) for key in keys]
    )


def _labels(
    name: Literal["cluster", "subset"], paths: Sequence[Path], scores: Sequence[SampleScores]
) -> dict[str, str]:
    """Returns what the files say in a column, by sample."""
    said: dict[str, tuple[str, Path]] = {}
    for path, found in zip(paths, scores, strict=True):
        labels = read_labels(path, name)
        for key, label in () if labels is None else zip(found.keys.tolist(), labels, strict=True):
            known, where = said.setdefault(key, (label, path))
            if known != label:
                raise InputError(
                    f"{path}: the {name} of {key!r} is {label!r}, in {where} it is {known!r}"
                )
    return {key: label for key, (label, _) in said.items()}


def _report(
    title: str,
    task: SampleTask,
    paths: Sequence[Path],
    samples: Samples,
    scores: Sequence[SampleScores],
    settings: SampleRules,
    people: Votes | None = None,
    more: MoreMeasures | None = None,
) -> Report:
    names = model_names([found.model for found in scores], paths)
    left_out: tuple[str, ...] = ()
    if settings.errata is not None:
        samples, scores, left_out = without_errata(samples, scores, settings.errata)
    judged = {
        name: dict(_judge(samples, found, path, task, settings))
        for name, found, path in zip(names, scores, paths, strict=True)
    }
    rules = settings.rules
    if people is not None:
        if _HUMAN in judged:
            raise InputError(f"a model is called {_HUMAN}, as people are; rename its file")
        judged[_HUMAN] = dict(_people(samples, people, task, rules))
    tables = (_table(model, subsets, rules, more) for model, subsets in judged.items())
    return Report(
        title=title,
        rules=rules,
        measures=tuple(found for table in tables for found in table),
        comparisons=_comparable(compare_judged(judged, rules), scores),
        notes=(*score_notes(names, scores), *left_out, *_told_people(people)),
    )


def _told_people(people: Votes | None) -> Iterator[str]:
    if people is not None:
        names = ", ".join(people.by_reviewer)
        yield f"{_HUMAN}: a sample counts where all who were asked, of {names}, have it right"


def _comparable(
    found: Sequence[ModelComparison], scores: Sequence[SampleScores]
) -> tuple[ModelComparison, ...]:
    """Returns the comparisons, without those in the unit of scores of different quantities."""
    if len(_quantities(scores)) < 2:
        return tuple(found)
    return tuple(one for one in found if one.unit == "share")


def _quantities(scores: Sequence[SampleScores]) -> list[str]:
    return sorted({found.quantity for found in scores if found.quantity is not None})


def model_names(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """Returns a name for each model: its own, followed by its path if it is not unique.

    A digest or commit is cut to 12 digits.

    Raises:
      InputError: a path is named twice.
    """
    if len(set(paths)) < len(paths):
        raise InputError(f"{max(paths, key=list(paths).count)}: is named twice")
    short = [_DIGEST.sub(r"\1", name) for name in names]
    return [
        name if short.count(name) == 1 else f"{name} ({path})"
        for name, path in zip(short, paths, strict=True)
    ]


def read_scores(
    path: Path, dataset: Dataset, task: SampleTask, settings: SampleRules
) -> SampleScores:
    """Returns a model's scores of a dataset's samples, of a folder or a file.

    Raises:
      InputError: they are malformed, or not of this dataset.
    """
    if path.is_dir():
        return read_folder(str(path), dataset, task.images, task.captions)
    return read_file(path, task.width, settings.quantity)


def _judge(
    samples: Samples,
    scores: SampleScores,
    path: Path,
    task: SampleTask,
    settings: SampleRules,
) -> Iterator[tuple[str, Judged]]:
    allowed = settings.allow_missing
    places = places_of(samples.keys, scores, str(path), allow_missing=allowed)
    verdict = task.judge(scores.values[np.maximum(places, 0)], scores.quantity, settings.rules)
    return _by_subset(samples, verdict, places >= 0)


def _by_subset(samples: Samples, verdict: Verdict, scored: Flags) -> Iterator[tuple[str, Judged]]:
    for subset, members in samples.subsets.items():
        yield subset, part_of(samples, verdict, members, scored)
    if len(samples.subsets) > 1 and all((m & scored).any() for m in samples.subsets.values()):
        everything = samples.subsets[EVERYTHING]
        whole = part_of(samples, verdict, everything, scored)
        yield MACRO, replace(whole, groups=_groups(samples)[scored])


def _people(
    samples: Samples, votes: Votes, task: SampleTask, rules: Rules
) -> Iterator[tuple[str, Judged]]:
    """Yields what people have right of each subset that they were asked about."""
    keys, verdict = judge_people(votes, task, rules)
    places = places_in(samples.keys, text_array(keys))
    asked = text_array(sorted(first_votes(votes.by_reviewer)))
    aligned = verdict.at(np.maximum(places, 0))
    for subset, judged in _by_subset(samples, aligned, places >= 0):
        of_them = np.isin(samples.keys, asked) & samples.subsets.get(subset, True)
        if judged.scored:
            yield subset, replace(judged, expected=int(of_them.sum()))


def part_of(samples: Samples, verdict: Verdict, members: Flags, scored: Flags) -> Judged:
    """Returns what is judged of a subset: those of its members that have scores."""
    chosen = members & scored
    return Judged(
        credits={name: found[chosen] for name, found in verdict.credits.items()},
        chance=verdict.chance,
        tied=verdict.tied[chosen],
        clusters=samples.clusters[chosen],
        expected=int(members.sum()),
        units=verdict.units,
        keys=samples.keys[chosen],
    )


def _groups(samples: Samples) -> NDArray[np.int64]:
    """Returns the number of each sample's subset [n]."""
    groups = np.zeros(len(samples.keys), dtype=np.int64)
    for number, members in enumerate(samples.subsets.values()):
        groups[members] = number
    return groups


def _table(
    model: str, subsets: Mapping[str, Judged], rules: Rules, more: MoreMeasures | None = None
) -> Iterator[Measure]:
    for name, judged in subsets.items():
        found, measures = measure(model, name, judged, rules)
        yield from measures
        if {"p_c", "p_f"} <= judged.credits.keys():
            yield _least(measures, found, list(judged.credits))
        if "equivariance" in judged.credits and judged.scored and judged.groups is None:
            yield from _spread(measures[-1], judged.credits["equivariance"])
        if more is not None:
            yield from more(model, name, judged, rules)


def _least(measures: Sequence[Measure], found: Resampled, metrics: Sequence[str]) -> Measure:
    """Returns VALSE's min(p_c, p_f), of the means and in each draw."""
    columns = [metrics.index("p_c"), metrics.index("p_f")]
    draws, value = found.draws[:, columns].min(axis=1), float(found.values[columns].min())
    least = replace(found.share(columns[0]), value=value, draws=draws)
    low, high = NO_INTERVAL if found.clusters == 1 else least.interval()
    return replace(measures[columns[0]], metric="min(p_c, p_f)", value=value, low=low, high=high)


def _spread(like: Measure, deviations: Credits) -> Iterator[Measure]:
    """Yields quantiles of the equivariance score: equal means may hide different tails."""
    for share in QUANTILES:
        value = float(np.quantile(deviations, share))
        yield replace(
            like, metric=f"equivariance {share:.0%}", value=value, low=np.nan, high=np.nan
        )


def score_notes(names: Sequence[str], scores: Sequence[SampleScores]) -> Iterator[str]:
    """Yields what a reader of a table of some models' scores should know."""
    for name, found in zip(names, scores, strict=True):
        for reason, count in found.failures.items():
            yield f"{name}: {count:,} samples were not scored: {reason}"
        yield from (f"{name}: {warning}" for warning in found.warnings)
    if len(_quantities(scores)) > 1:
        yield (
            "Numbers that are no shares are in the unit of the scores, which are not one quantity "
            f"({', '.join(_quantities(scores))}): they are not compared."
        )
