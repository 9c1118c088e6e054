"""The settings of a measurement, and its result, one JSON file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import tyro

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.pictures import MAX_PIXELS
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.evaluation.statistics.bootstrap import RESAMPLES, Numbers, percentile_interval
from eqforge.schemas.records.scores import Identity

FORMAT = "eqforge efficiency"
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class EfficiencySettings:
    """Measure a model's speed, for single images with one caption and in batches."""

    dataset: tyro.conf.Positional[str]
    """Folder or URL of a dataset with images and captions."""

    model: str
    """Model to measure, in a form that `eqforge score` accepts. To measure a model that answers
    VLUE's questions, pass answer:FOLDER[,device=...][,list=FILE][,features=FILE]. The options have
    the same meaning as in `eqforge answer`."""

    output: Path
    """JSON file to write."""

    task: str | None = None
    """Task to measure. The choices are the same as in `eqforge score` or `eqforge answer`."""

    items: int = 100
    """Number of image-caption pairs to time one by one."""

    warm_up: int = 10
    """Number of untimed warm-up runs for each batch size."""

    repeats: int = 20
    """Number of timed runs per batch size."""

    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    """Batch sizes to time, in ascending order. A GPU may run out of memory at larger sizes."""

    detector: str | None = None
    """Object detector to include in the timing, for models that use region features. Pass the
    folder of a Transformers model such as YOLOS, or ID@COMMIT from the Hugging Face Hub."""

    detector_s: float | None = None
    """Detection time per image in seconds, if you measured it yourself."""

    threads: int | None = None
    """Number of CPU threads (default: PyTorch's default)."""

    max_pixels: int = MAX_PIXELS
    """Maximum number of pixels per image. Larger images are skipped."""

    seed: int = 0
    """Random seed for choosing images and for the bootstrap."""

    resamples: int = RESAMPLES
    """Number of bootstrap resamples."""

    def __post_init__(self) -> None:
        for name in ("items", "repeats", "max_pixels", "resamples"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name.replace('_', '-')} must be at least 1")
        if self.seed < 0:
            raise InputError("--seed must be at least 0")
        if self.warm_up < 0 or (self.threads is not None and self.threads < 1):
            raise InputError("--warm-up must be at least 0, and --threads at least 1")
        ascending = sorted(set(self.batches)) == list(self.batches)
        if not self.batches or self.batches[0] < 1 or not ascending:
            raise InputError("--batches: expected ascending sizes of at least 1")
        if self.detector_s is not None and not 0 < self.detector_s < float("inf"):
            raise InputError("--detector-s must be above 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """Summary of some times, in seconds.

    Attributes:
      low, high: bootstrap 95% interval of the median.
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
      peak_memory_mib: peak memory of tensors on a GPU, including the detector; None on a CPU.
    """

    batch: int
    seconds: Spread
    per_second: float
    peak_memory_mib: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Efficiency:
    """The cost of one model on one machine.

    Attributes:
      clocks: `before` and `after` the measurement, with the load of the machine.
      detector_s: the user's seconds per image of a detector; None without them.
      detector: name and digest of the detector that was timed; None without one.
      stages: times of one image-caption pair at a time: `decode`, `prepare`, `model`, `detector`
        if there is one, and `total`.
      stopped: why the sweep ended before the largest requested size; None if it did not.
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
    detector: str | None = None


def draw_medians(seconds: Sequence[float] | Numbers, resamples: int, seed: int) -> Numbers:
    """Draw medians of times [n] resampled with replacement [resamples]."""
    values = np.sort(np.asarray(seconds, dtype=np.float64))
    rng = np.random.default_rng(seed)
    samples = [rng.integers(0, len(values), len(values)) for _ in range(resamples)]
    return np.array([np.median(values[places]) for places in samples])


def spread(seconds: Sequence[float], resamples: int, seed: int) -> Spread:
    low, high = percentile_interval(draw_medians(seconds, resamples, seed))
    return Spread(
        median=float(np.median(seconds)),
        low=low,
        high=high,
        mean=float(np.mean(seconds)),
        runs=len(seconds),
    )


def write_efficiency(path: Path, found: Efficiency) -> None:
    data = msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"
    storage.write_bytes(str(path), data)


def read_efficiency(path: Path) -> Efficiency:
    found = decode(read_bytes(path), Efficiency, f"{path} was not written by eqforge efficiency")
    if (found.format, found.format_version) != (FORMAT, FORMAT_VERSION) or not found.seconds:
        raise InputError(f"{path}: expected the format {FORMAT} {FORMAT_VERSION}, with timed items")
    return found
