"""Shared by the pipelines over videos."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.files import storage
from eqforge.pipelines.shared.media import media_folder, shared_folder
from eqforge.pipelines.shared.pipeline import Input, Pilot, PilotCost, Pipeline, Target
from eqforge.pipelines.shared.settings import (
    NO_GATES,
    Mode,
    VideoDataset,
    selection_of,
    video_settings,
)
from eqforge.pipelines.shared.video_plan import (
    has_pairs,
    lacks_rate,
    media,
    none_there,
    report,
    run_pilot,
)
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.records.books import Stage
from eqforge.schemas.records.clips import Clip
from eqforge.schemas.tables.pairs import IMAGES_TABLE, PAIRS_TABLE
from eqforge.transforms.dataset.plan import PlanFiles, read_plan, select
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.dataset.tables import files_for, rejects_table, table_of
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.filters.opencv import import_cv2
from eqforge.transforms.filters.pairs import PAIRS_STAGE
from eqforge.transforms.oracle.judges import oracle_warnings, prepare_oracle
from eqforge.transforms.video.clip_work import FRAMES_STAGE
from eqforge.transforms.video.rules import PairFilters, VideoPairRules

if TYPE_CHECKING:
    import apache_beam as beam

STEPS = {"extracted": "videos", "judged": "frames", "paired": "candidate pairs"}

Configured = TypeVar("Configured", bound=VideoDataset)


def video_pipeline(
    *,
    name: str,
    config: type[Configured],
    inputs: Callable[[Configured], Iterable[Input]],
    plan: Callable[[Configured], Iterator[Clip]],
    build: Callable[["beam.Pipeline", Target[Configured]], None],
    stage: Stage,
    drops_faces: tuple[Mode, ...],
    gates: GateSettings = NO_GATES,
) -> Pipeline[Configured]:
    """Returns the pipeline of a dataset made of videos.

    Args:
      name: see Pipeline, as for `config`, `inputs` and `build`.
      config: the dataset's configuration.
      inputs: the files that the plan is made from.
      build: wires the Beam pipeline.
      plan: yields the clips of the whole plan; the run settings select from them.
      stage: the planning stage of the books.
      drops_faces: the modes in which frames with faces are discarded.
      gates: the limits on how much two frames differ in corrected mode.
    """

    def defaults(mode: Mode) -> dict[str, Any]:
        return {"settings": video_settings(mode, mode in drops_faces, gates)}

    def selected(config: Configured) -> Iterator[Clip]:
        return select(plan(config), selection_of(config.run))

    def run(config: Configured, clips: Sequence[Clip], folder: str) -> PilotCost:
        return run_pilot(rules_of(config), clips, folder)

    return Pipeline(
        name=name,
        config=config,
        defaults=defaults,
        inputs=inputs,
        check=check,
        plan=selected,
        measure=measure,
        media=media,
        confirm=confirm,
        warnings=warnings,
        build=build,
        tables=tables,
        stages=(stage, FRAMES_STAGE, PAIRS_STAGE),
        steps=STEPS,
        report=report,
        pilot=Pilot(
            records="videos", number=0, unit="frames", clock="one core", is_fit=has_pairs, run=run
        ),
    )


def check(config: VideoDataset) -> None:
    """Checks what a build needs besides the annotations.

    Raises:
      InputError: the videos folder is not a folder, or lists none where a rate of frames is
        given, or an oracle cannot be loaded.
      MissingExtra: PyAV, OpenCV, or a package of a face detector or oracle is not installed.
    """
    folder = media_folder(config.videos, config.run)
    folder.check("videos")
    if config.frames_fps is not None and not folder.is_on_disk and folder.names is None:
        raise InputError(
            f"--frames-fps: --videos {config.videos}: a web server does not list its files, so "
            "that folders of frames cannot be read there; copy them, or put them into tar shards"
        )
    if find_spec("av") is None:
        raise MissingExtra("av", "video")
    import_cv2()
    config.settings.prepare()
    prepare_oracle(config.settings.oracle)


def confirm(config: VideoDataset, plan: PlanFiles) -> None:
    """Checks that the videos folder is the right one.

    Raises:
      InputError: it holds none of the plan's videos, as when it is not mounted, or none of them
        is readable, or folders of frames whose rate is needed; the message says which.
    """
    for wrong in (none_there, lacks_rate):
        if said := wrong(config, read_plan(Clip, plan.files)):
            raise InputError(said)


def warnings(config: VideoDataset) -> Iterator[str]:
    """Yields what a user should know before trusting the numbers."""
    yield from oracle_warnings(prepare_oracle(config.settings.oracle))


def measure(_: VideoDataset, clip: Clip) -> dict[str, int]:
    """Returns what a clip adds to the counts of a plan."""
    return {
        "videos": 1,
        "frames": len(clip.frames),
        "candidate pairs": len(clip.pairs),
        "rejects": len(clip.rejects),
    }


def tables(config: VideoDataset, plan: PlanFiles) -> tuple[Table, ...]:
    """Returns the tables of a dataset of video pairs."""
    run, counts = config.run, plan.counts
    frames, pairs = counts.get("frames", 0), counts.get("candidate pairs", 0)
    rejects = frames + pairs + counts.get("rejects", 0)
    media = rules_of(config).media
    return (
        table_of(PAIRS_TABLE, files_for(pairs, run.samples_per_file)),
        table_of(IMAGES_TABLE, files_for(frames, run.images_per_file), media),
        rejects_table(rejects),
    )


def rules_of(config: VideoDataset, notes: str | None = None) -> VideoPairRules:
    """Returns how the clips of a configuration become samples."""
    settings = config.settings
    return VideoPairRules(
        videos=shared_folder("videos", config.videos, config.run),
        work=storage.join(config.run.output, WORK),
        frames=settings.frames,
        decoder_timeout_s=config.decoder_timeout_s,
        image_filters=settings,
        pair_filters=PairFilters(
            cuts=settings.cuts,
            gates=settings.gates,
            distinct_captions=settings.distinct_captions,
            max_pairs_per_video=settings.max_pairs_per_video,
            oracle=prepare_oracle(settings.oracle),
        ),
        notes=notes,
        frames_fps=config.frames_fps,
    )
