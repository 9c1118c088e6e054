"""Each extra, installed from the wheel into an environment of its own, does its task.

`make extras` runs this: it installs gigabytes.
"""

import os
import sys
import venv
from pathlib import Path

import pytest

from eqforge.generators.demo.workspace import Workspace
from tests.extras.environments import environment
from tests.test_packaging import STAGE, copy_checkout, run

pytestmark = pytest.mark.skipif(
    "EQFORGE_EXTRAS" not in os.environ, reason="`make extras` installs each extra"
)

COMMANDS = {
    "": "vlue --retrieval {vlue}/retrieval.json --images {images}",
    "video": "eq-video --captions {captions} --videos {videos}",
    "text": "hard-positives --captions {coco} --images {images}",
    "render": "eq-kubric --pairs 1 --resolution 64 --samples 2",
    "models": "eq-sd --pairs 1 --model tiny --steps 2 --guidance-scale 30 --cpu-threads 1",
}
"""A dataset that needs what the extra brings, and no more."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wheel(tmp_path_factory.mktemp("wheel"))


def make_wheel(folder: Path) -> Path:
    run(sys.executable, "-c", STAGE, folder, cwd=copy_checkout(folder / "checkout"))
    (sdist,) = folder.glob("*.tar.gz")
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", folder)
    run(sys.executable, "-m", "pip", "wheel", *options, sdist, cwd=folder)
    return next(folder.glob("*.whl"))


def named(wheel: Path, extra: str) -> str:
    """Returns the wheel with an extra, as a requirement."""
    return f"eqforge[{extra}] @ {wheel.as_uri()}" if extra else f"eqforge @ {wheel.as_uri()}"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("extra", COMMANDS)
def test_an_extra_brings_what_its_task_needs(
    extra: str, wheel: Path, demo_workspace: Workspace, home: Path, tmp_path: Path
) -> None:
    programs = environment(home, named(wheel, extra))
    names = {name: getattr(demo_workspace, name) for name in demo_workspace.__slots__}
    command = COMMANDS[extra].format_map(names).split()

    run(programs / "eqforge", "build", *command, "--output", "out", cwd=tmp_path)
    verified = run(programs / "eqforge", "verify", "out", cwd=tmp_path)

    assert verified.stdout.rstrip().endswith("out: sound")


@pytest.mark.timeout(600)
def test_plots_need_no_neural_framework(wheel: Path, home: Path, tmp_path: Path) -> None:
    programs = environment(home, named(wheel, "plots"))
    (tmp_path / "times.csv").write_text("model,score,seconds\na,0.5,0.1\nb,0.6,0.2\n")
    eqforge = programs / "eqforge"

    run(eqforge, "pareto", "times.csv", "--output", "front.json", cwd=tmp_path)
    run(eqforge, "plot", "pareto", "front.json", "--output", "f.svg", cwd=tmp_path)

    assert b"<svg" in (tmp_path / "f.svg").read_bytes()


def test_all_extras_agree_with_each_other(wheel: Path, home: Path) -> None:
    """Found without installing; what they are is above."""
    environment(home, "--dry-run", named(wheel, "all"))


def test_the_names_of_the_extras_are_the_tasks_of_users(wheel: Path, home: Path) -> None:
    code = "import importlib.metadata as m; print(*m.metadata('eqforge').get_all('Provides-Extra'))"
    venv.create(home, with_pip=True, symlinks=True)
    python = home / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel, cwd=home)
    found = run(python, "-c", code, cwd=home)
    others = {"all", "dataflow", "dev", "plots", "s3"}
    assert {*filter(None, COMMANDS)} | others == {*found.stdout.split()}
