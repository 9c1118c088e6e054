"""The kinds of samples with a few images and captions each, and how they are judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eqforge.core.late import numpy as np
from eqforge.evaluation.metrics.foils import CHANCE as FOIL_CHANCE
from eqforge.evaluation.metrics.foils import judge_foils
from eqforge.evaluation.metrics.hard_positives import CHANCE as HARD_POSITIVE_CHANCE
from eqforge.evaluation.metrics.hard_positives import judge_hard_positives
from eqforge.evaluation.metrics.pairs import CHANCE as PAIR_CHANCE
from eqforge.evaluation.metrics.pairs import equivariance, judge_pairs
from eqforge.evaluation.metrics.ties import Credits, Flags
from eqforge.evaluation.tables.report import Rules, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

THRESHOLDS = {"probability": 0.5, "logit": 0.0}
"""Threshold above which a caption is called true; cosines have none."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Verdict:
    """The judged samples.

    Attributes:
      credits: credits of each metric [n].
      tied: in which samples a comparison ties [n].
      chance: chance level of each metric that has one.
      units: units of the metrics that are not shares.
    """

    credits: dict[str, Credits]
    tied: Flags
    chance: Mapping[str, float]
    units: Mapping[str, Unit]

    def at(self, places: NDArray[np.int64]) -> Verdict:
        """Returns what is judged of the samples at some places [m]."""
        credits = {name: found[places] for name, found in self.credits.items()}
        return replace(self, credits=credits, tied=self.tied[places])


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleTask:
    """A kind of sample.

    Attributes:
      title: what is measured, in words.
      images, captions: the columns that are scored, as `eqforge score` names them.
      cluster: the column that names clusters.
      by: columns that name subsets; the first that the dataset has.
      judge: maps scores [n, images x captions], quantity and rules to a verdict.
    """

    title: str
    images: tuple[str, ...]
    captions: tuple[str, ...]
    cluster: str
    by: tuple[str, ...]
    judge: Callable[[NDArray[np.floating[Any]], str | None, Rules], Verdict]

    @property
    def width(self) -> int:
        """How many scores a sample has."""
        return len(self.images) * len(self.captions)


def judge_as_pairs(
    values: NDArray[np.floating[Any]], quantity: str | None, rules: Rules
) -> Verdict:
    """Judges minimal pairs; see `eqforge.evaluation.metrics.pairs`."""
    del quantity
    scores = values.reshape(-1, 2, 2)
    found = judge_pairs(scores, rules.ties)
    return Verdict(
        credits={
            "text": found.text,
            "image": found.image,
            "group": found.group,
            "equivariance": equivariance(scores),
        },
        tied=found.tied,
        chance=PAIR_CHANCE,
        units={"equivariance": "number"},
    )


def judge_as_hard_positives(
    values: NDArray[np.floating[Any]], quantity: str | None, rules: Rules
) -> Verdict:
    """Judges hard positives, and original captions against hard negatives as VALSE's foils."""
    found = judge_hard_positives(values, rules.ties)
    means = [f"mean {name}" for name in ("caption", "hard positive", "hard negative")]
    credits = {
        "original": found.original,
        "augmented": found.augmented,
        "brittleness": found.brittleness,
        **dict(zip(means, values.astype(np.float64).T, strict=True)),
    }
    chance = dict(HARD_POSITIVE_CHANCE)
    if quantity in THRESHOLDS:
        foils = judge_as_foils(values[:, [0, 2]], quantity, rules)
        credits |= {name: foils.credits[name] for name in ("acc", "p_c", "p_f")}
        chance |= FOIL_CHANCE
    return Verdict(
        credits=credits,
        tied=found.tied,
        chance=chance,
        units=dict.fromkeys(means, "number"),
    )


def judge_as_foils(
    values: NDArray[np.floating[Any]], quantity: str | None, rules: Rules
) -> Verdict:
    """Judges captions against foils; cosines have no threshold, so only `pairwise` is left."""
    found = judge_foils(values, rules.ties, THRESHOLDS.get(quantity or "", 0.5))
    credits = {"pairwise": found.pairwise}
    if quantity in THRESHOLDS:
        credits |= {"acc": found.acc, "p_c": found.p_c, "p_f": found.p_f}
    return Verdict(credits=credits, tied=found.tied, chance=FOIL_CHANCE, units={})


TASKS = {
    "pairs": SampleTask(
        title="text, image and group score of minimal pairs",
        images=("image_0_id", "image_1_id"),
        captions=("caption_0", "caption_1"),
        cluster="source_id",
        by=("kind",),
        judge=judge_as_pairs,
    ),
    "hard-positives": SampleTask(
        title="original and augmented accuracy, and brittleness",
        images=("image_id",),
        captions=("caption", "hard_positive", "hard_negative"),
        cluster="image",
        by=("hard_negative_kind", "kind"),
        judge=judge_as_hard_positives,
    ),
    "foils": SampleTask(
        title="captions against foils, as VALSE",
        images=("image_id",),
        captions=("caption", "hard_negative"),
        cluster="image",
        by=("kind",),
        judge=judge_as_foils,
    ),
}
"""The kinds of samples: told by the columns of a dataset, or named for a file of scores."""
