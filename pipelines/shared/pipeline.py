"""What a pipeline file says of its dataset."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import apache_beam as beam

from eqforge.pipelines.shared.settings import DatasetConfig, Mode
from eqforge.schemas.records.books import Stage
from eqforge.transforms.dataset.census import Medium
from eqforge.transforms.dataset.finish import DatasetTarget
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.dataset.write import Table

Configured = TypeVar("Configured", bound=DatasetConfig)


@dataclass(frozen=True, kw_only=True, slots=True)
class Target(Generic[Configured]):
    """What a pipeline is wired to.

    Attributes:
      config: the configuration.
      plan_files: the plan on disk.
      dataset: where the tables and the manifest go.
      notes: the folder in which processes note their progress.
    """

    config: Configured
    plan_files: tuple[str, ...]
    dataset: DatasetTarget
    notes: str


def _no_defaults(_mode: Mode) -> dict[str, Any]:
    """Returns none: the mode itself decides the rules."""
    return {}


def _nothing_to_confirm(_config: Any, _plan: PlanFiles) -> None:
    """Accepts any plan."""


def _no_media(_config: Any, _plan: PlanFiles) -> Iterable[Medium]:
    """Returns none."""
    return ()


def _no_warnings(_config: Any) -> Iterable[str]:
    """Returns none."""
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PilotCost:
    """What a pilot took.

    Attributes:
      seconds: wall-clock time of its records.
      num_bytes: of the images it stored.
      start_s: seconds that a process needs once, before its first record.
    """

    seconds: float
    num_bytes: int
    start_s: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Pilot(Generic[Configured]):
    """How `eqforge plan` builds a few records, to estimate what all of them cost.

    Attributes:
      records: what the plan's records are called.
      number: how many are built where `--pilot` is not given.
      unit: the count of `Pipeline.measure` that the cost grows with.
      clock: what the seconds are measured on, such as `one core`.
      is_fit: tells whether a record can be built, and is worth it.
      run: builds records into a work folder, which is thrown away, and says what that took.
    """

    records: str
    number: int
    unit: str
    clock: str
    is_fit: Callable[[Configured, Any], bool]
    run: Callable[[Configured, Sequence[Any], str], PilotCost]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline(Generic[Configured]):
    """What a pipeline file says of its dataset.

    Attributes:
      name: name of the dataset, and the prefix of its ids.
      config: its configuration, from which the command line is made.
      defaults: the fields of the configuration that a mode sets.
      inputs: the files that the plan is made from, as paths or URLs.
      check: raises InputError or MissingExtra where a build could not run.
      plan: yields the records of the selected plan; reads the annotations, opens no media.
      measure: what a record adds to the plan's counts.
      media: yields the files that a plan needs beside the inputs; opens none.
      confirm: raises InputError where a plan cannot be built; looks at no media's content.
      warnings: what the manifest warns of.
      pilot: how the cost is estimated; None where `eqforge plan` only counts.
      report: yields the lines that `eqforge plan` prints of a plan; None prints its counts.
      build: wires the Beam pipeline.
      tables: the tables, sized for a plan.
      stages: the stages of the books in order.
      steps: what a worker notes for every finished record, in the order of the work.
    """

    name: str
    config: type[Configured]
    defaults: Callable[[Mode], dict[str, Any]] = _no_defaults
    inputs: Callable[[Configured], Iterable[Path | str]]
    check: Callable[[Configured], None]
    plan: Callable[[Configured], Iterator[Any]]
    measure: Callable[[Any], dict[str, int]]
    media: Callable[[Configured, PlanFiles], Iterable[Medium]] = _no_media
    confirm: Callable[[Configured, PlanFiles], None] = _nothing_to_confirm
    warnings: Callable[[Configured], Iterable[str]] = _no_warnings
    pilot: Pilot[Configured] | None = None
    report: Callable[[Configured, Iterable[Any]], Iterator[str]] | None = None
    build: Callable[[beam.Pipeline, Target[Configured]], None]
    tables: Callable[[Configured, PlanFiles], tuple[Table, ...]]
    stages: tuple[Stage, ...]
    steps: tuple[str, ...]
