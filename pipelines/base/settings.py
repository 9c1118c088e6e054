"""The settings that every dataset has: its mode, where it goes, and how the run happens."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError
from eqforge.core.files.found_file import CACHE_GB
from eqforge.core.ranges import check_workers
from eqforge.transforms.dataset.plan import Selection

Mode = Literal["paper", "corrected"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSettings:
    """Where the dataset goes, which part of it is built, and with how many processes."""

    output: str
    """Folder or URL of the dataset. A build that was interrupted goes on where it stopped."""

    overwrite: bool = False
    """Build again over the finished dataset that the output folder holds, whatever its settings,
    inputs and versions were. It stays complete until the new one is, and takes its place. Without
    it, a dataset that would become the same is left alone, and another one is refused."""

    only: tuple[str, ...] = ()
    """Build these samples alone, by id, into a folder of their own; their rows are the same as in
    the whole dataset."""

    limit: int | None = None
    """At most so many candidates, from the beginning of the plan."""

    sample: str = "100%"
    """Share of the videos, images or scenes, such as 1%, chosen by a hash of their ids."""

    follow_links: bool = False
    """Follow symbolic links that lead out of the folder of videos or images; without it what lies
    behind them is refused. Links that stay inside the folder are always followed; stores have
    none."""

    cache_gb: float = CACHE_GB
    """Room for copies of videos and images from stores, for all processes of a machine together.
    A copy is deleted as soon as it was read; they lie in the folder `copies` of $EQFORGE_CACHE."""

    errata: Path | None = None
    """JSON lines of what is wrong with single samples, by id: each is dropped, one of its texts is
    corrected, or something is noted. Dropped samples are rejects of the stage errata, and the card
    lists all; eqforge lint --errata writes such a file."""

    decisions: Path | None = None
    """JSON lines of what people decided, by id, as eqforge review import writes them: samples that
    they drop are rejects of the stage review."""

    workers: int = 1
    """Processes of the local runner."""

    seed: int = 0
    """Seed of the run; every random choice derives from it and a record's id."""

    max_error_rate: float = 0.01
    """The run fails when more than this share of a stage's candidates end in an exception, or
    cannot be downloaded from their store."""

    samples_per_file: int = 50_000
    """Candidates for each samples file."""

    images_per_file: int = 4_000
    """Images for each images file."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
          InputError: a setting is out of its range.
        """
        check_workers(self.workers)
        for name, is_right, rule in (
            ("max_error_rate", 0 <= self.max_error_rate <= 1, "a share from 0 to 1"),
            ("samples_per_file", self.samples_per_file >= 1, "1 or more"),
            ("images_per_file", self.images_per_file >= 1, "1 or more"),
            ("cache_gb", self.cache_gb > 0, "more than 0"),
            ("limit", self.limit is None or self.limit >= 0, "0 or more"),
        ):
            if not is_right:
                flag = name.replace("_", "-")
                raise InputError(f"--{flag} {getattr(self, name)}: expected {rule}")


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetConfig:
    """What every dataset is configured with."""

    mode: Mode = "corrected"
    """paper: as the published dataset was made, its defects included. corrected: without them. The
    mode sets the defaults shown here; every setting can be given beside it."""

    run: OmitArgPrefixes[RunSettings]


def check_seconds(name: str, seconds: float) -> None:
    """Checks a time limit.

    Raises:
      InputError: it is not more than 0.
    """
    if not seconds > 0:
        flag = name.replace("_", "-")
        raise InputError(f"--{flag} {seconds}: expected more than 0 seconds")


def selection_of(run: RunSettings) -> Selection:
    """Returns the part of a plan that the settings select.

    Raises:
      InputError: the share is not a percentage from 0 to 100.
    """
    try:
        share = float(run.sample.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1 or not run.sample.endswith("%"):
        raise InputError(f"--sample {run.sample}: expected a share such as 1% or 12.5%")
    return Selection(only=run.only, limit=run.limit, sample=share)
