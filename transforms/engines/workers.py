"""Starts and names worker processes on machines where eqforge is installed."""

import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import requires
from pathlib import Path

from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions
from apache_beam.portability import common_urns

from eqforge.core.errors import InputError
from eqforge.core.identity import versions_of

BOOT = "eqforge-beam-boot"
LOG = "EQFORGE_WORKER_LOG"  # known to eqforge-beam-boot
# On every job server but Flink's, Beam's timeout for a response also limits the whole run.
YEAR_S = 365 * 24 * 3600
_PROCESS = ("PROCESS", common_urns.environments.PROCESS.urn)

Options = dict[str, str | None]
"""Options of Beam by name; None for a flag."""


def worker_options(beam_args: Sequence[str], default: str | None = None) -> Options:
    asked = PipelineOptions(list(beam_args)).view_as(PortableOptions)
    if asked.environment_options:
        return {}
    kind = asked.environment_type or default
    found: Options = {} if kind is None else {"environment_type": kind}
    if kind in _PROCESS and asked.environment_config is None:
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
