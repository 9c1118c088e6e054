"""The measurement of a model, as one JSON file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.evaluation.statistics.bootstrap import Numbers, percentile_interval
from eqforge.schemas.records.scores import Identity

FORMAT = "eqforge efficiency"
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Summary of some times, in seconds.

    Attributes:
      median: the median.
      low, high: bootstrap 95 % interval of the median.
      mean: the arithmetic mean, which the paper reports.
      runs: number of times.
    """

    median: float
    low: float
    high: float
    mean: float
    runs: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchSpeed:
    """The speed of batches of one size.

    Attributes:
      batch: number of image-caption pairs.
      seconds: time of a whole batch, already prepared.
      per_second: image-caption pairs per second, by the median time.
      peak_memory_mib: peak memory of tensors on a GPU; None on a CPU.
    """

    batch: int
    seconds: Spread
    per_second: float
    peak_memory_mib: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Efficiency:
    """What one model costs on one machine.

    Attributes:
      model: the model.
      dataset, dataset_sha256: name of the dataset and SHA-256 of its `dataset.json`.
      machine: hardware and libraries.
      clocks: `before` and `after` the measurement, with the load of the machine.
      settings: how it was measured.
      detector_s: seconds per image of a detector, as given by the user; None where the model
        reads pixels.
      stages: times of one image-caption pair at a time: `decode`, `prepare`, `model`, `detector`
        if there is one, and `total`.
      seconds: the total of each image-caption pair.
      sweep: batches of growing size, already prepared.
      best_batch: the batch size with the highest throughput.
      stopped: why the sweep ended before the largest size asked for; None if it did not.
      failures: number of unusable images by error.
      warnings: what a user should know before trusting the times.
    """

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    model: Identity
    dataset: str
    dataset_sha256: str
    machine: dict[str, Any]
    clocks: dict[str, Any]
    settings: dict[str, Any]
    detector_s: float | None
    stages: dict[str, Spread]
    seconds: list[float]
    sweep: list[BatchSpeed]
    best_batch: int
    stopped: str | None = None
    failures: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def draw_medians(seconds: Sequence[float] | Numbers, resamples: int, seed: int) -> Numbers:
    """Return medians of times [n] resampled with replacement [resamples]."""
    values = np.sort(np.asarray(seconds, dtype=np.float64))
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, len(values), len(values)) for _ in range(resamples)]
    return np.array([np.median(values[places]) for places in drawn])


def spread(seconds: Sequence[float], resamples: int, seed: int) -> Spread:
    """Return the median of some times, its interval, and the mean."""
    low, high = percentile_interval(draw_medians(seconds, resamples, seed))
    return Spread(
        median=float(np.median(seconds)),
        low=low,
        high=high,
        mean=float(np.mean(seconds)),
        runs=len(seconds),
    )


def write_efficiency(path: Path, found: Efficiency) -> None:
    """Write a measurement as indented JSON."""
    data = msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"
    storage.write_bytes(str(path), data)


def read_efficiency(path: Path) -> Efficiency:
    """Read a measurement."""
    found = decode(read_bytes(path), Efficiency, f"{path}: is no file of eqforge efficiency")
    if (found.format, found.format_version) != (FORMAT, FORMAT_VERSION) or not found.seconds:
        raise InputError(f"{path}: expected format {FORMAT} {FORMAT_VERSION}")
    return found
