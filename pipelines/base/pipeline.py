"""The base class of datasets: settings, inputs, and the hooks that a build calls."""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import tyro
from tyro.conf import OmitArgPrefixes

from eqforge.core.files import storage
from eqforge.core.files.found_file import CACHE_GB
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.identity import Trace
from eqforge.core.ranges import check_workers, expect
from eqforge.core.visible import counted
from eqforge.schemas.dataset.manifest import WORK, Certificate, PartManifest
from eqforge.schemas.records.scores import Score
from eqforge.schemas.records.stages import Reject, Stage
from eqforge.transforms.dataset.census import Medium
from eqforge.transforms.dataset.finish import DatasetTarget
from eqforge.transforms.dataset.plan import PlanFiles, Selection
from eqforge.transforms.dataset.tables import Table
from eqforge.transforms.filters.minimality import PairMeasures

if TYPE_CHECKING:
    import apache_beam as beam

    from eqforge.schemas.dataset.reader import Dataset

Mode = Literal["paper", "corrected"]

MAX_ERROR_RATE = 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSettings:
    """Output folder, samples to build, and processes."""

    output: Annotated[str, Trace.NONE]
    """Folder or URL for the dataset. Run the same command again to resume an interrupted build."""

    overwrite: Annotated[bool, Trace.NONE] = False
    """Replace the dataset in the output folder when the new dataset is complete."""

    only: tuple[str, ...] = ()
    """Build only the samples with these ids. Use a separate output folder."""

    limit: int | None = None
    """Maximum number of candidates to use, taken from the start of the plan (default: all).
    Each caption counts, but all captions of an image are used together."""

    sample: str = "100%"
    """Percentage of the source videos, images or scenes to use, such as 1%. The selection depends
    only on a hash of their ids."""

    follow_links: bool = False
    """Follow symbolic links that point outside the media folder. By default, the linked files are
    rejected."""

    cache_gb: Annotated[float, Trace.NONE] = CACHE_GB
    """Maximum disk space in GB for local copies of remote media. The copies are stored in
    $EQFORGE_CACHE/copies."""

    errata: Path | None = None
    """JSON Lines file of known errors, as written by `eqforge lint --errata`. Each line is an
    instruction to drop a sample, correct one of its texts, or add a note."""

    decisions: Path | None = None
    """JSON Lines file of reviewer decisions, as written by `eqforge review import`."""

    workers: Annotated[int, Trace.NONE] = 1
    """Number of parallel processes on this machine."""

    seed: int = 0
    """Random seed. Every random choice depends only on the seed and the record's id."""

    max_error_rate: Annotated[float, Trace.NONE] = MAX_ERROR_RATE
    """Maximum fraction of candidates that may fail in a stage. If more candidates fail, the build
    stops with an error."""

    samples_per_file: int = 50_000
    """Number of candidates per Parquet file. Each file contains all samples of its candidates."""

    images_per_file: int = 4_000
    """Number of images to store per Parquet file."""

    def __post_init__(self) -> None:
        check_workers(self.workers)
        expect(self, "max_error_rate", 0 <= self.max_error_rate <= 1, "a fraction from 0 to 1")
        expect(self, "samples_per_file", self.samples_per_file >= 1, "1 or more")
        expect(self, "images_per_file", self.images_per_file >= 1, "1 or more")
        expect(self, "cache_gb", self.cache_gb > 0, "more than 0")
        expect(self, "limit", self.limit is None or self.limit >= 0, "0 or more")
        _ = self.selection

    @property
    def selection(self) -> Selection:
        number, sign, rest = self.sample.partition("%")
        try:
            share = float(number) / 100 if sign and not rest else -1.0
        except ValueError:
            share = -1.0
        expect(self, "sample", 0 <= share <= 1, "a percentage such as 1% or 12.5%")
        return Selection(only=self.only, limit=self.limit, sample=share)


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetConfig:
    """Settings shared by all datasets."""

    mode: Mode = "corrected"
    """Reproduce the paper's defects (`paper`) or fix them (`corrected`). The mode sets the defaults
    shown here, which you can override."""

    run: OmitArgPrefixes[RunSettings]


Configured = TypeVar("Configured", bound=DatasetConfig)
Record = TypeVar("Record")


class NamedFile(NamedTuple):
    """A file with a different name in the manifest."""

    name: str
    url: str


Input: TypeAlias = Path | str | NamedFile
"""Input file of a plan: a path or URL, optionally with a different name for the manifest."""


def files_of(path: Path, files: Iterable[Path]) -> Iterator[Input]:
    for file in files:
        folder = path if file.is_relative_to(path) else path.parent  # of which it is a split
        yield file if file == path else NamedFile(file.relative_to(folder).as_posix(), str(file))


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Where a pipeline reads its plan and writes its output.

    Attributes:
        dataset: folder of the tables and the manifest.
        notes: folder for the progress of processes.
    """

    plan_files: tuple[str, ...]
    dataset: DatasetTarget
    notes: str


RunPlan: TypeAlias = "Callable[[PlanFiles, str, Callable[[beam.Pipeline, Target], None]], None]"
"""Runs the pipeline that a function sets up for a plan; the plan's files are copied for workers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PilotUnit:
    """The unit of a pilot.

    Attributes:
      records: word for the plan's records.
      number: number to build, unless `--pilot` sets it.
      unit: the count of `Pipeline.measure` that the cost is proportional to.
      clock: what the seconds are measured on, such as `one core`.
    """

    records: str
    number: int
    unit: str
    clock: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PilotCost:
    """Cost and results of a pilot's records.

    Attributes:
      seconds: wall-clock time of its records.
      num_bytes: size of the images it stored, in bytes.
      start_s: start-up time of a process before its first record, in seconds.
      kept: pairs that became samples.
      pairs: the measures and the other scores of each pair.
    """

    seconds: float
    num_bytes: int
    start_s: float = 0.0
    kept: int
    rejects: Sequence[Reject]
    images: Sequence[Sequence[Score]]
    pairs: Sequence[tuple[PairMeasures, Sequence[Score]]]

    def values(self) -> dict[str, list[float]]:
        """Return the values measured before limits were applied, by score."""
        rows = [{score.name: score.value for score in scores} for scores in self.images]
        rows += [asdict(found) | {s.name: s.value for s in scores} for found, scores in self.pairs]
        values: dict[str, list[float]] = {}
        for row in rows:
            for name, value in row.items():
                if value is not None:
                    values.setdefault(name, []).append(float(value))
        return values


class Pipeline(Generic[Configured, Record]):
    """A dataset of one configuration: its inputs, its plan, its checks and its Beam pipeline.

    Subclasses override hooks. The methods are in the order in which `base.runner` calls them, from
    `check` to `certificate`; the last three are for `eqforge plan`.

    Attributes:
      name: name of the dataset, and the prefix of its ids.
      Config: its settings, from which the command line is made.
      basics: the options that the help shows first, after the required ones.
      stages: the stages of the counts, in order; an instance may lack some of its class.
      steps: the names under which workers count finished work, in order, each with the count of
        `measure` that it reaches.
      pilot: the unit of a pilot; None if `eqforge plan` cannot build some records.
    """

    name: str
    Config: type[Any]
    basics: tuple[str, ...] = ("mode", "workers", "sample", "limit", "overwrite")
    stages: tuple[Stage, ...]
    steps: tuple[tuple[str, str], ...]
    pilot: PilotUnit | None = None

    def __init__(self, config: Configured) -> None:
        self.config = config

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        return {}

    @classmethod
    def usual(cls, mode: Mode = "corrected", output: Any = tyro.MISSING) -> Any:
        """Return the configuration of an empty command line, without its required fields."""
        values: dict[str, Any] = {
            field.name: tyro.MISSING
            for field in dataclasses.fields(cls.Config)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        }
        values["run"] = RunSettings(output=output)
        return cls.Config(**{**values, "mode": mode, **cls.defaults(mode)})

    @property
    def run(self) -> RunSettings:
        return self.config.run

    @property
    def work(self) -> str:
        return storage.join(self.run.output, WORK)

    @property
    def media_root(self) -> str:
        return storage.join(self.work, "media")

    def place(self, option: str) -> str | None:
        return getattr(self.config, option, None)

    def folder(self, option: str) -> SourceFolder:
        root, run = self.place(option), self.run
        assert root is not None
        return SourceFolder(root, follow_links=run.follow_links, cache_gb=run.cache_gb)

    def shared_folder(self, option: str) -> SourceFolder:
        """Return the folder for the workers of a run, which need not list it again."""
        return replace(self.folder(option), index=self._index(option))

    def share_folders(self) -> None:
        for option in ("videos", "images", "masks"):
            if self.place(option) is not None:
                self.folder(option).share(self._index(option))

    def _index(self, option: str) -> str:
        return storage.join(self.work, f"list-of-{option}.json")

    def check(self) -> None:
        """Raise InputError or MissingExtra if a build could not run; reads no annotations."""

    def inputs(self) -> Iterable[Input]:
        """Yield the files in the settings from which the plan is made."""
        for field in dataclasses.fields(self.config):
            value = getattr(self.config, field.name)
            values = value if isinstance(value, tuple) else (value,)
            yield from sorted(each for each in values if isinstance(each, Path))

    def warnings(self) -> Iterable[str]:
        """Yield warnings for the manifest that a user should read before trusting the dataset."""
        return ()

    def parts(self) -> Iterable[PartManifest]:
        """Yield the datasets that were combined, as in the manifest."""
        return ()

    def plan(self) -> Iterator[Record]:
        """Yield the records of the selected plan; read the annotations, open no media."""
        raise NotImplementedError

    def measure(self, record: Record) -> dict[str, int]:
        """Return a record's contribution to the plan's counts."""
        raise NotImplementedError

    def described(self, plan: PlanFiles) -> str:
        counts = [
            f"{count:,} rejected by the plan" if name == "rejects" else counted(count, name)
            for name, count in plan.counts.items()
        ]
        return f"{self.name}: {', '.join(counts)}"

    def media(self, plan: PlanFiles) -> Iterable[Medium]:
        """Yield the files that a plan needs besides the inputs; opens none."""
        return ()

    def confirm(self, plan: PlanFiles) -> None:
        """Raise InputError if a plan cannot be built; do not read the media."""

    def final_plan(self, plan: PlanFiles, run: "RunPlan | None", scratch: str) -> PlanFiles:
        """Return the plan to build, after any work before the build in its process.

        `run` makes and judges some records first; it is None if the job is not awaited.
        """
        return plan

    def tables(self, plan: PlanFiles) -> tuple[Table, ...]:
        """Return the tables, sized for a plan."""
        raise NotImplementedError

    def build(self, root: "beam.Pipeline", target: Target) -> None:
        raise NotImplementedError

    def certificate(self) -> "Callable[[Dataset], Certificate] | None":
        """Return the function that measures the manifest's certificate; None for no certificate."""
        return None

    def report(self, records: Iterable[Record]) -> Iterator[str]:
        """Yield the lines that `eqforge plan` prints about a plan."""
        counts = Counter[str]()
        for record in records:
            counts.update(self.measure(record))
        yield from (f"{name:>20}  {count:>12,}" for name, count in counts.items())

    def is_fit(self, record: Record) -> bool:
        """Return True if a pilot can and should build a record."""
        return True

    def try_records(self, records: Sequence[Record], folder: str) -> PilotCost:
        raise NotImplementedError


AnyPipeline: TypeAlias = Pipeline[Any, Any]
