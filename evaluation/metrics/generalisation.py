"""How much models lose out of domain, and whether they keep their ranking."""

import numpy as np

from eqforge.evaluation.statistics.bootstrap import Numbers


def generalisation_gap(inside: Numbers, outside: Numbers) -> Numbers:
    """Returns in-domain minus out-of-domain scores, of any shape; positive for a loss.

    Source: VLUE (Zhou et al. 2022), section 4, table 2.
    """
    return inside - outside


def pearson(inside: Numbers, outside: Numbers) -> float:
    """Returns Pearson's correlation of in-domain and out-of-domain scores, in [-1, 1].

    Args:
      inside: in-domain scores [models].
      outside: out-of-domain scores of the same models [models].

    Returns:
      The correlation; NaN for fewer than three models, or if all have the same score.

    Source: VLUE, section 5.
    """
    if len(inside) < 3 or not np.ptp(inside) or not np.ptp(outside):
        return float("nan")
    return float(np.corrcoef(inside, outside)[0, 1])


def fisher_interval(
    correlation: float, models: int, level_z: float = 1.959964
) -> tuple[float, float]:
    """Returns a correlation's interval by Fisher's z; NaN for fewer than four models.

    Args:
      correlation: in (-1, 1).
      models: number of models.
      level_z: half-width in standard errors; 1.96 for 95 %.
    """
    if models < 4 or not np.isfinite(correlation) or abs(correlation) >= 1:
        return float("nan"), float("nan")
    z, error = np.arctanh(correlation), 1 / np.sqrt(models - 3)
    return float(np.tanh(z - level_z * error)), float(np.tanh(z + level_z * error))
