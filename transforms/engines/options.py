"""Completes and checks Beam's options for a build: the arguments after `--`."""

import argparse
import importlib
from collections.abc import Callable, Sequence

from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions, StandardOptions
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from apache_beam.runners.runner import PipelineRunner, create_runner
from apache_beam.runners.worker.channel_factory import GRPCChannelFactory

from eqforge.core.errors import InputError
from eqforge.core.ranges import check_workers
from eqforge.transforms.engines import flink
from eqforge.transforms.engines.listening import check_ports, reach_this_machine_directly
from eqforge.transforms.engines.placement import YEAR_S, Options, plain_name, worker_options

# Names for the local engine, in any spelling that Beam takes. Beam's own DirectRunner first tries
# to download another engine, so it is never started.
_LOCAL_RUNNERS = ("direct", "fnapi", "switchingdirect", "bundlebaseddirect")


def pipeline_options(beam_args: Sequence[str], workers: int) -> PipelineOptions:
    """Parse Beam's arguments after `--`, and add those that the runner needs.

    Args:
      beam_args: without `--runner` the local engine runs.
      workers: number of local processes; 1 runs everything in this process.
    """
    reach_this_machine_directly()
    unknown = _unknown(beam_args)
    options = PipelineOptions(list(beam_args))
    runner = options.view_as(StandardOptions).runner or "DirectRunner"
    if plain_name(runner) in _LOCAL_RUNNERS:
        if unknown:
            raise InputError(f"{unknown[0]}: Beam's local runner does not have this option")
        local = ["--runner=FnApiRunner", "--default_sdk_harness_log_level=WARNING"]
        check_workers(workers)
        if workers > 1:
            local += ["--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"]
        return PipelineOptions([*beam_args, *local])
    if workers > 1:
        raise InputError(
            f"--workers works only with the local runner; use the options of {runner} instead"
        )
    _check_runner(runner)
    # Other runners' servers know options that Beam's Python SDK does not.
    if unknown and plain_name(runner) in ("prism", "dataflow"):
        raise InputError(f"{unknown[0]}: neither Beam nor {runner} has this option")
    options = PipelineOptions(with_defaults(runner, beam_args))
    check_ports(options)
    check_endpoint(options)
    return options


def _check_runner(runner: str) -> None:
    try:
        module, _, name = runner.rpartition(".")
        found = getattr(importlib.import_module(module), name) if module else PipelineRunner
        if not (isinstance(found, type) and issubclass(found, PipelineRunner)):
            raise ValueError("Beam has no runner with this name")
        create_runner(runner)
    except (ValueError, ImportError, AttributeError) as error:
        raise InputError(f"--runner {runner}: {error}") from error


def _unknown(beam_args: Sequence[str]) -> list[str]:
    """Return the arguments that Beam would silently drop."""
    parsers: list[argparse.ArgumentParser] = []

    def take(parser: argparse.ArgumentParser) -> None:
        parser.exit_on_error = False
        parsers.append(parser)

    try:
        PipelineOptions(list(beam_args)).get_all_options(add_extra_args_fn=take)
        return parsers[0].parse_known_args(list(beam_args))[1]
    except argparse.ArgumentError as error:
        option = error.argument_name or "the options after '--'"
        raise InputError(f"{option}: {error.message}") from error


def with_defaults(runner: str, beam_args: Sequence[str]) -> list[str]:
    kind = plain_name(runner)
    if kind not in _DEFAULTS:
        return list(beam_args)
    option_names = {arg.lstrip("-").partition("=")[0] for arg in beam_args if arg.startswith("--")}
    added = [
        f"--{name}" if value is None else f"--{name}={value}"
        for name, value in _DEFAULTS[kind](beam_args, option_names).items()
        if name not in option_names
    ]
    return [*(flink.REPEATED if kind == "flink" else ()), *beam_args, *added]


def _portable(beam_args: Sequence[str], option_names: set[str]) -> Options:
    return {"job_server_timeout": str(YEAR_S), **worker_options(beam_args)}


def _dataflow(beam_args: Sequence[str], option_names: set[str]) -> Options:
    if not option_names & {"sdk_container_image", "setup_file", "extra_packages", "extra_package"}:
        raise InputError(
            "--sdk_container_image is missing; pass the container image that the workers run "
            "(docs/guides/scaling.md explains how to build it)"
        )
    # Steps are CPU-bound, and a process uses one core: more threads would only use more memory.
    found: Options = {"number_of_worker_harness_threads": "1"}
    if "sdk_container_image" in option_names:
        found["sdk_location"] = "container"
    return found


_DEFAULTS: dict[str, Callable[[Sequence[str], set[str]], Options]] = {
    "flink": flink.default_options,
    "dataflow": _dataflow,
    "prism": _portable,
    "portable": _portable,
}


def check_endpoint(options: PipelineOptions, timeout_s: float = 20.0) -> None:
    """Check that the options' job server answers; Beam would wait for it forever."""
    endpoint = options.view_as(PortableOptions).job_endpoint
    if not endpoint or endpoint == "embed":
        return
    with GRPCChannelFactory.insecure_channel(endpoint) as channel:
        service = beam_job_api_pb2_grpc.JobServiceStub(channel)
        request = beam_job_api_pb2.DescribePipelineOptionsRequest()
        try:
            service.DescribePipelineOptions(request, timeout=timeout_s)
        except Exception as error:
            why = error.details() if hasattr(error, "details") else error
            raise InputError(
                f"--job_endpoint {endpoint}: no job server answers at this address: {why}"
            ) from error
