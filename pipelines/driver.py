"""From a configuration to a finished dataset: what all pipelines over videos share."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import apache_beam as beam

from eqforge.pipelines.command import parse, reported_errors
from eqforge.pipelines.header import WORK, check_folders, identity, locked, manifest_header
from eqforge.pipelines.settings import RunSettings, VideoDataset
from eqforge.schemas import storage
from eqforge.schemas.clips import Clip
from eqforge.schemas.errors import InputError
from eqforge.schemas.identity import fingerprint
from eqforge.schemas.manifest import FILE_NAME, Manifest, load_manifest
from eqforge.transforms import progress, runners
from eqforge.transforms.clip_work import FRAMES, PAIRS
from eqforge.transforms.dataset import DatasetTarget
from eqforge.transforms.faces import prepare_faces
from eqforge.transforms.judge import ImageFilters
from eqforge.transforms.pair import PairFilters
from eqforge.transforms.plan import PlanTotals, Selection, select, write_plan
from eqforge.transforms.video_pairs import VideoPairRules

REJECTS_PER_FILE = 200_000

Configured = TypeVar("Configured", bound=VideoDataset)


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What a pipeline is wired to.

    Attributes:
      plan_files: the plan, as files of clips.
      rules: how clips become samples.
      dataset: where the tables and the manifest go.
      notes: the folder in which processes note their progress.
    """

    plan_files: tuple[str, ...]
    rules: VideoPairRules
    dataset: DatasetTarget
    notes: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Pipeline(Generic[Configured]):
    """What a pipeline file says of its dataset.

    Attributes:
      name: name of the dataset, and the prefix of its ids.
      config: its configuration, from which the command line is made.
      inputs: the annotation files of a configuration.
      plan: yields the clips of the whole plan; reads the annotations, opens no video.
      build: wires the Beam pipeline.
      stage: the planning stage of its books.
      drops_faces: whether the published construction discards frames with faces.
    """

    name: str
    config: type[Configured]
    inputs: Callable[[Configured], tuple[Path, ...]]
    plan: Callable[[Configured], Iterator[Clip]]
    build: Callable[[beam.Pipeline, Target], None]
    stage: str
    drops_faces: bool

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages of the books in order."""
        return (self.stage, FRAMES, PAIRS)


def build_command(pipeline: Pipeline[Configured], argv: Sequence[str]) -> int:
    """Builds a dataset as its command line says; returns the exit status."""
    with reported_errors():
        config, beam_args = parse(
            pipeline.config, pipeline.drops_faces, argv, f"eqforge build {pipeline.name}"
        )
        manifest = build_dataset(pipeline, config, beam_args)
        print(finished(manifest, config.run.output))
        return 0
    return 2


def build_dataset(
    pipeline: Pipeline[Configured], config: Configured, beam_args: Sequence[str] = ()
) -> Manifest:
    """Plans and builds a dataset; returns the manifest of the finished dataset.

    Raises:
      InputError: an input, a setting or the output folder is wrong; nothing was done yet.
      BuildError: the run ended before the dataset was complete; running it again goes on.
    """
    run = config.run
    options = runners.pipeline_options(beam_args, run.workers)
    prepare_faces(config.settings.faces)
    header = manifest_header(pipeline.name, pipeline.inputs(config), config)
    check_folders(config, header)
    with locked(run.output):
        storage.delete(storage.join(run.output, FILE_NAME))
        folder = storage.join(run.output, WORK, "plan", fingerprint(identity(header))[:16])
        totals = write_plan(selected_clips(pipeline, config), folder)
        print(describe(pipeline.name, totals), file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="eqforge-progress-") as notes:
            target = target_of(pipeline, config, header, totals, notes)
            stages = ("videos", "judged", "paired")
            with progress.watch(notes, {stage: totals.videos for stage in stages}):
                log = _worker_log(run.output)
                runners.run(lambda root: pipeline.build(root, target), options, log)
    return load_manifest(run.output)


def _worker_log(output: str) -> str:
    if storage.is_local(output):
        return storage.join(output, WORK, "workers.log")
    return os.path.join(tempfile.gettempdir(), "eqforge-workers.log")


def target_of(
    pipeline: Pipeline[Configured],
    config: Configured,
    header: Manifest,
    totals: PlanTotals,
    notes: str,
) -> Target:
    """Returns what the pipeline of a configuration is wired to."""
    run = config.run
    rules = rules_of(pipeline.name, config)
    dataset = DatasetTarget(
        output=run.output,
        header=header,
        stages=pipeline.stages,
        media_root=rules.media_root,
        sample_shards=_files(totals.pairs, run.samples_per_file),
        image_shards=_files(totals.frames, run.images_per_file),
        reject_shards=_files(totals.pairs + totals.frames + totals.rejects, REJECTS_PER_FILE),
        max_error_rate=run.max_error_rate,
    )
    return Target(plan_files=totals.files, rules=rules, dataset=dataset, notes=notes)


def _files(rows: int, rows_per_file: int) -> int:
    return max(1, -(-rows // rows_per_file))


def rules_of(name: str, config: VideoDataset) -> VideoPairRules:
    """Returns how the clips of a configuration become samples."""
    settings = config.settings
    return VideoPairRules(
        dataset=name,
        videos=str(config.videos),
        work=storage.join(config.run.output, WORK),
        frames=settings.frames,
        decoder_timeout_s=config.run.decoder_timeout_s,
        image_filters=ImageFilters(faces=settings.faces, quality=settings.quality),
        pair_filters=PairFilters(
            cuts=settings.cuts,
            gates=settings.gates,
            distinct_captions=settings.distinct_captions,
            max_pairs_per_video=settings.max_pairs_per_video,
        ),
    )


def selected_clips(pipeline: Pipeline[Configured], config: Configured) -> Iterator[Clip]:
    """Yields the clips of the plan that the run settings select.

    Raises:
      InputError: an annotation file or a selection is wrong.
    """
    return select(pipeline.plan(config), selection_of(config.run))


def selection_of(run: RunSettings) -> Selection:
    """Returns the part of a plan that the settings name.

    Raises:
      InputError: the share is not a percentage of 0 to 100, or the limit is negative.
    """
    try:
        share = float(run.sample.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1 or not run.sample.endswith("%"):
        raise InputError(f"--sample {run.sample}: expected a share such as 1% or 12.5%")
    if run.limit is not None and run.limit < 0:
        raise InputError(f"--limit {run.limit}: expected 0 or more")
    return Selection(only=run.only, limit=run.limit, sample=share)


def describe(name: str, totals: PlanTotals) -> str:
    """Returns one line on what a plan holds."""
    return (
        f"{name}: {totals.videos:,} videos, {totals.frames:,} frames, "
        f"{totals.pairs:,} candidate pairs"
    )


def finished(manifest: Manifest, output: str) -> str:
    """Returns what a user wants to know when a dataset is complete."""
    rejected = sum(books.rejected for books in manifest.stages.values())
    return (
        f"{output}: {manifest.num_rows('samples'):,} samples over "
        f"{manifest.num_rows('images'):,} images, {rejected:,} rejects with their reasons; "
        f"look with: eqforge inspect {output}"
    )
