"""Effects of caption perturbations: relative drops, and overlap of the harmed captions."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.overlap import mean_jaccard
from eqforge.evaluation.metrics.retrieval import relative_drop
from eqforge.evaluation.statistics.bootstrap import Numbers, resample_means
from eqforge.evaluation.statistics.shares import ROUNDING
from eqforge.evaluation.tables.gallery import Perturbed
from eqforge.evaluation.tables.report import DROP, Judged, Measure, measure
from eqforge.evaluation.tables.retrieval_contest import MOST, UNITS, Contest, derived
from eqforge.evaluation.tables.retrieval_judge import RSUM, Retrieved, Side, is_scored


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Damaged:
    """Results of text-to-image retrieval with the captions of one perturbation.

    Attributes:
      name: name of the perturbation.
      queries: the perturbed captions that are judged.
      of: index in the gallery of the caption that each was made from [queries].
      found: their credits.
      expected: number of them, scored or not.
    """

    name: str
    queries: Side
    of: NDArray[np.int64]
    found: Retrieved
    expected: int


def damage(contest: Contest) -> Iterator[Damaged]:
    """Judges the captions of each perturbation against the unperturbed gallery.

    Raises:
      InputError: a perturbed caption has no score though it must.
    """
    for name, perturbed in contest.gallery.perturbed.items():
        kept = perturbed.changed | (contest.settings.mode == "paper")
        chosen = _usable(contest, perturbed, kept)
        of = perturbed.caption_of[chosen]
        queries = Side(keys=perturbed.texts[chosen], entries=contest.gallery.entry_of[of])
        if len(of):
            yield Damaged(
                name=name,
                queries=queries,
                of=of,
                found=contest.retrieve("t2i", queries, contest.images),
                expected=int(kept.sum()),
            )


def _usable(contest: Contest, perturbed: Perturbed, kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Returns the perturbed captions that are judged; the paper keeps all."""
    scored = is_scored(contest.scores, "captions", perturbed.texts)
    expected = kept & contest.scored[perturbed.caption_of]
    missing = int((expected & ~scored).sum())
    if missing and not contest.settings.allow_missing:
        raise InputError(
            f"{contest.model}: {missing:,} perturbed captions have no score; --allow-missing "
            "leaves them out"
        )
    return np.flatnonzero(expected & scored)


def drop_measures(
    contest: Contest, unperturbed: Retrieved, damaged: Sequence[Damaged]
) -> Iterator[Measure]:
    """Yields each perturbation's scores and drops, and the overlap of the captions they harm.

    Args:
      contest: the model.
      unperturbed: credits of the scored captions without perturbation.
      damaged: the perturbations.
    """
    before = {name: _spread(contest, credits) for name, credits in unperturbed.credits.items()}
    for one in damaged:
        yield from _drops(contest, one, {name: found[one.of] for name, found in before.items()})
    if len(damaged) > 1:
        yield from _overlap(contest, before[f"t2i {RSUM}"], damaged)


def _spread(contest: Contest, credits: Numbers) -> Numbers:
    """Returns the captions' credits by index in the gallery [captions]."""
    spread = np.full(len(contest.scored), np.nan)
    spread[contest.scored] = credits
    return spread


def _drops(contest: Contest, one: Damaged, before: Mapping[str, Numbers]) -> Iterator[Measure]:
    """Yields a perturbation's scores, and their relative drops."""
    after = one.found
    metrics = list(after.credits)
    judged = Judged(
        credits=after.credits | {f"before {metric}": before[metric] for metric in metrics},
        chance=after.chance,
        tied=after.tied,
        clusters=one.queries.entries,
        expected=one.expected,
        units={**UNITS} | {f"before {metric}": unit for metric, unit in UNITS.items()},
        most={**MOST} | {f"before {metric}": most for metric, most in MOST.items()},
    )
    found, measures = measure(contest.model, one.name, judged, contest.settings.rules)
    yield from measures[: len(metrics)]
    rows = np.vstack([found.values, found.draws])
    drops = relative_drop(rows[:, len(metrics) :], rows[:, : len(metrics)])
    for place, metric in enumerate(metrics):
        column = drops[:, place]
        like = replace(measures[place], unit="share", chance=None)
        constant = judged.most_of(metric) is not None and np.ptp(column) < ROUNDING
        drop = derived(like, f"{DROP}{metric}", float(column[0]), column[1:])
        yield _around_constant(drop, judged, metric) if constant else drop


def _around_constant(drop: Measure, judged: Judged, metric: str) -> Measure:
    """Returns a drop that is equal in all draws, such as 0 or 1, with bounds.

    A loss is a share of the score before; a gain, a share of what could be gained.
    """
    before, after = judged.credits[f"before {metric}"], judged.credits[metric]
    assert judged.clusters is not None
    had, most = before > 0, judged.most_of(metric) or 1.0
    share = np.maximum(before - after, 0)[had] / before[had]
    lost = resample_means(share, judged.clusters[had], weights=before[had], resamples=1)
    gained = resample_means(np.maximum(after - before, 0), judged.clusters, resamples=1)
    below, above = lost.share_interval()
    least, highest = (bound / before.mean() for bound in gained.share_interval(most=most))
    won = gained.values[0] / before.mean()
    return replace(
        drop,
        low=drop.value - math.hypot(lost.values[0] - below, highest - won),
        high=drop.value + math.hypot(above - lost.values[0], won - least),
    )


def _overlap(contest: Contest, before: Numbers, damaged: Sequence[Damaged]) -> Iterator[Measure]:
    rsums = {one.name: np.full(len(before), np.nan) for one in damaged}
    for one in damaged:
        rsums[one.name][one.of] = one.found.credits[f"t2i {RSUM}"]
    for group, value in mean_jaccard(before, rsums).items():
        yield Measure(
            model=contest.model,
            subset="Jaccard",
            metric=group,
            unit="number",
            value=value,
            low=np.nan,
            high=np.nan,
            chance=None,
            expected=len(contest.scored),
            scored=int(contest.scored.sum()),
            missing=int((~contest.scored).sum()),
            clusters=len(contest.images.keys),
            ties=None,
        )
