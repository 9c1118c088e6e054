"""The Pareto front of scores against times, with each model's probability of being on it.

A model is on the front when no other is at least as good in both and better in one. VLUE's sentence
asks that no other "outperforms" it on both; the two differ only where scores or times are equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eqforge.core.late import numpy as np
from eqforge.evaluation.statistics.bootstrap import Numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray


def on_front(
    scores: NDArray[Any], seconds: NDArray[Any], *, strict: bool = False
) -> NDArray[np.bool_]:
    """Tells which models are on the front.

    Args:
      scores: of the models [..., models]; higher is better.
      seconds: of the models [..., models]; lower is better.
      strict: a model is dominated only by one that is better in both, as VLUE's sentence says.

    Returns:
      Whether each model is on the front [..., models]. Models equal in both are all on it or all
      off it.

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
    """Returns the share of resamples in which each model is on the front [models].

    Args:
      scores: of each resample [resamples, models].
      seconds: of each resample [resamples, models].
      strict: see on_front.
    """
    blocks = np.array_split(np.arange(len(scores)), max(1, scores.size * scores.shape[1] // 10**6))
    counts = sum(on_front(scores[b], seconds[b], strict=strict).sum(axis=0) for b in blocks)
    return np.asarray(counts / len(scores), dtype=np.float64)
