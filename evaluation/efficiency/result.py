"""What a measurement of a model says, as one JSON file."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from eqforge.evaluation.efficiency.clock import Spread
from eqforge.schemas.dataset.score_tables import ScoringModel
from eqforge.schemas.errors import InputError
from eqforge.schemas.io import storage
from eqforge.schemas.io.typed_json import decode, read_bytes

FORMAT = "eqforge efficiency"
FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchSpeed:
    """How fast batches of one size are.

    Attributes:
      batch: images with a caption each.
      seconds: of a whole batch, prepared already.
      per_second: images with a caption each second, by the median.
      peak_memory_mib: most memory that tensors took on a GPU; None on a CPU.
    """

    batch: int
    seconds: Spread
    per_second: float
    peak_memory_mib: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Efficiency:
    """What one model costs on one machine.

    Attributes:
      model: which.
      dataset, dataset_sha256: name of the dataset and SHA-256 of its `dataset.json`.
      machine: hardware and libraries.
      clocks: `before` and `after` the measurement, with the load of the machine.
      settings: what was measured how.
      detector_s: seconds that a detector takes for an image, as the user says; None where the
        model reads pixels.
      stages: of one image with one caption at a time: `decode`, `prepare`, `model`, `detector`
        where there is one, and `total`.
      seconds: the total of each image and caption.
      sweep: batches of growing size, prepared already.
      best_batch: the size with the most images a second.
      stopped: why the sweep ended before the sizes that were asked for; None where it did not.
      failures: images that could not be used, by what was wrong.
      warnings: what a user should know before trusting the times.
    """

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    model: ScoringModel
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

    @property
    def best(self) -> BatchSpeed:
        """The speed of the best batch."""
        return next(speed for speed in self.sweep if speed.batch == self.best_batch)


def write_efficiency(path: Path, found: Efficiency) -> None:
    """Writes a measurement as indented JSON."""
    data = msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"
    storage.write_bytes(str(path), data)


def read_efficiency(path: Path) -> Efficiency:
    """Reads a measurement.

    Raises:
      InputError: the file is none.
    """
    found = decode(read_bytes(path), Efficiency, f"{path}: is no file of eqforge efficiency")
    if (found.format, found.format_version) != (FORMAT, FORMAT_VERSION) or not found.seconds:
        raise InputError(f"{path}: expected format {FORMAT} {FORMAT_VERSION}")
    return found
