"""Runs a Beam pipeline on the engine the user names, and turns its failures into one sentence."""

import re
from collections.abc import Callable, Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from eqforge.schemas import errors
from eqforge.schemas.errors import BuildError, EqforgeError, InputError
from eqforge.transforms import watchdog

# The names under which people ask for the local engine. Beam's own DirectRunner first tries to
# download another engine, so it is never started.
LOCAL_RUNNERS = ("DirectRunner", "FnApiRunner", "BundleBasedDirectRunner")
_OWN_ERROR = re.compile(r"eqforge\.schemas\.errors\.(\w+): (.*?)(?: \[while running|\n|$)")


def pipeline_options(beam_args: Sequence[str], workers: int) -> PipelineOptions:
    """Returns Beam's options for the arguments after `--`.

    Args:
      beam_args: Beam's own arguments; without `--runner` the local engine runs.
      workers: local processes; 1 runs everything in this process.

    Raises:
      InputError: an argument is none of Beam's, or `workers` is asked of another runner.
    """
    options = PipelineOptions(list(beam_args))
    values = options.get_all_options(drop_default=True, retain_unknown_options=True)
    runner = values.get("runner") or "DirectRunner"
    if runner in LOCAL_RUNNERS:
        _refuse_unknown(beam_args)
        local = ["--runner=FnApiRunner", "--default_sdk_harness_log_level=WARNING"]
        if workers > 1:
            local += ["--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"]
        return PipelineOptions([*_without_runner(beam_args), *local])
    if workers > 1:
        raise InputError(f"--workers is for the local runner; {runner} has its own setting")
    return options


def _without_runner(beam_args: Sequence[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for argument in beam_args:
        if skip:
            skip = False
        elif argument == "--runner":
            skip = True
        elif not argument.startswith("--runner="):
            kept.append(argument)
    return kept


def _refuse_unknown(beam_args: Sequence[str]) -> None:
    known = set(PipelineOptions([]).get_all_options())
    for argument in beam_args:
        name = argument.removeprefix("--").partition("=")[0]
        if (
            argument.startswith("--")
            and name not in known
            and name.removeprefix("no_") not in known
        ):
            raise InputError(f"{argument}: no option of Beam's local runner")


def run(wire: Callable[[beam.Pipeline], None], options: PipelineOptions, log: str) -> None:
    """Builds a pipeline, runs it and waits for its end.

    Args:
      wire: adds the steps.
      options: see pipeline_options.
      log: a file for the messages of local worker processes.

    Raises:
      EqforgeError: a step raised it; its own message stands without the engine's trace.
      BuildError: anything else ended the run.
    """
    watchdog.install(log)
    try:
        with beam.Pipeline(options=options) as root:
            wire(root)
    except EqforgeError as error:
        raise type(error)(_plain(str(error))) from error
    except OSError as error:
        raise BuildError(f"the run failed: {_plain(str(error))}") from error
    except RuntimeError as error:
        raise _own_error(error) from error


def _plain(message: str) -> str:
    return message.partition(" [while running")[0]


def _own_error(error: RuntimeError) -> Exception:
    """Finds the error that a step raised in another process inside the engine's report."""
    found = _OWN_ERROR.findall(str(error))
    if found:
        name, message = found[-1]
        kind = getattr(errors, name, BuildError)
        return BuildError(message) if kind is errors.MissingExtra else kind(message)
    if "KeyboardInterrupt" in str(error):
        return KeyboardInterrupt()  # type: ignore[return-value]
    last = [line for line in str(error).splitlines() if line.strip()][-1]
    return BuildError(f"the run failed: {last.strip()}")
