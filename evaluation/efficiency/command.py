"""The command `eqforge efficiency`."""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from eqforge.core.errors import InputError
from eqforge.core.files.pictures import MAX_PIXELS
from eqforge.core.shell import shell
from eqforge.core.visible import in_lines
from eqforge.evaluation.statistics.bootstrap import RESAMPLES

if TYPE_CHECKING:
    from eqforge.evaluation.efficiency.result import Efficiency


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class EfficiencySettings:
    """Measure what a model costs: seconds for one image with one caption, and images a second."""

    dataset: tyro.conf.Positional[str]
    """Folder or URL of a dataset with images and captions."""

    model: str
    """The model, named as for eqforge score."""

    output: Path
    """JSON file to write."""

    task: str | None = None
    """Which of the dataset's columns hold images and captions; as for eqforge score."""

    items: int = 100
    """Images with a caption each that are timed one at a time."""

    warm_up: int = 10
    """Runs before the first that counts, and before those of every batch size."""

    repeats: int = 20
    """Runs of every batch size that count."""

    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    """Sizes of batches, ascending; a GPU's memory may end them earlier."""

    detector_s: float | None = None
    """Seconds that a detector takes for an image, measured elsewhere: needed for a model that reads
    regions which were detected beforehand, and counted in the total."""

    threads: int | None = None
    """Threads on a CPU; by default torch's own number."""

    max_pixels: int = MAX_PIXELS
    """Images of more pixels are not used."""

    seed: int = 0
    """Seed of the draw of images, and of the bootstrap."""

    resamples: int = RESAMPLES
    """How often the bootstrap draws."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("items", "repeats", "max_pixels", "resamples"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name.replace('_', '-')}: expected at least 1")
        if self.seed < 0:
            raise InputError("--seed: expected at least 0")
        if self.warm_up < 0 or (self.threads is not None and self.threads < 1):
            raise InputError("expected --warm-up of at least 0 and --threads of at least 1")
        ascending = sorted(set(self.batches)) == list(self.batches)
        if not self.batches or self.batches[0] < 1 or not ascending:
            raise InputError("--batches: expected sizes of at least 1, ascending")
        if self.detector_s is not None and not 0 < self.detector_s < float("inf"):
            raise InputError("--detector-s: expected seconds above 0")


def summary(found: "Efficiency") -> str:
    """Return the measurement as a few lines of text."""
    threads = f"{found.machine['cpu']}, {found.machine['torch_threads']} threads"
    lines = [f"{found.model.name} on {found.machine.get('gpu') or threads}"]
    lines.append("one image with one caption at a time:")
    for name, stage in found.stages.items():
        label = "detector (as given)" if name == "detector" else name
        times = (1000 * seconds for seconds in (stage.median, stage.low, stage.high, stage.mean))
        lines.append(
            "  {:<20} median {:.2f} ms [{:.2f}, {:.2f}], mean {:.2f} ms".format(label, *times)
        )
    lines.append("batches, prepared already:")
    for speed in found.sweep:
        best = "  (best)" if speed.batch == found.best_batch else ""
        lines.append(f"  {speed.batch:<20} {speed.per_second:,.1f} a second{best}")
    lines += [f"  {found.stopped}"] if found.stopped else []
    lines += [f"not used: {count} images: {name}" for name, count in found.failures.items()]
    return in_lines([*lines, *(f"warning: {warning}" for warning in found.warnings)])


def efficiency_command(settings: EfficiencySettings) -> int:
    """Measure a model and print the summary; return 0."""
    from eqforge.evaluation.efficiency.measure import measure_efficiency

    print(summary(measure_efficiency(settings)))
    return 0


main = shell("eqforge efficiency", EfficiencySettings, efficiency_command, keeps_output=True)
"""Measures what a command line names."""

if __name__ == "__main__":
    sys.exit(main())
