"""One model on a gallery: what it has scored, and how its retrieval is judged."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.retrieval import KS, Recall
from eqforge.evaluation.statistics.bootstrap import Numbers, percentile_interval
from eqforge.evaluation.tables.crossed_scores import CrossedScores
from eqforge.evaluation.tables.gallery import Gallery
from eqforge.evaluation.tables.report import Measure, Rules, Unit
from eqforge.evaluation.tables.retrieval_judge import (
    DCG,
    RSUM,
    Direction,
    Retrieved,
    Side,
    is_scored,
    retrieve,
)

Mode = Literal["corrected", "paper"]
UNITS: Mapping[str, Unit] = {f"i2t {DCG}": "number", f"t2i {DCG}": "number"}
MOST: Mapping[str, float] = {f"i2t {RSUM}": len(KS), f"t2i {RSUM}": len(KS)}


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievalRules:
    """How retrieval is judged.

    Attributes:
      rules: ties, seed and resamples.
      mode: `paper` counts R@k as the authors of the dataset do, and keeps captions whose
        words a perturbation did not change.
      allow_missing: whether images and captions may have no scores.
    """

    rules: Rules
    mode: Mode = "corrected"
    allow_missing: bool = False


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Contest:
    """One model on a gallery.

    Attributes:
      model: name of the model.
      gallery: what is retrieved.
      scores: its scores.
      relevance: vectors of the model that measures similarity; None leaves DCG_CM out.
      settings: how it is judged.
      scored: which captions have scores and images that have [captions].
    """

    model: str
    gallery: Gallery
    scores: CrossedScores
    relevance: CrossedScores | None
    settings: RetrievalRules
    scored: NDArray[np.bool_]

    @property
    def images(self) -> Side:
        """The entries with a scored caption."""
        entries = np.unique(self.gallery.entry_of[self.scored])
        return Side(keys=self.gallery.image_ids[entries], entries=entries)

    @property
    def captions(self) -> Side:
        """The captions that have a score."""
        return Side(keys=self.gallery.texts, entries=self.gallery.entry_of).only(self.scored)

    @property
    def recall(self) -> Recall:
        """What R@k counts; in paper mode as the dataset's authors do."""
        return self.gallery.published_recall if self.settings.mode == "paper" else "any"

    def retrieve(self, direction: Direction, queries: Side, candidates: Side) -> Retrieved:
        """Judges one direction."""
        return retrieve(
            direction,
            self.scores,
            queries,
            candidates,
            relevance=self.relevance,
            ties=self.settings.rules.ties,
            recall=self.recall,
        )


def enter(
    model: str,
    gallery: Gallery,
    scores: CrossedScores,
    relevance: CrossedScores | None,
    settings: RetrievalRules,
) -> Contest:
    """Returns a model on a gallery.

    Raises:
      InputError: scores are missing though not allowed to be, or there are none.
    """
    pictured = is_scored(scores, "images", gallery.image_ids)[gallery.entry_of]
    scored = is_scored(scores, "captions", gallery.texts) & pictured
    missing = int((~scored).sum())
    if not scored.any() or (missing and not settings.allow_missing):
        why = ", ".join(f"{count:,} {reason}" for reason, count in scores.failures.items())
        raise InputError(
            f"{model}: {missing:,} of {len(scored):,} captions have no score with their image"
            f"{f' ({why})' if why else ''}; --allow-missing leaves them out"
        )
    return Contest(
        model=model,
        gallery=gallery,
        scores=scores,
        relevance=relevance,
        settings=settings,
        scored=scored,
    )


def derived(like: Measure, metric: str, value: float, draws: Numbers) -> Measure:
    """Returns a measure computed from others, draw by draw.

    Args:
      like: a measure of the same queries.
      metric: its name.
      value: the number.
      draws: the number in each resample [resamples]; non-finite ones are ignored.

    Returns:
      The measure. It has no interval if the number is not finite, there is a single cluster, or
      fewer than half of the draws are finite.
    """
    low = high = float("nan")
    if np.isfinite(value) and like.clusters > 1:
        low, high = percentile_interval(np.where(np.isfinite(draws), draws, np.nan))
    return replace(like, metric=metric, value=value, low=low, high=high, chance=None)
