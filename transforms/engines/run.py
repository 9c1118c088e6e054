"""Runs a Beam pipeline on the user's engine, and reports its failure in one sentence."""

import contextlib
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    StandardOptions,
)

from eqforge.core import errors
from eqforge.core.errors import BuildError, EqforgeError, InputError, MissingExtra
from eqforge.core.files import storage
from eqforge.core.identity import fingerprint
from eqforge.transforms.engines import beam_patches, flink
from eqforge.transforms.engines.listening import kept_to_this_machine
from eqforge.transforms.engines.placement import (
    BOOT,
    is_dry,
    is_waited_for,
    log_workers_to,
    plain_name,
)
from eqforge.transforms.engines.run_folder import outlasting

_LOST_WORKER = "Channel closed prematurely"  # Beam 2.77, if a data stream breaks off
# Beam 2.62 in Java, about a Flink worker that did not start
_LOST_PROCESS = "Process died with exit code"
_FRAME = re.compile(r"\s*(at \S+\(.*|\.{3} \d+ more|\W*)$")  # an uninformative line of a Java trace
# Prefixes that runners put before a message: the job's name, a Java class.
_WRAPPERS = re.compile(
    r"^(Caused by: )?(Pipeline \S+ failed in state \w+: )?((\w+\.)+\w+(Exception|Error): )*"
)
_OWN_ERROR = re.compile(r"eqforge\.core\.errors\.(\w+): (.*?)(?: \[while running|\n|$)")


def run(
    wire: Callable[[beam.Pipeline], None],
    options: PipelineOptions,
    log: str,
    job: str | None = None,
) -> None:
    """Build a pipeline, run it and wait for its end.

    Args:
      log: a file for the messages of worker processes and job servers.
      job: the path or URL being built. First, the job that a killed run into it left on a cluster
        is cancelled.

    Raises:
      EqforgeError: a step raised it; its message comes without the engine's trace.
      BuildError: anything else ended the run.
    """
    beam_patches.watch_workers(log)
    if not is_waited_for(options):
        options.view_as(StandardOptions).no_wait_until_finish = True
    log_workers_to(log, options)
    report = flink.failure_report(options)
    nothing = contextlib.nullcontext()
    alone = nothing if job is None or is_dry(options) else flink.alone(_named(options, job), job)
    # Beam's job servers in this process keep folders, which Beam deletes when the process ends.
    kind = plain_name(options.view_as(StandardOptions).runner or "")
    is_own = kind in ("prism", "flink") and flink.cluster_of(options) is None
    servers = outlasting() if is_own else nothing
    with _logging_to(log):
        try:
            with (
                kept_to_this_machine(options),
                alone,
                beam_patches.outside_notebooks(),
                beam_patches.without_printed_traces(),
                beam_patches.remembered(),
                servers,
                beam.Pipeline(options=options) as root,
            ):
                wire(root)
        except MissingExtra:
            raise
        except EqforgeError as error:
            raise type(error)(str(error).partition(" [while running")[0]) from error
        except Exception as error:
            raise _own_error(error, log, report) from error


def _named(options: PipelineOptions, job: str) -> PipelineOptions:
    """Name the job after its output; on Flink, where jobs are cancelled by name, append it."""
    cloud = options.view_as(GoogleCloudOptions)
    place = os.path.realpath(storage.locate(job)[1]) if storage.is_local(job) else job
    suffix = fingerprint(place)[:16]
    if cloud.job_name is None:
        cloud.job_name = f"eqforge-{suffix}"
    elif flink.cluster_of(options) is not None and not cloud.job_name.endswith(suffix):
        cloud.job_name = f"{cloud.job_name}-{suffix}"
    return options


class _LogFile(logging.FileHandler):
    """A log that silently stops if it is not writable; the run's own error then reports it."""

    def handle(self, record: logging.LogRecord) -> bool:
        with contextlib.suppress(OSError):
            return super().handle(record)
        return False

    def handleError(self, record: logging.LogRecord) -> None:
        pass


@contextlib.contextmanager
def _logging_to(log: str) -> Iterator[None]:
    # Beam logs a job server's messages to the root logger.
    loggers = logging.getLogger("apache_beam"), logging.getLogger()
    handler = _LogFile(log, delay=True, encoding="utf-8")
    before = [(logger.handlers, logger.propagate) for logger in loggers], threading.excepthook

    def log_thread(failed: threading.ExceptHookArgs) -> None:
        loggers[0].error("a thread ended with %s", failed.exc_type, exc_info=failed.exc_value)

    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
    threading.excepthook = log_thread
    try:
        yield
    finally:
        states, threading.excepthook = before
        for logger, state in zip(loggers, states, strict=True):
            logger.handlers, logger.propagate = state
        with contextlib.suppress(OSError):
            handler.close()


def _own_error(
    error: Exception, log: str, report: Callable[[], tuple[str, str | None]]
) -> BaseException:
    """Find the error that a step raised, here or in another process, in the engine's report.

    If no step did, the error has the engine's last line and its cluster's losses.
    """
    exception, lost = report()
    text = "\n".join(filter(None, (str(error), exception)))
    found = _OWN_ERROR.findall(text)
    if found:
        name, message = found[-1]
        if name == errors.MissingExtra.__name__:
            return InputError(message)
        kind: type[EqforgeError] = getattr(errors, name, BuildError)
        return kind(message)
    if re.search(r"^KeyboardInterrupt\b", text, re.MULTILINE):
        return KeyboardInterrupt()
    logging.getLogger("apache_beam").error("the run failed", exc_info=error)
    if _LOST_WORKER in text and (death := beam_patches.death()) is not None:
        return BuildError(f"the run failed: {death}")
    if _LOST_PROCESS in text and (words := _last_words_of_boot(log)) is not None:
        return BuildError(f"the run failed: {words}")
    lines = [line for line in text.splitlines() if not _FRAME.match(line)]
    last = lines[-1].strip() if lines else type(error).__name__
    why = "; ".join(filter(None, (_WRAPPERS.sub("", last), lost)))
    return BuildError(f"the run failed: {why} (details in {log})")


def _last_words_of_boot(log: str) -> str | None:
    try:
        lines = Path(log).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return None
    return next((line for line in reversed(lines) if line.startswith(BOOT)), None)
