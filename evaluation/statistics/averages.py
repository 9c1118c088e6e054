"""Named averages over the subsets of a benchmark."""

from collections.abc import Mapping, Sequence

import numpy as np

from eqforge.evaluation.statistics.bootstrap import Numbers, Resampled

EQBEN_DOMAINS = {
    "youcook2": ("youcook2",),
    "gebc": ("gebc",),
    "ag": ("ag",),
    "kubric": ("kubric-location", "kubric-counting", "kubric-attribute"),
    "sd": ("sd",),
}
"""EqBen's five domains, in the order of its tables, with the subsets that each averages."""


def micro(parts: Sequence[Numbers], sizes: Sequence[int]) -> Numbers:
    """Returns the mean over all samples: each subset is weighted by its size.

    Args:
      parts: for each subset its mean, or draws of it.
      sizes: number of samples of each subset.
    """
    return np.average(np.stack(list(parts)), axis=0, weights=sizes)


def macro(parts: Sequence[Numbers]) -> Numbers:
    """Returns the mean over subsets, equally weighted.

    Args:
      parts: for each subset its mean, or draws of it.
    """
    return np.stack(list(parts)).mean(axis=0)


def domains(subsets: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Returns EqBen's five domains of its seven subsets: Kubric is the mean of its three.

    Args:
      subsets: means, or draws of them, of any shape, under the keys of EQBEN_SIZES.
    """
    return {
        domain: macro([subsets[name] for name in names]) for domain, names in EQBEN_DOMAINS.items()
    }


def eqben_average(subsets: Mapping[str, Numbers]) -> Numbers:
    """Returns the paper's average of 15 numbers: three scores of each of five domains.

    Kubric's three subsets are averaged first, so that all domains weigh the same.

    Args:
      subsets: for each key of EQBEN_SIZES its text, image and group score [..., 3].

    Source: EqBen, table 3; its rows but FIBER's first are the mean of their 15 numbers.
    """
    return np.concatenate(list(domains(subsets).values()), axis=-1).mean(axis=-1)


def pooled(found: Mapping[str, Resampled]) -> dict[str, Numbers]:
    """Returns values and draws of each subset, stacked [1 + resamples, metrics]."""
    return {name: np.vstack([part.values, part.draws]) for name, part in found.items()}
