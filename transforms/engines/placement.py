"""Requests machine types for the heavy steps on Dataflow, which chooses machines per step.

A step that draws, renders or queries a model takes and returns references, never pixels, so that it
can run on its own machines. Other runners get no hints: the user chose their machines, and a second
kind of worker would load everything twice.
"""

from argparse import ArgumentParser
from typing import TypeVar

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    DebugOptions,
    GoogleCloudOptions,
    PipelineOptions,
    StandardOptions,
    TestOptions,
)

from eqforge.core.errors import InputError
from eqforge.core.files import storage

Step = TypeVar("Step", bound=beam.PTransform)
# One process per machine: with one per core, each would load the models onto the GPU.
ONE_PROCESS = "no_use_multiple_sdk_containers"


class PlacementOptions(PipelineOptions):
    """Options that eqforge adds to Beam's own, after `--`."""

    @classmethod
    def _add_argparse_args(cls, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--gpu_accelerator",
            default="type:nvidia-l4;count:1;install-nvidia-driver",
            help="Dataflow's accelerator for the steps on a GPU.",
        )
        parser.add_argument(
            "--gpu_min_ram", default="16GB", help="Memory of a machine with a GPU, at least."
        )
        parser.add_argument(
            "--render_min_ram", default="8GB", help="Memory of a machine that renders, at least."
        )
        parser.add_argument(
            "--allow_open_ports",
            action="store_true",
            help="Run an engine whose ports other hosts reach; see docs/about/reliability.md.",
        )


def is_dataflow(options: PipelineOptions) -> bool:
    return plain_name(options.view_as(StandardOptions).runner or "") == "dataflow"


def plain_name(runner: str) -> str:
    """Return a runner's name in lower case, without its module and the word Runner."""
    return runner.rpartition(".")[2].lower().removesuffix("runner")


def is_waited_for(options: PipelineOptions) -> bool:
    launches = options.view_as(GoogleCloudOptions).template_location is not None
    waits = not options.view_as(StandardOptions).no_wait_until_finish
    return not is_dataflow(options) or (waits and not launches and not is_dry(options))


def is_dry(options: PipelineOptions) -> bool:
    return is_dataflow(options) and bool(options.view_as(TestOptions).dry_run)


def check_reach(options: PipelineOptions, output: str) -> None:
    if is_dataflow(options) and not is_dry(options) and storage.is_local(output):
        raise InputError(
            f"--output {output}: is a local folder, which Dataflow's machines cannot access; "
            "pass a folder in a bucket, such as gs://BUCKET/eq-sd"
        )


def on_gpu(step: Step, pipeline: beam.Pipeline) -> Step:
    """Request machines with a GPU for a step, each working on one bundle at a time."""
    if is_dataflow(pipeline.options):
        wanted = pipeline.options.view_as(PlacementOptions)
        pipeline.options.view_as(DebugOptions).add_experiment(ONE_PROCESS)
        step.with_resource_hints(
            accelerator=wanted.gpu_accelerator,
            min_ram=wanted.gpu_min_ram,
            max_active_bundles_per_worker="1",
        )
    return step


def with_render_memory(step: Step, pipeline: beam.Pipeline) -> Step:
    if is_dataflow(pipeline.options):
        wanted = pipeline.options.view_as(PlacementOptions)
        step.with_resource_hints(min_ram=wanted.render_min_ram)
    return step
