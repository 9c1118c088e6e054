"""The description of a dataset that each pipeline file gives."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from eqforge.pipelines.shared.draws import Draws
from eqforge.pipelines.shared.pilot_report import PilotYield
from eqforge.pipelines.shared.settings import DatasetConfig, Mode
from eqforge.schemas.dataset.manifest import Certificate, PartManifest
from eqforge.schemas.records.books import Stage
from eqforge.transforms.dataset.census import Medium
from eqforge.transforms.dataset.finish import DatasetTarget
from eqforge.transforms.dataset.plan import PlanFiles
from eqforge.transforms.dataset.table import Table

if TYPE_CHECKING:
    import apache_beam as beam

    from eqforge.schemas.dataset.reader import Dataset

Configured = TypeVar("Configured", bound=DatasetConfig)


class FileBelow(NamedTuple):
    """A file of a folder that an option names."""

    folder: Path
    file: Path


class NamedFile(NamedTuple):
    """A file that the manifest knows by another name than its own."""

    name: str
    url: str


Input: TypeAlias = Path | str | FileBelow | NamedFile
"""A file that a plan is made from: a path, a URL, one of a folder, or one of another name."""


def files_of(path: Path, files: Iterable[Path]) -> Iterator[Input]:
    """Yields the files that a path stands for: itself, or those of a folder."""
    for file in files:
        folder = path if file.is_relative_to(path) else path.parent  # of which it is a split
        yield file if file == path else FileBelow(folder, file)


@dataclass(frozen=True, kw_only=True, slots=True)
class Target(Generic[Configured]):
    """What a pipeline is built for.

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
    """Returns no defaults: the rules depend on the mode itself."""
    return {}


def _no_certificate(_config: Any) -> None:
    """Certifies nothing."""


def _no_needs(_config: Any) -> None:
    """Needs nothing but what `check` looks at."""


def _nothing_to_confirm(_config: Any, _plan: PlanFiles) -> None:
    """Accepts any plan."""


def _nothing_to_prepare(_config: Any, _plan: PlanFiles) -> None:
    """Needs no work before the runner starts."""


def _no_cost(_config: Any) -> Iterable[str]:
    """Returns no lines: a build asks nobody."""
    return ()


def _no_media(_config: Any, _plan: PlanFiles) -> Iterable[Medium]:
    """Returns no media."""
    return ()


def _no_warnings(_config: Any) -> Iterable[str]:
    """Returns no warnings."""
    return ()


def _no_stages(_config: Any) -> tuple[Stage, ...]:
    """Returns no stages."""
    return ()


def _no_parts(_config: Any) -> Iterable[PartManifest]:
    """Returns no parts."""
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PilotCost:
    """What a pilot cost.

    Attributes:
      seconds: wall-clock time of its records.
      num_bytes: size of the images it stored, in bytes.
      start_s: start-up time of a process before its first record, in seconds.
      made: what its records became.
    """

    seconds: float
    num_bytes: int
    start_s: float = 0.0
    made: PilotYield


@dataclass(frozen=True, kw_only=True, slots=True)
class Pilot(Generic[Configured]):
    """How `eqforge plan` builds a few records, to estimate what all of them cost.

    Attributes:
      records: what the plan's records are called.
      number: how many are built unless `--pilot` says otherwise.
      unit: the count of `Pipeline.measure` that the cost is proportional to.
      clock: what the seconds are measured on, such as `one core`.
      is_fit: tells whether a record can be built and is worth it.
      run: builds records in a temporary work folder, and returns what that cost.
    """

    records: str
    number: int
    unit: str
    clock: str
    is_fit: Callable[[Configured, Any], bool]
    run: Callable[[Configured, Sequence[Any], str], PilotCost]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline(Generic[Configured]):
    """The description of a dataset: its configuration, plan, checks and Beam pipeline.

    Attributes:
      name: name of the dataset, and the prefix of its ids.
      config: its configuration, from which the command line is made.
      defaults: the fields of the configuration that a mode sets.
      inputs: the files that the plan is made from, as paths or URLs, or in a folder.
      needs: raises InputError or MissingExtra if the machine lacks what is fetched once; comes
        before anything that takes time, such as importing Beam.
      check: raises InputError or MissingExtra if a build could not run.
      plan: yields the records of the selected plan; reads the annotations, opens no media.
      measure: returns what a record adds to the plan's counts.
      media: yields the files that a plan needs besides the inputs; opens none.
      confirm: raises InputError if a plan cannot be built; does not read the media.
      prepare: does what comes before the runner, in the process that starts it; a run that is
        stopped there goes on there.
      warnings: yields the warnings of the manifest.
      parts: yields the datasets that it is made of, as the manifest has them.
      certify: returns what measures the certificate of the manifest; None for none.
      pilot: how the cost is estimated; None if `eqforge plan` only counts.
      cost: yields what `eqforge plan` says of those that a build would ask, from the same plan.
      report: yields the lines that `eqforge plan` prints about a plan; None prints its counts.
      draws: how pairs are drawn until as many are kept as were asked for; None where the inputs
        say how many there are.
      build: wires the Beam pipeline.
      tables: the tables, sized for a plan.
      stages: the stages of the books, in order.
      unused: returns the stages that a build with a configuration does not have.
      steps: the names under which workers count what they finished, in the order of the work, each
        with the count of `measure` that it reaches.
    """

    name: str
    config: type[Configured]
    defaults: Callable[[Mode], dict[str, Any]] = _no_defaults
    inputs: Callable[[Configured], Iterable[Input]]
    needs: Callable[[Configured], object] = _no_needs
    check: Callable[[Configured], None]
    plan: Callable[[Configured], Iterator[Any]]
    measure: Callable[[Configured, Any], dict[str, int]]
    media: Callable[[Configured, PlanFiles], Iterable[Medium]] = _no_media
    confirm: Callable[[Configured, PlanFiles], None] = _nothing_to_confirm
    prepare: Callable[[Configured, PlanFiles], None] = _nothing_to_prepare
    warnings: Callable[[Configured], Iterable[str]] = _no_warnings
    parts: Callable[[Configured], Iterable[PartManifest]] = _no_parts
    certify: "Callable[[Configured], Callable[[Dataset], Certificate] | None]" = _no_certificate
    pilot: Pilot[Configured] | None = None
    cost: Callable[[Configured], Iterable[str]] = _no_cost
    report: Callable[[Configured, Iterable[Any]], Iterator[str]] | None = None
    draws: Draws[Configured] | None = None
    build: Callable[["beam.Pipeline", Target[Configured]], None]
    tables: Callable[[Configured, PlanFiles], tuple[Table, ...]]
    stages: tuple[Stage, ...]
    unused: Callable[[Configured], tuple[Stage, ...]] = _no_stages
    steps: Mapping[str, str]

    def stages_of(self, config: Configured) -> tuple[Stage, ...]:
        """Returns the stages that a build with a configuration has."""
        unused = self.unused(config)
        return tuple(stage for stage in self.stages if stage not in unused)
