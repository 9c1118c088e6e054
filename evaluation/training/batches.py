"""The units of each batch, and what is known of a batch before a model sees it.

Everything follows from (units, seed, step), so a killed run resumes with the batch it would have
had.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.identity import derive_seed
from eqforge.evaluation.training.examples import Match, Unit
from eqforge.evaluation.training.settings import Schedule

ORDER_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch:
    """The n matches of a batch, in order, and what is known of them.

    Attributes:
      matches: the n matches; the two of a pair are adjacent.
      partners: int64 of shape (n,), the index of the other match of a pair; -1 without one.
      excluded: bool of shape (n, n), matches that share an image or a caption; false on the
        diagonal.
      has_negative, has_positive: bool of shape (n,), whether a match has such a hard text.
    """

    matches: tuple[Match, ...]
    partners: NDArray[np.int64]
    excluded: NDArray[np.bool_]
    has_negative: NDArray[np.bool_]
    has_positive: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The batches of a run.

    Attributes:
      units: all of them.
      batch_size: units per batch; those left over at the end of an epoch go into the next one,
        which has another order.
      steps: total number of batches.
      seed: seed of the order.
      exclude_repeats: whether matches that share an image or a caption are excluded as negatives.
    """

    units: Sequence[Unit]
    batch_size: int
    steps: int
    seed: int
    exclude_repeats: bool = True

    @functools.cached_property
    def _orders(self) -> dict[int, list[int]]:
        return {}

    def batch(self, step: int) -> Batch:
        """Returns the batch of a step, from 0."""
        epoch, place = divmod(step, len(self.units) // self.batch_size)
        if epoch not in self._orders:
            self._orders.clear()
            self._orders[epoch] = epoch_order([u.unit_id for u in self.units], self.seed, epoch)
        chosen = self._orders[epoch][place * self.batch_size : (place + 1) * self.batch_size]
        return make_batch([self.units[n] for n in chosen], self.exclude_repeats)


def count_steps(units: int, batch_size: int, epochs: int, steps: int | None) -> int:
    """Returns the number of batches of a run: `steps`, or if None those of all epochs.

    Raises:
      InputError: there are fewer units than the batch size.
    """
    if units < batch_size:
        raise InputError(
            f"--batch-size {batch_size}: the dataset has {units} samples; take at most that many"
        )
    return epochs * (units // batch_size) if steps is None else steps


def epoch_order(unit_ids: Sequence[str], seed: int, epoch: int) -> list[int]:
    """Returns the indices of units in an epoch's order, which depends on ids, seed and epoch."""
    step = f"epoch {epoch}"
    keys = [(derive_seed(seed, name, step, ORDER_VERSION), name) for name in unit_ids]
    return sorted(range(len(unit_ids)), key=keys.__getitem__)


def make_batch(units: Sequence[Unit], exclude_repeats: bool = True) -> Batch:
    """Makes a batch of units."""
    matches = tuple(match for unit in units for match in unit.matches)
    partners: list[int] = []
    for unit in units:
        start = len(partners)
        partners += [start + 1, start] if len(unit.matches) == 2 else [-1]
    excluded = np.zeros((len(matches), len(matches)), dtype=bool)
    if exclude_repeats:
        for texts in ([m.image_id for m in matches], [m.caption for m in matches]):
            _, codes = np.unique(np.array(texts, dtype=object), return_inverse=True)
            excluded |= codes[:, None] == codes[None, :]
        np.fill_diagonal(excluded, False)
    return Batch(
        matches=matches,
        partners=np.array(partners, dtype=np.int64),
        excluded=excluded,
        has_negative=np.array([match.hard_negative is not None for match in matches]),
        has_positive=np.array([match.hard_positive is not None for match in matches]),
    )


def learning_rate(step: int, steps: int, peak: float, warmup: int, schedule: Schedule) -> float:
    """Returns the rate of a step, from 0: rising to the peak, then constant or a half cosine to 0.

    Args:
      step: from 0.
      steps: of the run.
      peak: maximum rate.
      warmup: number of steps over which it rises; step `warmup` is the first one at the peak.
      schedule: how it continues.
    """
    if step < warmup:
        return peak * (step + 1) / (warmup + 1)
    if schedule == "constant":
        return peak
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))
