"""The command `eqforge efficiency`."""

import contextlib
import dataclasses
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from eqforge.core.errors import InputError
from eqforge.core.files import pictures
from eqforge.core.files.pictures import MAX_PIXELS
from eqforge.core.shell import shell
from eqforge.core.visible import in_lines
from eqforge.evaluation.statistics.bootstrap import RESAMPLES
from eqforge.models.own import device_of, load_model
from eqforge.models.scorer import Scorer

if TYPE_CHECKING:
    from eqforge.evaluation.efficiency.clock import Spread
    from eqforge.evaluation.efficiency.measure import Protocol
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
        """Checks the numbers.

        Raises:
          InputError: a number is too small, or batch sizes do not ascend.
        """
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


def measure_efficiency(settings: EfficiencySettings) -> "Efficiency":
    """Measures a model, writes the result file and returns its content.

    Raises:
      InputError: dataset, model or settings cannot be used.
      MissingExtra: a package is not installed.
    """
    from eqforge.evaluation.efficiency.clock import spread
    from eqforge.evaluation.efficiency.items import choose_items
    from eqforge.evaluation.efficiency.machine import clocks, machine
    from eqforge.evaluation.efficiency.measure import Protocol, sweep, time_items
    from eqforge.evaluation.efficiency.result import Efficiency, write_efficiency
    from eqforge.evaluation.scoring.tasks import task_of
    from eqforge.schemas.dataset.reader import open_dataset

    dataset = open_dataset(settings.dataset)
    task = task_of(dataset, settings.task)
    device = device_of(settings.model) or "cpu"
    scorer = load_model(settings.model, device)
    _check_detector(scorer, settings)
    items = choose_items(dataset, task, settings.items, settings.seed)
    protocol = Protocol(
        device=device,
        warm_up=settings.warm_up,
        repeats=settings.repeats,
        batches=settings.batches,
        max_pixels=settings.max_pixels,
        seed=settings.seed,
        resamples=settings.resamples,
    )
    with _threads(settings.threads):
        before = clocks(device)
        seconds, ready, failures = time_items(scorer, items, protocol)
        speeds, stopped = sweep(scorer, ready, protocol)
        after, described = clocks(device), machine(device)
    if settings.detector_s is not None:
        seconds["detector"] = [settings.detector_s] * len(ready.inputs)
    total = [sum(parts) for parts in zip(*seconds.values(), strict=True)]
    found = Efficiency(
        model=scorer.identity,
        dataset=dataset.manifest.dataset,
        dataset_sha256=dataset.sha256,
        machine=described,
        clocks={"before": before, "after": after},
        settings={"task": task.name, "items": len(items)} | _described(protocol),
        detector_s=settings.detector_s,
        stages={
            stage: spread(times, settings.resamples, settings.seed)
            for stage, times in (*seconds.items(), ("total", total))
        },
        seconds=total,
        sweep=speeds,
        best_batch=max(speeds, key=lambda speed: speed.per_second).batch,
        stopped=stopped,
        failures=dict(sorted(failures.items())),
        warnings=list(_warnings(before["load_average"][0], len(total))),
    )
    write_efficiency(settings.output, found)
    return found


def _described(protocol: "Protocol") -> dict[str, object]:
    names = ("warm_up", "repeats", "batches", "max_pixels", "seed", "resamples")
    return {name: getattr(protocol, name) for name in names} | {"decoder": pictures.VERSION}


def _check_detector(scorer: Scorer, settings: EfficiencySettings) -> None:
    if scorer.reads_pixels and settings.detector_s is not None:
        raise InputError(
            f"--detector-s: {scorer.identity.name} reads pixels; its time is measured whole"
        )
    if not scorer.reads_pixels and settings.detector_s is None:
        raise InputError(
            f"{scorer.identity.name} reads what was detected beforehand: give the seconds that "
            "takes for an image with --detector-s, or its times could not be compared"
        )


def _warnings(load: float, items: int) -> Iterator[str]:
    cores = len(os.sched_getaffinity(0))
    if load > cores / 2:
        yield (
            f"the machine was busy before: a load of {load:.1f} on {cores} cores; measure again "
            "when it is idle"
        )
    if items < 30:
        yield f"{items} times are few for an interval"


@contextlib.contextmanager
def _threads(count: int | None) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def summary(found: "Efficiency") -> str:
    """Returns the measurement as a few lines of text."""
    from eqforge.evaluation.efficiency.measure import STAGES

    where = found.machine.get("gpu") or f"{found.machine['cpu']}, {found.machine['torch_threads']} "
    where += "" if "gpu" in found.machine else "threads"
    lines = [f"{found.model.name} on {where}", "one image with one caption at a time:"]
    names = (*STAGES, *(["detector (as given)"] if found.detector_s is not None else []), "total")
    for name, stage in zip(names, found.stages.values(), strict=True):
        lines.append(f"  {name:<20} {_in_ms(stage)}")
    lines.append("batches, prepared already:")
    for speed in found.sweep:
        best = "  (best)" if speed.batch == found.best_batch else ""
        lines.append(f"  {speed.batch:<20} {speed.per_second:,.1f} a second{best}")
    lines += [f"  {found.stopped}"] if found.stopped else []
    lines += [f"not used: {count} images: {name}" for name, count in found.failures.items()]
    return in_lines([*lines, *(f"warning: {warning}" for warning in found.warnings)])


def _in_ms(times: "Spread") -> str:
    median, low, high, mean = (
        1000 * value for value in (times.median, times.low, times.high, times.mean)
    )
    return f"median {median:.2f} ms [{low:.2f}, {high:.2f}], mean {mean:.2f} ms"


def efficiency_command(settings: EfficiencySettings) -> int:
    """Measures a model and prints the summary; returns 0.

    Raises:
      InputError, MissingExtra: see measure_efficiency.
    """
    print(summary(measure_efficiency(settings)))
    return 0


main = shell("eqforge efficiency", EfficiencySettings, efficiency_command, keeps_output=True)
"""Measures what a command line names."""

if __name__ == "__main__":
    sys.exit(main())
