"""Every Python that eqforge allows, with the locked packages and the wheel, builds the same bytes.

`make interpreters` runs this with those of python3.11 to python3.14 that are on the path, or, where
EQFORGE_PYTHONS names programs with spaces between them, with those.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eqforge.generators.demo.workspace import Workspace
from tests.builds import dataset_bytes
from tests.extras.environments import UV, environment, of
from tests.extras.test_extras import COMMANDS, make_wheel
from tests.test_packaging import ROOT, run

NAMED = os.environ.get("EQFORGE_PYTHONS")
pytestmark = pytest.mark.skipif(NAMED is None, reason="`make interpreters` names them")
DATASETS = ("video", "text")


def interpreters() -> dict[str, str]:
    """Version and program of each interpreter that starts; what cannot start is no interpreter."""
    code = "import ensurepip, sys; print('.'.join(map(str, sys.version_info[:2])), sys.executable)"
    names = (NAMED or "").split() or [f"python3.{minor}" for minor in range(11, 15)]
    found = {}
    for name in names:
        try:
            said = subprocess.run([name, "-c", code], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        version, program = said.stdout.split(maxsplit=1)
        found[version] = program.strip()
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_wheel(tmp_path_factory.mktemp("wheel"))


def build(program: Path, workspace: Workspace, folder: Path) -> dict[str, bytes]:
    """Builds the datasets outside the checkout; returns their files, without the versions.

    Those name Python, and packages that a dataset does not need, where they are installed.
    """
    names = {name: getattr(workspace, name) for name in workspace.__slots__}
    found = {}
    for extra in DATASETS:
        command = COMMANDS[extra].format_map(names).split()
        run(program, "build", *command, "--output", folder / extra, cwd=folder)
        for name, data in dataset_bytes(folder / extra).items():
            if name == "dataset.json":
                manifest = json.loads(data)
                del manifest["versions"]
                data = json.dumps(manifest).encode()
            found[f"{extra}/{name}"] = data
    return found


@pytest.fixture(scope="module")
def ours(demo_workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    program = Path(sys.executable).parent / "eqforge"
    return build(program, demo_workspace, tmp_path_factory.mktemp("ours"))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", interpreters() if NAMED is not None else ["none"])
def test_an_interpreter_builds_the_bytes_of_this_one(
    version: str,
    wheel: Path,
    demo_workspace: Workspace,
    ours: dict[str, bytes],
    home: Path,
    tmp_path: Path,
) -> None:
    lock = ROOT / "requirements" / "base.lock"
    options = ("--no-deps", "--require-hashes", "-r", lock)
    programs = environment(home, *options, python=interpreters()[version])
    run(UV, "pip", "install", "--quiet", "--no-deps", *of(home), wheel, cwd=home)
    (tmp_path / "theirs").mkdir()

    theirs = build(programs / "eqforge", demo_workspace, tmp_path / "theirs")
    run(programs / "eqforge", "verify", tmp_path / "theirs" / "video", cwd=tmp_path)

    assert [name for name, data in ours.items() if theirs[name] != data] == []
