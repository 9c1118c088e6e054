"""Fixtures shared by the tests."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

from eqforge.generators.demo.workspace import Workspace, make_workspace, workspace_at

# Tiny models need one thread of torch; on a busy machine several wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine, or a first example that loads a lexicon, is no failure.
hypothesis.settings.register_profile(
    "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data; tests that need it are skipped where none is named."""
    folder = os.environ.get("EQFORGE_TEST_DATA")
    if not folder:
        pytest.skip("EQFORGE_TEST_DATA does not name a folder of real data")
    return Path(folder)


@pytest.fixture(scope="session")
def demo_output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `eqforge demo` leaves, made once; tests must not change it.

    EQFORGE_DEMO names a folder where it lies already.
    """
    from eqforge.commands import demo

    if made := os.environ.get("EQFORGE_DEMO"):
        return Path(made)
    folder = tmp_path_factory.mktemp("demo") / "demo"
    assert demo.main(["--all", "--output", str(folder)]) == 0
    return folder


@pytest.fixture(scope="session")
def demo_dataset(demo_output: Path) -> Callable[[str], Path]:
    """Finds a dataset of the demo, which leaves out those that lack a package; then it skips."""

    def find(name: str) -> Path:
        if not (demo_output / name).exists():
            pytest.skip(f"the extra of {name} is not installed")
        return demo_output / name

    return find


@pytest.fixture(scope="session")
def demo_workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The demo's clips and annotations, made once; tests must not change them.

    EQFORGE_DEMO names the folder of a demo, whose workspace saves 14 s.
    """
    if made := os.environ.get("EQFORGE_DEMO"):
        return workspace_at(Path(made) / "workspace")
    return make_workspace(tmp_path_factory.mktemp("demo"))


# --- skipped tests, which a machine with all parts installed has none of

MAY_SKIP = os.environ.get("EQFORGE_MAY_SKIP")
"""Where it is set, a regular expression of the reasons for which a test may be skipped."""
_skipped: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _note_skipped(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    _note_skipped(report)


def _note_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if MAY_SKIP is not None and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not re.search(MAY_SKIP, reason):
            _skipped.append(f"{report.nodeid}: {reason}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _skipped:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _skipped:
        terminalreporter.section("skipped, though EQFORGE_MAY_SKIP does not allow it")
        for line in _skipped:
            terminalreporter.line(line)
