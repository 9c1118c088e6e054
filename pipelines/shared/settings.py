"""Settings shared by pipelines, and the two presets of those over videos."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tyro.conf import OmitArgPrefixes

from eqforge.core.errors import InputError
from eqforge.core.files.found_file import CACHE_GB
from eqforge.core.machine import check_workers
from eqforge.core.shell import MediaRoot
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.schemas.records.frames import FrameSettings
from eqforge.transforms.dataset.plan import Selection
from eqforge.transforms.filters.cuts import CutSettings
from eqforge.transforms.filters.faces import FACES, FaceSettings
from eqforge.transforms.filters.images import ImageFilters
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.oracle.judges import OracleSettings

Mode = Literal["paper", "corrected"]

NO_GATES = GateSettings()


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


@dataclass(frozen=True, kw_only=True)
class _Frames:
    """How frames are taken and stored; it comes first."""

    frames: OmitArgPrefixes[FrameSettings] = field(default_factory=FrameSettings)


@dataclass(frozen=True, kw_only=True)
class VideoSettings(ImageFilters, _Frames):
    """What happens to frames, captions and pairs, whatever dataset they come from."""

    cuts: OmitArgPrefixes[CutSettings] = field(default_factory=CutSettings)
    gates: OmitArgPrefixes[GateSettings] = field(default_factory=GateSettings)
    captions: OmitArgPrefixes[CaptionSettings] = field(default_factory=CaptionSettings)
    oracle: OmitArgPrefixes[OracleSettings] = field(default_factory=OracleSettings)

    distinct_captions: bool = True
    """Refuse pairs whose two captions say the same."""

    max_pairs_per_video: int | None = None
    """Keep at most so many pairs of a video, chosen by a hash of their ids."""

    def __post_init__(self) -> None:
        """Checks the limit.

        Raises:
          InputError: it is negative.
        """
        if self.max_pairs_per_video is not None and self.max_pairs_per_video < 0:
            raise InputError(
                f"--max-pairs-per-video {self.max_pairs_per_video}: expected 0 or more"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetConfig:
    """What every dataset is configured with."""

    mode: Mode = "corrected"
    """paper: as the published dataset was made, its defects included. corrected: without them. The
    mode sets the defaults shown here; every setting can be given beside it."""

    run: OmitArgPrefixes[RunSettings]


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoDataset(DatasetConfig):
    """What every dataset made of videos is configured with; each adds its annotations."""

    videos: MediaRoot
    """Folder of the videos, here or in a store, such as gs://BUCKET/videos. Each is looked for by
    the name that the annotations or captions give, as it stands and with an ending such as .mp4;
    where they give an id, that is the name. Tar shards will do, too: their folder, one of them, or
    a quoted pattern such as 'shards/*.tar'."""

    frames_fps: float | None = None
    """How many frames a second were taken, where a video is not a file but a folder of its frames,
    such as VIDEO/00001.jpg, numbered from 1. Needed where moments are given in seconds: the frame
    at t seconds is the one with the number t * RATE + 1, rounded down."""

    decoder_timeout_s: float = 300.0
    """A video whose next frame takes longer is given up; its other frames are kept."""

    settings: OmitArgPrefixes[VideoSettings] = field(default_factory=VideoSettings)

    def __post_init__(self) -> None:
        """Checks the time limit and the rate.

        Raises:
          InputError: one is not more than 0, or the rate has no end.
        """
        check_seconds("decoder_timeout_s", self.decoder_timeout_s)
        if self.frames_fps is not None and not 0 < self.frames_fps < math.inf:
            raise InputError(
                f"--frames-fps {self.frames_fps}: expected more than 0 frames a second"
            )


def check_seconds(name: str, seconds: float) -> None:
    """Checks a time limit.

    Raises:
      InputError: it is not more than 0.
    """
    if not seconds > 0:
        flag = name.replace("_", "-")
        raise InputError(f"--{flag} {seconds}: expected more than 0 seconds")


def video_settings(mode: Mode, drops_faces: bool, gates: GateSettings = NO_GATES) -> VideoSettings:
    """Returns the defaults of a mode.

    Args:
      mode: paper mode turns off every check that the papers do not describe.
      drops_faces: whether frames with faces are discarded.
      gates: the limits on how much two frames differ, in corrected mode.
    """
    if mode == "corrected":
        return VideoSettings(faces=FaceSettings() if drops_faces else FACES.off, gates=gates)
    return VideoSettings.off(
        faces=FaceSettings(face_policy="paper") if drops_faces else FACES.off,
        captions=CaptionSettings(max_tokens=None),
        distinct_captions=False,
    )


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
