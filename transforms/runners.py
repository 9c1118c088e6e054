"""Runs a Beam pipeline on the engine the user names, and turns its failures into one sentence."""

import argparse
import contextlib
import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.runner import create_runner

from eqforge.schemas import errors
from eqforge.schemas.errors import BuildError, EqforgeError, InputError
from eqforge.transforms import watchdog

# The names under which people ask for the local engine, in Beam's any spelling. Beam's own
# DirectRunner first tries to download another engine, so it is never started.
_LOCAL_RUNNERS = ("direct", "fnapi", "switchingdirect", "bundlebaseddirect")
_LOST_WORKER = "Channel closed prematurely"  # Beam's words for a data stream that broke off
_OWN_ERROR = re.compile(r"eqforge\.schemas\.errors\.(\w+): (.*?)(?: \[while running|\n|$)")


def pipeline_options(beam_args: Sequence[str], workers: int) -> PipelineOptions:
    """Returns Beam's options for the arguments after `--`.

    Args:
      beam_args: Beam's own arguments; without `--runner` the local engine runs.
      workers: local processes; 1 runs everything in this process.

    Raises:
      InputError: an argument is none of Beam's, or `workers` is asked of another runner.
    """
    unknown = _unknown(beam_args)
    options = PipelineOptions(list(beam_args))
    runner = options.view_as(StandardOptions).runner or "DirectRunner"
    if _is_local(runner):
        if unknown:
            raise InputError(f"{unknown[0]}: no option of Beam's local runner")
        local = ["--runner=FnApiRunner", "--default_sdk_harness_log_level=WARNING"]
        if workers > 1:
            local += ["--direct_running_mode=multi_processing", f"--direct_num_workers={workers}"]
        return PipelineOptions([*_without_runner(beam_args), *local])
    if workers > 1:
        raise InputError(f"--workers is for the local runner; {runner} has its own setting")
    try:
        create_runner(runner)
    except (ValueError, ImportError, AttributeError) as error:
        raise InputError(f"--runner {runner}: {error}") from error
    return options


def _is_local(runner: str) -> bool:
    return runner.rpartition(".")[2].lower().removesuffix("runner") in _LOCAL_RUNNERS


def _unknown(beam_args: Sequence[str]) -> list[str]:
    """Returns the arguments that Beam would drop without a word."""
    parsers: list[argparse.ArgumentParser] = []

    def take(parser: argparse.ArgumentParser) -> None:
        parser.exit_on_error = False
        parsers.append(parser)

    try:
        PipelineOptions(list(beam_args)).get_all_options(add_extra_args_fn=take)
        return parsers[0].parse_known_args(list(beam_args))[1]
    except argparse.ArgumentError as error:
        raise InputError(f"after --: {error}") from error


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
    with _logging_to(log):
        try:
            with beam.Pipeline(options=options) as root:
                wire(root)
        except EqforgeError as error:
            raise type(error)(_plain(str(error))) from error
        except Exception as error:
            raise _own_error(error, log) from error


@contextlib.contextmanager
def _logging_to(log: str) -> Iterator[None]:
    """Sends what Beam logs, whole traces among it, to a file; the user gets one sentence."""
    logger = logging.getLogger("apache_beam")
    handler = logging.FileHandler(log, delay=True, encoding="utf-8")
    before = logger.propagate, threading.excepthook

    def log_thread(failed: threading.ExceptHookArgs) -> None:
        logger.error("a thread ended with %s", failed.exc_type, exc_info=failed.exc_value)

    logger.addHandler(handler)
    logger.propagate, threading.excepthook = False, log_thread
    try:
        yield
    finally:
        logger.propagate, threading.excepthook = before
        logger.removeHandler(handler)
        handler.close()


def _plain(message: str) -> str:
    return message.partition(" [while running")[0]


def _own_error(error: Exception, log: str) -> BaseException:
    """Finds the error that a step raised, here or in another process, in the engine's report."""
    found = _OWN_ERROR.findall(str(error))
    if found:
        name, message = found[-1]
        if name == errors.MissingExtra.__name__:
            return InputError(message)
        kind: type[EqforgeError] = getattr(errors, name, BuildError)
        return kind(message)
    if "KeyboardInterrupt" in str(error):
        return KeyboardInterrupt()
    logging.getLogger("apache_beam").error("the run failed", exc_info=error)
    if _LOST_WORKER in str(error) and (death := watchdog.death()) is not None:
        return BuildError(f"the run failed: {death}")
    lines = [line for line in str(error).splitlines() if line.strip()]
    last = lines[-1].strip() if lines else type(error).__name__
    return BuildError(f"the run failed: {last} (more in {log})")
