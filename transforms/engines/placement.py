"""Where steps run: machine types on Dataflow, and worker processes where eqforge is installed.

A step that draws, renders or queries a model takes and returns references, never pixels, so that it
can run on its own machines. Other runners get no hints: the user chose their machines, and a second
kind of worker would load everything twice.
"""

import contextlib
import json
import os
import re
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib.metadata import requires
from pathlib import Path
from typing import TypeVar

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    DebugOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
    TestOptions,
)
from apache_beam.portability import common_urns

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.identity import versions_of

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
            help="Dataflow accelerator for GPU steps.",
        )
        parser.add_argument(
            "--gpu_min_ram", default="16GB", help="Minimum memory of a GPU machine."
        )
        parser.add_argument(
            "--render_min_ram", default="8GB", help="Minimum memory of a rendering machine."
        )
        parser.add_argument(
            "--allow_open_ports",
            action="store_true",
            help="Allow engines whose ports other hosts can reach; see docs/about/reliability.md.",
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
            f"--output {output}: Dataflow's machines cannot access a local folder; pass a folder "
            "in a bucket, such as gs://BUCKET/eq-sd"
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


BOOT = "eqforge-beam-boot"
LOG = "EQFORGE_WORKER_LOG"  # known to eqforge-beam-boot
# On every job server but Flink's, Beam's timeout for a response also limits the whole run.
YEAR_S = 365 * 24 * 3600
_PROCESS = ("PROCESS", common_urns.environments.PROCESS.urn)

Options = dict[str, str | None]
"""Options of Beam by name; None for a flag."""


def worker_options(beam_args: Sequence[str], default: str | None = None) -> Options:
    options = PipelineOptions(list(beam_args)).view_as(PortableOptions)
    if options.environment_options:
        return {}
    kind = options.environment_type or default
    found: Options = {} if kind is None else {"environment_type": kind}
    if kind in _PROCESS and options.environment_config is None:
        found["environment_config"] = worker_process()
    return found


def worker_process() -> str:
    """Return the `--environment_config` of workers that `eqforge-beam-boot` starts."""
    beside = Path(sys.executable).with_name(BOOT)
    program = str(beside) if beside.is_file() else shutil.which(BOOT)
    if program is None:
        raise InputError(f"{BOOT} is not installed next to {sys.executable}; reinstall eqforge")
    variables = {name: value for name, value in os.environ.items() if name.startswith("EQFORGE_")}
    named = [re.split(r"[^\w.-]", need, maxsplit=1)[0] for need in requires("eqforge") or ()]
    python = ".".join(map(str, sys.version_info[:3]))
    versions = {"python": python, **versions_of("eqforge", *named)}
    variables |= {"EQFORGE_FOLDER": os.getcwd(), "EQFORGE_VERSIONS": json.dumps(versions)}
    return json.dumps({"command": program, "env": variables})


def log_workers_to(log: str, options: PipelineOptions) -> None:
    portable = options.view_as(PortableOptions)
    # Keep the user's own settings for a different kind of worker.
    with contextlib.suppress(ValueError, TypeError, KeyError):
        settings = json.loads(portable.environment_config or "")
        settings["env"] = {LOG: os.path.abspath(log)} | settings["env"]
        portable.environment_config = json.dumps(settings)
