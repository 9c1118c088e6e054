"""What a dataset's pipeline has to say, and its command line."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

import tyro

from eqforge.core.files import storage
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.visible import counted
from eqforge.pipelines.base.pilot import PilotCost, PilotUnit
from eqforge.pipelines.base.settings import DatasetConfig, Mode, RunSettings, selection_of
from eqforge.schemas.dataset.manifest import WORK, Certificate, PartManifest
from eqforge.schemas.records.books import Stage
from eqforge.transforms.dataset.census import Medium
from eqforge.transforms.dataset.finish import DatasetTarget
from eqforge.transforms.dataset.plan import PlanFiles, Selection
from eqforge.transforms.dataset.table import Table

if TYPE_CHECKING:
    import apache_beam as beam

    from eqforge.schemas.dataset.reader import Dataset

MEDIA = ("videos", "images", "masks")
"""Options that name a folder of media."""

Configured = TypeVar("Configured", bound=DatasetConfig)


class NamedFile(NamedTuple):
    """A file that the manifest knows by another name than its own."""

    name: str
    url: str


Input: TypeAlias = Path | str | NamedFile
"""A file that a plan is made from: a path or URL, with another name for the manifest or without."""


def files_of(path: Path, files: Iterable[Path]) -> Iterator[Input]:
    """Yields the files that a path stands for: itself, or those of a folder."""
    for file in files:
        folder = path if file.is_relative_to(path) else path.parent  # of which it is a split
        yield file if file == path else NamedFile(file.relative_to(folder).as_posix(), str(file))


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What a pipeline is built for.

    Attributes:
      plan_files: the plan on disk.
      dataset: where the tables and the manifest go.
      notes: the folder in which processes note their progress.
    """

    plan_files: tuple[str, ...]
    dataset: DatasetTarget
    notes: str


RunPlan: TypeAlias = "Callable[[PlanFiles, str, Callable[[beam.Pipeline, Target], None]], None]"
"""Runs what a function wires for a plan, whose files are copied to a folder for workers."""


class Pipeline(Generic[Configured]):
    """A dataset of one configuration: its inputs, its plan, its checks and its Beam pipeline.

    A subclass overrides what differs; `base.runner` says when each method is called.

    Attributes:
      name: name of the dataset, and the prefix of its ids.
      Config: its settings, from which the command line is made.
      stages: the stages of the books, in order.
      steps: the names under which workers count what they finished, in the order of the work, each
        with the count of `measure` that it reaches.
      pilot: in what `eqforge plan` counts a pilot; None if it only counts the plan.
    """

    name: str
    Config: type[Any]
    stages: tuple[Stage, ...]
    steps: tuple[tuple[str, str], ...]
    pilot: PilotUnit | None = None

    def __init__(self, config: Configured) -> None:
        self.config = config

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        """Returns the fields of the configuration that a mode sets."""
        return {}

    @classmethod
    def usual(cls, mode: Mode = "corrected") -> Any:
        """Returns the configuration of an empty command line, without its required fields."""
        values: dict[str, Any] = {
            field.name: tyro.MISSING
            for field in dataclasses.fields(cls.Config)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        }
        values["run"] = RunSettings(output=tyro.MISSING)
        return cls.Config(**{**values, "mode": mode, **cls.defaults(mode)})

    @property
    def run(self) -> RunSettings:
        """Where the dataset goes, and how the run happens."""
        return self.config.run

    @property
    def selection(self) -> Selection:
        """The part of the plan that is built."""
        return selection_of(self.run)

    @property
    def work(self) -> str:
        """The folder or URL of finished work."""
        return storage.join(self.run.output, WORK)

    @property
    def media_root(self) -> str:
        """The folder of the media store."""
        return storage.join(self.work, "media")

    def place(self, option: str) -> str | None:
        """Returns the folder or URL of media that an option names; None if it names none."""
        return getattr(self.config, option, None)

    def folder(self, option: str) -> SourceFolder:
        """Returns a folder of media, for the process that starts a run."""
        root, run = self.place(option), self.run
        assert root is not None
        return SourceFolder(root, follow_links=run.follow_links, cache_gb=run.cache_gb)

    def shared_folder(self, option: str) -> SourceFolder:
        """Returns the same folder for the workers of a run, which need not list it again."""
        return replace(self.folder(option), index=self._index(option))

    def share_folders(self) -> None:
        """Writes the lists of all folders of media down for the workers of a run."""
        for option in MEDIA:
            if self.place(option) is not None:
                self.folder(option).share(self._index(option))

    def _index(self, option: str) -> str:
        return storage.join(self.work, f"list-of-{option}.json")

    def inputs(self) -> Iterable[Input]:
        """Yields the files that the plan is made from: those that the settings name."""
        for field in dataclasses.fields(self.config):
            value = getattr(self.config, field.name)
            values = sorted(value) if _are_paths(value) else [value]
            yield from (each for each in values if isinstance(each, Path))

    def check(self) -> None:
        """Raises InputError or MissingExtra if a build could not run; reads no annotations."""

    def plan(self) -> Iterator[Any]:
        """Yields the records of the selected plan; reads the annotations, opens no media."""
        raise NotImplementedError

    def measure(self, record: Any) -> dict[str, int]:
        """Returns what a record adds to the plan's counts."""
        raise NotImplementedError

    def tables(self, plan: PlanFiles) -> tuple[Table, ...]:
        """Returns the tables, sized for a plan."""
        raise NotImplementedError

    def build(self, root: "beam.Pipeline", target: Target) -> None:
        """Wires the Beam pipeline."""
        raise NotImplementedError

    def media(self, plan: PlanFiles) -> Iterable[Medium]:
        """Yields the files that a plan needs besides the inputs; opens none."""
        return ()

    def confirm(self, plan: PlanFiles) -> None:
        """Raises InputError if a plan cannot be built; does not read the media."""

    def prepare(self, plan: PlanFiles) -> None:
        """Does what comes before the runner, in its process; a stopped run goes on there."""

    def settle(self, plan: PlanFiles, run: RunPlan, scratch: str) -> PlanFiles:
        """Returns the plan that is built; `run` makes and judges some records before."""
        return plan

    def described(self, plan: PlanFiles) -> str:
        """Returns a one-line summary of a plan."""
        counts = [
            f"{count:,} refused by the plan" if what == "rejects" else counted(count, what)
            for what, count in plan.counts.items()
        ]
        return f"{self.name}: {', '.join(counts)}"

    def used_stages(self) -> tuple[Stage, ...]:
        """Returns the stages that a build with this configuration has."""
        return self.stages

    def warnings(self) -> Iterable[str]:
        """Yields what a user should know before trusting the dataset, for the manifest."""
        return ()

    def parts(self) -> Iterable[PartManifest]:
        """Yields the datasets that it is made of, as the manifest has them."""
        return ()

    def certificate(self) -> "Callable[[Dataset], Certificate] | None":
        """Returns what measures the certificate of the manifest; None for none."""
        return None

    def report(self, records: Iterable[Any]) -> Iterator[str]:
        """Yields the lines that `eqforge plan` prints about a plan."""
        counts: dict[str, int] = {}
        for record in records:
            for what, count in self.measure(record).items():
                counts[what] = counts.get(what, 0) + count
        yield from (f"{what:>20}  {count:>12,}" for what, count in counts.items())

    def is_fit(self, record: Any) -> bool:
        """Tells whether a pilot can build a record and it is worth it."""
        return True

    def try_records(self, records: Sequence[Any], folder: str) -> PilotCost:
        """Builds records in a temporary work folder, and returns what that cost."""
        raise NotImplementedError


def _are_paths(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, Path) for each in value)
