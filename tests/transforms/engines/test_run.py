import logging
import threading
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions

from eqforge.core.errors import BuildError, InputError, MissingExtra
from eqforge.transforms.engines.options import pipeline_options
from eqforge.transforms.engines.run import run


def runner_of(options: PipelineOptions) -> str | None:
    runner: str | None = options.view_as(StandardOptions).runner
    return runner


@pytest.mark.parametrize(
    "beam_args",
    [
        [],
        ["--runner", "DirectRunner"],
        ["--runner=DirectRunner"],
        ["--runner", "direct"],
        ["--runner", "directrunner"],
        ["--runner", "SwitchingDirectRunner"],
        ["--runner", "FnApiRunner"],
        ["--runner", "apache_beam.runners.direct.direct_runner.DirectRunner"],
    ],
)
def test_the_local_engine_has_many_names(beam_args: list[str]) -> None:
    options = pipeline_options(beam_args, workers=1)

    assert runner_of(options) == "FnApiRunner"
    assert options.view_as(DirectOptions).direct_running_mode == "in_memory"


def test_workers_are_processes_of_the_local_engine() -> None:
    options = pipeline_options(["--direct_num_workers", "7"], workers=3).view_as(DirectOptions)

    assert options.direct_running_mode == "multi_processing"
    assert options.direct_num_workers == 3


def test_other_runners_keep_their_options() -> None:
    arguments = [
        "--runner",
        "SparkRunner",
        "--spark_version",
        "3",
        "--max_bundle_size=5",
        "--allow_open_ports",
    ]
    options = pipeline_options(arguments, workers=1)

    assert runner_of(options) == "SparkRunner"
    found = options.get_all_options(retain_unknown_options=True)
    assert (found["spark_version"], found["max_bundle_size"]) == ("3", "5")


@pytest.mark.parametrize(
    ("beam_args", "message"),
    [
        (["--no_such_option"], "--no_such_option: Beam's local runner does not have this option"),
        (
            ["--no_such_option=1"],
            "--no_such_option=1: Beam's local runner does not have this option",
        ),
        (["word"], "word: Beam's local runner does not have this option"),
        (
            ["--runner=PrismRunner", "--paralelism=3"],
            "--paralelism=3: neither Beam nor Pri",
        ),
        (
            ["--runner=DataflowRunner", "--max_num_worker", "1"],
            "--max_num_worker: neither Beam nor",
        ),
        (["--direct_num_workers", "x"], "invalid int value: 'x'"),
        (["--runner", "no.such.Runner"], "--runner no.such.Runner: No module named"),
        (["--runner", "eqforge.transforms.engines.run.Nothing"], "has no attribute 'Nothing'"),
        (["--runner", "os.system"], "--runner os.system: Beam has no runner with this name"),
        (
            ["--runner", "builtins.object"],
            "--runner builtins.object: Beam has no runner with this name",
        ),
        (
            ["--runner", "SparkRunner"],
            "--runner SparkRunner listens on all network addresses. Anyone",
        ),
    ],
)
def test_what_beam_would_ignore_is_refused(beam_args: list[str], message: str) -> None:
    with pytest.raises(InputError) as refused:
        pipeline_options(beam_args, workers=1)

    assert message in str(refused.value)


def fail(error: BaseException) -> Any:
    raise error


def run_failing(error: BaseException, folder: Path, *beam_args: str, workers: int = 1) -> None:
    options = pipeline_options(beam_args, workers)
    run(
        lambda root: root | beam.Create([error]) | "Fail" >> beam.Map(fail),
        options,
        str(folder / "log"),
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_a_step_s_own_error_keeps_its_kind_and_its_words(tmp_path: Path, workers: int) -> None:
    with pytest.raises(BuildError) as raised:
        run_failing(BuildError("two samples: [a, b]"), tmp_path, workers=workers)
    assert str(raised.value) == "two samples: [a, b]"

    if workers == 1:
        with pytest.raises(InputError, match=r"^wrong$"):
            run_failing(InputError("wrong"), tmp_path)


def test_a_package_that_a_step_misses_is_wrong_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pip install 'eqforge\[video\]'"):
        run_failing(MissingExtra("av", "video"), tmp_path)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ZeroDivisionError("by zero"), "the run failed: by zero [while running 'Fail']"),
        (OSError(28, "No space left"), "the run failed: OSError: [Errno 28] No space left"),
        (KeyError("k"), "the run failed: "),
        (RuntimeError(""), "the run failed: "),
    ],
)
def test_any_other_error_is_one_sentence_and_its_trace_is_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], error: Exception, message: str
) -> None:
    with pytest.raises(BuildError) as raised:
        run_failing(error, tmp_path)

    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)
    assert str(tmp_path / "log") in str(raised.value)
    assert "in fail" in (tmp_path / "log").read_text()
    assert "Traceback" not in capsys.readouterr().err


def test_of_a_trace_of_java_its_last_cause_is_said(tmp_path: Path) -> None:
    trace = (
        "Pipeline job failed in state FAILED: java.lang.RuntimeException: [Internal error.\n"
        "\tat java.base/java.lang.Thread.run(Thread.java:840)\n"
        "Caused by: java.io.IOException: Could not connect\n"
        "\tat sun.nio.ch.Net.connect0(Native Method)\n\t... 13 more\n]\n"
    )

    def wire(_root: beam.Pipeline) -> None:
        raise RuntimeError(trace)

    with pytest.raises(BuildError, match=r"^the run failed: Could not connect \(details in "):
        run(wire, pipeline_options([], 1), str(tmp_path / "log"))


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_within_a_step_stays_ctrl_c(tmp_path: Path, workers: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_failing(KeyboardInterrupt(), tmp_path, workers=workers)


def test_logging_and_threads_are_as_they_were_after_a_run(tmp_path: Path) -> None:
    logger = logging.getLogger("apache_beam")
    before = (logger.propagate, list(logger.handlers), threading.excepthook)
    with pytest.raises(BuildError):
        run_failing(ZeroDivisionError("x"), tmp_path)
    assert (logger.propagate, logger.handlers, threading.excepthook) == before
