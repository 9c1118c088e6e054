"""A step's failure on another engine is one sentence that says where to read more."""

import logging
from pathlib import Path

import apache_beam as beam
import pytest

from eqforge.core.errors import BuildError
from eqforge.transforms.engines.options import pipeline_options
from eqforge.transforms.engines.run import run
from tests.runners.tiers import ON_PRISM, PRISM, Cluster, need

pytestmark = pytest.mark.timeout(900)


def fail(kind: str) -> str:
    if kind == "own":
        raise BuildError("two samples: [a, b]")
    if kind == "other":
        raise ZeroDivisionError("by zero")
    return kind


def run_step(kind: str, log: Path, *beam_args: str) -> None:
    run(
        lambda root: root | beam.Create([kind]) | "Fail" >> beam.Map(fail),
        pipeline_options(beam_args, workers=1),
        str(log),
        str(log.parent),
    )


@pytest.fixture(params=["prism", "flink-cluster"])
def arguments(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "prism":
        need("prism", PRISM)
        return ON_PRISM
    cluster: Cluster = request.getfixturevalue("flink_cluster")
    return cluster.arguments


def test_eqforge_s_own_error_keeps_its_kind_and_its_words(
    arguments: list[str], tmp_path: Path
) -> None:
    with pytest.raises(BuildError, match=r"^two samples: \[a, b\]$"):
        run_step("own", tmp_path / "log", *arguments)


def test_any_other_error_is_one_sentence_and_its_trace_is_in_the_log(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers = list(logging.getLogger().handlers)

    with pytest.raises(BuildError) as raised:
        run_step("other", tmp_path / "log", *arguments)

    message = str(raised.value)
    assert message.startswith("the run failed: ")
    assert "by zero" in message
    assert message.endswith(f"(details in {tmp_path / 'log'})")
    assert "\n" not in message
    assert "in fail" in (tmp_path / "log").read_text(errors="replace")
    assert "Traceback" not in capsys.readouterr().err
    assert logging.getLogger().handlers == handlers


def test_workers_with_other_versions_than_the_driver_s_do_not_start(
    flink_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a host where another release of a package is installed."""
    monkeypatch.setattr(
        "eqforge.transforms.engines.placement.versions_of", lambda *_: {"pillow": "0.0.1"}
    )
    arguments = flink_cluster.arguments

    with pytest.raises(BuildError, match=r"eqforge-beam-boot on .+: pillow is .+ and 0\.0\.1 wher"):
        run_step("nothing", tmp_path / "log", *arguments)
