"""Default options for runners outside this process."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import requires
from pathlib import Path

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    JobServerOptions,
    PipelineOptions,
    PortableOptions,
)
from apache_beam.portability import common_urns

from eqforge.core.errors import InputError
from eqforge.core.versions import versions_of
from eqforge.transforms.engines.flink_cluster import Overview, is_embedded, overview
from eqforge.transforms.engines.flink_parts import FLINK_SERIES, job_server_jar
from eqforge.transforms.engines.prism_parts import prism_binary

BOOT = "eqforge-beam-boot"
_PROCESS = ("PROCESS", common_urns.environments.PROCESS.urn)
# On every job server but Flink's, Beam's timeout for a response also limits the whole run.
_YEAR_S = 365 * 24 * 3600
# Flink and Beam reflect on Java's internal classes, which Java 17 closes by default.
_OPEN = tuple(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.nio", "java.util", "java.time")
)


def with_defaults(runner: str, beam_args: Sequence[str]) -> list[str]:
    """Returns Beam's arguments with defaults for those that the user did not give.

    Args:
      runner: the name of Beam's runner.
      beam_args: the user's arguments.

    Raises:
      InputError: a part that the runner needs is missing, or no cluster answers.
    """
    kind = runner.rpartition(".")[2].lower().removesuffix("runner")
    if kind not in _DEFAULTS:
        return list(beam_args)
    given = {arg.lstrip("-").partition("=")[0] for arg in beam_args if arg.startswith("--")}
    found = _DEFAULTS[kind](beam_args, given)
    added = [f"--{name}={value}" for name, value in found.items() if name not in given]
    return [*_REPEATED.get(kind, ()), *beam_args, *added]


def _portable(beam_args: Sequence[str], given: set[str]) -> dict[str, str]:
    return {"job_server_timeout": str(_YEAR_S), **_workers(beam_args)}


def _workers(beam_args: Sequence[str], default: str | None = None) -> dict[str, str]:
    """Returns the options for starting workers that the user did not give."""
    asked = PipelineOptions(list(beam_args)).view_as(PortableOptions)
    if asked.environment_options:
        return {}
    kind = asked.environment_type or default
    found = {} if kind is None else {"environment_type": kind}
    if kind in _PROCESS and asked.environment_config is None:
        found["environment_config"] = worker_process()
    return found


def _prism(beam_args: Sequence[str], given: set[str]) -> dict[str, str]:
    found = _portable(beam_args, given)
    if not given & {"prism_location", "job_endpoint"}:
        found["prism_location"] = str(prism_binary())
    return found


def _flink(beam_args: Sequence[str], given: set[str]) -> dict[str, str]:
    found = {
        "job_server_timeout": str(_YEAR_S),
        # Without it workers restart, and reload their models, for every stage. They also stay
        # alive this long after the job.
        "environment_cache_millis": "60000",
        "default_sdk_harness_log_level": "ERROR",
        **_workers(beam_args, default="PROCESS"),
    }
    if "job_endpoint" not in given:
        _check_java(beam_args)
    if not given & {"flink_job_server_jar", "flink_version", "job_endpoint"}:
        found["flink_version"] = FLINK_SERIES
        found["flink_job_server_jar"] = str(job_server_jar())
    master = PipelineOptions(list(beam_args)).view_as(FlinkRunnerOptions).flink_master
    return found | _parallelism(master, "flink_job_server_jar" in found)


def _check_java(beam_args: Sequence[str]) -> None:
    java = PipelineOptions(list(beam_args)).view_as(JobServerOptions).job_server_java_launcher
    if shutil.which(java) is None:
        raise InputError(
            f"{java} is not on this machine: install Java 11 or 17, such as Debian's "
            "openjdk-17-jre-headless, or name it by --job_server_java_launcher"
        )


def _dataflow(beam_args: Sequence[str], given: set[str]) -> dict[str, str]:
    if not given & {"sdk_container_image", "setup_file", "extra_packages", "extra_package"}:
        raise InputError(
            "--sdk_container_image is missing: the image with eqforge that the workers run; "
            "docs/guides/dataflow.md says how to make it"
        )
    # Steps are CPU-bound, and a process uses one core: more threads would only use more memory.
    found = {"number_of_worker_harness_threads": "1"}
    if "sdk_container_image" in given:
        found["sdk_location"] = "container"
    return found


def _parallelism(master: str, is_our_jar: bool) -> dict[str, str]:
    """Returns settings that use every core of this machine, or every slot of a cluster."""
    if is_embedded(master):
        cores = str(len(os.sched_getaffinity(0)))
        return {"parallelism": cores, "sdk_worker_parallelism": cores}
    cluster = overview(master)
    if is_our_jar:
        _check_version(master, cluster)
    return {
        "parallelism": str(cluster.slots),
        "sdk_worker_parallelism": str(-(-cluster.slots // cluster.task_managers)),
    }


def _check_version(master: str, cluster: Overview) -> None:
    if not cluster.version.startswith(f"{FLINK_SERIES}."):
        raise InputError(
            f"--flink_master {master}: runs Flink {cluster.version}, and the job server is for "
            f"{FLINK_SERIES}; name one for it by --flink_job_server_jar and --flink_version"
        )


_DEFAULTS: dict[str, Callable[[Sequence[str], set[str]], dict[str, str]]] = {
    "flink": _flink,
    "dataflow": _dataflow,
    "prism": _prism,
    "portable": _portable,
}
# Options that may be repeated: ours come first, then the user's.
_REPEATED = {
    "flink": (
        *(f"--job_server_jvm_properties={option}" for option in ("-Xmx1g", *_OPEN)),
        # Workers check their environment when they start, so no file has to reach all hosts.
        "--experiments=disable_logging_submission_environment",
    ),
}


def worker_process() -> str:
    """Returns the `--environment_config` of workers that `eqforge-beam-boot` starts.

    Raises:
      InputError: the program is not installed beside Python.
    """
    beside = Path(sys.executable).with_name(BOOT)
    program = str(beside) if beside.is_file() else shutil.which(BOOT)
    if program is None:
        raise InputError(f"{BOOT} is not installed beside {sys.executable}: install eqforge again")
    variables = {name: value for name, value in os.environ.items() if name.startswith("EQFORGE_")}
    variables |= {"EQFORGE_FOLDER": os.getcwd(), "EQFORGE_VERSIONS": json.dumps(_versions())}
    return json.dumps({"command": program, "env": variables})


def _versions() -> dict[str, str]:
    """Returns the installed versions of Python, eqforge and its declared dependencies."""
    named = [re.split(r"[^\w.-]", need, maxsplit=1)[0] for need in requires("eqforge") or ()]
    python = ".".join(map(str, sys.version_info[:3]))
    return {"python": python, **versions_of("eqforge", *named)}
