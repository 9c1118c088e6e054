"""The granularity of a dataset: means of caption features with confidence intervals."""

import dataclasses
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from eqforge.generators.text.granularity import Granularity

FEATURES = tuple(field.name for field in dataclasses.fields(Granularity))
_CELLS = 4_000_000  # of the largest matrix held in memory, 32 MB


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FeatureSummary:
    """One feature over a dataset.

    Attributes:
      feature: a field of `Granularity`.
      captions: number of captions that have the feature.
      mean: over those captions; None if there are none.
      low, high: ends of the confidence interval of the mean; None if the mean is, or if there is
        only one image.
    """

    feature: str
    captions: int
    mean: float | None
    low: float | None
    high: float | None


def summarise_granularity(
    measured: Iterable[tuple[str, Granularity]],
    *,
    seed: int,
    confidence: float = 0.95,
    resamples: int = 1_000,
) -> list[FeatureSummary]:
    """Returns a summary per feature, in the order of `Granularity`'s fields.

    The interval is a percentile bootstrap over images, not captions: the captions of one image are
    correlated, so an interval over captions would be too narrow. Images are resampled in order of
    their ids, so the order of the captions affects at most the last digits of the sums.

    Args:
      measured: image id and features of each caption; streamed, memory grows with the images.
      seed: of the resampling.
      confidence: level of the interval, in (0, 1).
      resamples: number of bootstrap resamples; more than 100.
    """
    images: dict[str, npt.NDArray[np.float64]] = {}
    for image_id, features in measured:
        values = np.array([getattr(features, name) for name in FEATURES], dtype=np.float64)
        known = ~np.isnan(values)
        row = np.concatenate([np.where(known, values, 0.0), known])
        images[image_id] = images.get(image_id, 0.0) + row
    if not images:
        return [
            FeatureSummary(feature=name, captions=0, mean=None, low=None, high=None)
            for name in FEATURES
        ]
    rows = np.stack([images[image_id] for image_id in sorted(images)])
    means = _resample(rows, np.random.default_rng(seed), resamples)
    tail = (1.0 - confidence) / 2
    low, high = _percentiles(means, tail), _percentiles(means, 1.0 - tail)
    totals = rows.sum(axis=0)
    return [
        FeatureSummary(
            feature=name,
            captions=int(totals[len(FEATURES) + i]),
            mean=_number(_means(totals)[i]),
            low=_number(low[i]) if len(rows) > 1 else None,
            high=_number(high[i]) if len(rows) > 1 else None,
        )
        for i, name in enumerate(FEATURES)
    ]


def _resample(
    rows: npt.NDArray[np.float64], rng: np.random.Generator, resamples: int
) -> npt.NDArray[np.float64]:
    """Returns feature means, [resamples, features], over images drawn with replacement."""
    chance = np.full(len(rows), 1.0 / len(rows))
    step = max(1, _CELLS // len(rows))
    totals = [
        rng.multinomial(len(rows), chance, size=min(step, resamples - done)) @ rows
        for done in range(0, resamples, step)
    ]
    return _means(np.concatenate(totals))


def _means(totals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Divides sums by counts, the two halves of the last axis; NaN where the count is 0."""
    sums, counts = np.split(totals, 2, axis=-1)
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def _percentiles(means: npt.NDArray[np.float64], share: float) -> npt.NDArray[np.float64]:
    """Returns a quantile, `share` in [0, 1], per feature over resamples that have it, else NaN."""
    columns = [column[~np.isnan(column)] for column in means.T]
    return np.array([np.quantile(c, share) if len(c) else np.nan for c in columns])


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
