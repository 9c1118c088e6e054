"""Samples with a few images and captions each, scored one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.visible import counted
from eqforge.evaluation.metrics.pairs import (
    FOIL_METRICS,
    HARD_POSITIVE_METRICS,
    PAIR_METRICS,
    foil_ties,
    pair_ties,
)
from eqforge.evaluation.metrics.ties import Flags, Metric, Scores, TieRule
from eqforge.evaluation.review.forms import Vote
from eqforge.evaluation.review.votes import Votes, first_votes, read_votes, with_ids
from eqforge.evaluation.statistics.bootstrap import Resampled
from eqforge.evaluation.statistics.shares import NO_INTERVAL
from eqforge.evaluation.tables.render import Measure, Report
from eqforge.evaluation.tables.report import Judged, make_report, model_names
from eqforge.evaluation.tables.samples import (
    MACRO,
    Samples,
    make_samples,
    read_samples,
    text_array,
    wrong_samples,
)
from eqforge.evaluation.tables.score_files import read_labels
from eqforge.evaluation.tables.scores import (
    SampleScores,
    places_in,
    places_of,
    read_file,
    read_folder,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.evaluation.tables.settings import MetricsSettings
    from eqforge.schemas.dataset.reader import Dataset

THRESHOLDS = {"probability": 0.5, "logit": 0.0}
"""Threshold above which a caption is called true; cosines have none."""

MoreMeasures = Callable[[str, str, Judged], Iterable[Measure]]
_HUMAN = "human"


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A kind of sample, its metrics, and the `images` and `captions` columns to score."""

    title: str
    images: tuple[str, ...]
    captions: tuple[str, ...]
    cluster: str
    by: tuple[str, ...]
    metrics: Mapping[str, Metric]
    tied: Callable[[Scores], Flags]

    @property
    def width(self) -> int:
        return len(self.images) * len(self.captions)

    def judge(self, values: Scores, quantity: str | None, ties: TieRule) -> Judged:
        """Judge samples by their scores [n, images x captions]."""
        one_image = len(self.images) == 1
        scores = values if one_image else values.reshape(-1, len(self.images), len(self.captions))
        threshold = THRESHOLDS.get(quantity or "")
        shown = {
            name: metric
            for name, metric in self.metrics.items()
            if threshold is not None or not metric.is_thresholded
        }
        return Judged(
            credits={
                name: metric.of(scores, ties, *((threshold,) if metric.is_thresholded else ()))
                for name, metric in shown.items()
            },
            tied=self.tied(scores),
            chance={name: one.chance for name, one in shown.items() if one.chance is not None},
            units={name: one.unit for name, one in shown.items() if one.unit != "share"},
            clusters=None,
            expected=len(scores),
        )

    def judge_subsets(
        self, samples: Samples, scores: SampleScores, path: Path, settings: MetricsSettings
    ) -> dict[str, Judged]:
        places = places_of(samples.keys, scores, str(path), allow_missing=settings.allow_missing)
        values = scores.values[np.maximum(places, 0)]
        whole = self.judge(values, scores.quantity, settings.ties)
        return dict(_by_subset(samples, whole, places >= 0))

    def read(
        self, path: Path, dataset: Dataset, quantity: str | None, columns: Sequence[str] = ()
    ) -> SampleScores:
        if path.is_dir():
            return read_folder(str(path), dataset, self.images, self.captions)
        return read_file(path, self.images, self.captions, quantity, columns, dataset)


TASKS: Final[Mapping[str, Task]] = {
    "pairs": Task(
        title="text, image and group score of minimal pairs",
        images=("image_0_id", "image_1_id"),
        captions=("caption_0", "caption_1"),
        cluster="source_id",
        by=("kind",),
        metrics=PAIR_METRICS,
        tied=pair_ties,
    ),
    "hard-positives": Task(
        title="original and augmented accuracy, and brittleness",
        images=("image_id",),
        captions=("caption", "hard_positive", "hard_negative"),
        cluster="image",
        by=("hard_negative_kind", "kind"),
        metrics=HARD_POSITIVE_METRICS,
        tied=foil_ties,
    ),
    "foils": Task(
        title="captions against foils, as in VALSE",
        images=("image_id",),
        captions=("caption", "hard_negative"),
        cluster="image",
        by=("kind",),
        metrics=FOIL_METRICS,
        tied=foil_ties,
    ),
}
"""The tasks by name; a dataset's task is found by its columns."""


def task_of(dataset: Dataset) -> Task | None:
    names = set(dataset.columns("samples"))
    for task in TASKS.values():
        if {*task.images, *task.captions, task.cluster} <= names:
            return task
    return None


def samples_report(
    dataset: Dataset,
    task: Task,
    paths: Sequence[Path],
    settings: MetricsSettings,
    samples: Samples | None = None,
    more: MoreMeasures | None = None,
) -> Report:
    if samples is None:
        names = dataset.columns("samples")
        by = settings.by or next((name for name in task.by if name in names), None)
        samples = read_samples(dataset, settings.cluster or task.cluster, by)
    scores = [task.read(path, dataset, settings.quantity, settings.columns) for path in paths]
    people = read_ranks(settings.human, dataset, task) if settings.human else None
    title = f"{dataset.manifest.dataset}: {task.title}, in per cent"
    return _report(title, task, paths, samples, scores, settings, people, more)


def files_report(task: Task, paths: Sequence[Path], settings: MetricsSettings) -> Report:
    """Return the table of score files without a dataset.

    Args:
      paths: one file per model; see `read_file`. The columns `cluster` and `subset` are optional;
        a sample without `cluster` counts as independent. All files' samples together are expected.
    """
    scores = [
        read_file(path, task.images, task.captions, settings.quantity, settings.columns)
        for path in paths
    ]
    keys = sorted({str(key) for found in scores for key in found.keys})
    clusters, subsets = (
        _labels(name, paths, scores, settings.columns) for name in ("cluster", "subset")
    )
    samples = make_samples(keys, [*map(clusters.get, keys)], [*map(subsets.get, keys)])
    return _report(f"{task.title}, in per cent", task, paths, samples, scores, settings)


def _labels(
    name: Literal["cluster", "subset"],
    paths: Sequence[Path],
    scores: Sequence[SampleScores],
    columns: Sequence[str],
) -> dict[str, str]:
    """Return a column's labels by sample; a file without the column uses the others' labels."""
    by_sample: dict[str, tuple[str, Path]] = {}
    for path, found in zip(paths, scores, strict=True):
        labels = read_labels(path, name, columns)
        for key, label in () if labels is None else zip(found.keys.tolist(), labels, strict=True):
            known, where = by_sample.setdefault(key, (label, path))
            if known != label:
                raise InputError(
                    f"{path}: the {name} of {key!r} is {label!r}, but {where} has {known!r}. Use "
                    f"the same {name} in all files"
                )
    return {key: label for key, (label, _) in by_sample.items()}


def _report(
    title: str,
    task: Task,
    paths: Sequence[Path],
    samples: Samples,
    scores: Sequence[SampleScores],
    settings: MetricsSettings,
    people: Votes | None = None,
    more: MoreMeasures | None = None,
) -> Report:
    names = model_names([found.model for found in scores], paths)
    samples, scores, left_out = without_errata(samples, scores, settings.errata)
    judged = {
        name: task.judge_subsets(samples, found, path, settings)
        for name, found, path in zip(names, scores, paths, strict=True)
    }
    if people is not None:
        if _HUMAN in judged:
            raise InputError(
                f"the model name {_HUMAN!r} is reserved for human reviewers; rename the model file"
            )
        judged[_HUMAN] = dict(_people(samples, people, task, settings.ties))
        raters = ", ".join(people.by_reviewer)
        left_out += (
            f"{_HUMAN}: a sample is right if all its reviewers are right. Reviewers: {raters}",
        )

    def add(
        model: str, subset: str, part: Judged, means: list[Measure], found: Resampled
    ) -> Iterator[Measure]:
        if {"p_c", "p_f"} <= part.credits.keys():
            yield _least(means, found, list(part.credits))
        if "equivariance" in part.credits and part.scored and part.groups is None:
            # Equal means may hide different tails.
            like = next(mean for mean in means if mean.metric == "equivariance")
            for share in (0.5, 0.9):
                value = float(np.quantile(part.credits["equivariance"], share))
                metric = f"equivariance {share:.0%}"
                yield replace(like, metric=metric, value=value, low=np.nan, high=np.nan)
        if more is not None:
            yield from more(model, subset, part)

    notes = (*score_notes(names, scores), *left_out)
    report = make_report(title, settings.rules, judged, notes, add)
    if len(_quantities(scores)) < 2:
        return report
    shares = tuple(one for one in report.comparisons if one.unit == "share")
    return replace(report, comparisons=shares)


def without_errata(
    samples: Samples, scores: Sequence[SampleScores], path: Path | None
) -> tuple[Samples, Sequence[SampleScores], tuple[str, ...]]:
    if path is None:
        return samples, scores, ()
    wrong_ids, notes = wrong_samples(samples.keys.tolist(), path)
    return samples.without(wrong_ids), [found.without(wrong_ids) for found in scores], notes


def _by_subset(samples: Samples, whole: Judged, scored: Flags) -> Iterator[tuple[str, Judged]]:
    whole = replace(whole, clusters=samples.clusters, keys=samples.keys)
    for subset, members in samples.subsets.items():
        yield subset, whole.part(members & scored, expected=int(members.sum()))
    if len(samples.subsets) > 1 and all((m & scored).any() for m in samples.subsets.values()):
        groups = np.zeros(len(samples.keys), dtype=np.int64)
        for number, members in enumerate(samples.subsets.values()):
            groups[members] = number
        yield MACRO, replace(whole, groups=groups).part(scored, expected=len(scored))


def _least(means: Sequence[Measure], found: Resampled, metrics: Sequence[str]) -> Measure:
    """Return VALSE's min(p_c, p_f), for the means and for each draw."""
    columns = [metrics.index("p_c"), metrics.index("p_f")]
    draws, value = found.draws[:, columns].min(axis=1), float(found.values[columns].min())
    least = replace(found.share(columns[0]), value=value, draws=draws)
    low, high = NO_INTERVAL if found.clusters == 1 else least.interval()
    return replace(means[columns[0]], metric="min(p_c, p_f)", value=value, low=low, high=high)


def score_notes(names: Sequence[str], scores: Sequence[SampleScores]) -> Iterator[str]:
    for name, found in zip(names, scores, strict=True):
        for reason, count in found.failures.items():
            yield f"{name}: {counted(count, 'samples')} without a score: {reason}"
        if unknown := int(found.is_unknown.sum()):
            yield f"{name}: {counted(unknown, 'samples')} with a NaN score counted as missing"
        yield from (f"{name}: {warning}" for warning in found.warnings)
    if len(_quantities(scores)) > 1:
        yield (
            f"The models have different kinds of scores ({', '.join(_quantities(scores))}), so "
            "eqforge compares only fractions between them."
        )


def _quantities(scores: Sequence[SampleScores]) -> list[str]:
    return sorted({found.quantity for found in scores if found.quantity is not None})


def read_ranks(paths: Sequence[Path], dataset: Dataset, task: Task) -> Votes:
    votes = read_votes(paths, dataset.folder, dataset.sha256)
    if votes.form != "rank":
        raise InputError(
            f"{paths[0]}: human performance needs ranks, but these votes use the protocol "
            f"{votes.protocol}. To collect ranks, run eqforge review plan DATASET --protocol "
            "caption-ranking"
        )
    votes = with_ids(votes, {row["sample_id"] for row in dataset.rows("samples", ["sample_id"])})
    check_ranks(votes, task)
    return votes


def check_ranks(votes: Votes, task: Task) -> None:
    shape = (len(task.images), len(task.captions))
    for name, reviewer_votes in votes.by_reviewer.items():
        for vote in reviewer_votes:
            if vote.is_given and [len(each) for each in vote.ranks] != [shape[1]] * shape[0]:
                raise InputError(
                    f"{votes.paths[name]}: task {vote.task}: expected {shape[1]} ranks per "
                    f"image ({counted(shape[0], 'images')})"
                )


def _people(
    samples: Samples, votes: Votes, task: Task, ties: TieRule
) -> Iterator[tuple[str, Judged]]:
    """Yield people's credits by subset.

    A sample counts if everyone who was asked is right, as in the paper; it is brittle if anyone is.

    Source: Kamath et al. 2024, section 4.1: a point is awarded if both annotators agree on the
      correct rank.
    """
    votes_of = first_votes(votes.by_reviewer)
    least = max(1, votes.overlap)
    ranked: dict[str, list[Vote]] = {}
    for item, item_votes in votes_of.items():
        answers = [vote for vote in item_votes.values() if vote.is_given]
        if len(answers) >= least:
            ranked[item] = answers
    if not ranked:
        raise InputError(
            f"no sample has ranks from all of its {least} reviewers; pass the vote files of all "
            "reviewers"
        )
    rows = [vote.ranks for item_votes in ranked.values() for vote in item_votes]
    values = -np.array(rows, dtype=np.float64).reshape(len(rows), -1)
    found = task.judge(values, None, ties)
    first = np.cumsum([0, *(len(item_votes) for item_votes in ranked.values())])[:-1]
    places = places_in(samples.keys, text_array(list(ranked)))
    at = np.maximum(places, 0)

    def worst(metric: str) -> NDArray[Any]:
        best_is_least = task.metrics[metric].is_cost
        together: np.ufunc = np.maximum if best_is_least else np.minimum
        return together.reduceat(found.credits[metric], first)[at]

    assert found.tied is not None
    agreed = Judged(
        credits={name: worst(name) for name in found.credits if name not in found.units},
        tied=np.logical_or.reduceat(found.tied, first)[at],
        clusters=None,
        expected=len(at),
    )
    is_asked = np.isin(samples.keys, text_array(sorted(votes_of)))
    for subset, judged in _by_subset(samples, agreed, places >= 0):
        of_them = is_asked & samples.subsets.get(subset, True)
        if judged.scored:
            yield subset, replace(judged, expected=int(of_them.sum()))
