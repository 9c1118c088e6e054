"""What leaves a checkout: the sdist that Beam sends to its workers, its wheel, an installation."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (
    *("core", "evaluation", "generators", "models"),
    *("pipelines", "schemas", "sources", "transforms"),
)

STAGE = """
import sys
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.stager import Stager
options = PipelineOptions(["--setup_file=./setup.py", "--requirements_cache=skip"])
Stager.create_job_resources(options, sys.argv[1], log_submission_env_dependencies=False)
"""

IMPORT_ALL = """
import importlib, pkgutil, eqforge
found = pkgutil.walk_packages(eqforge.__path__, "eqforge.")
names = [module.name for module in found if module.name != "eqforge.__main__"]
for name in names:
    print(importlib.import_module(name).__file__)
"""


def run(*command: object, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 or not check, done.stderr
    return done


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return copy_checkout(tmp_path / "checkout")


def copy_checkout(folder: Path) -> Path:
    """Copy what packaging reads, the links of src/eqforge as links."""
    folder.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    skipped = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("src", *FOLDERS):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=skipped)
    return folder


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tarball as Beam makes it of `--setup_file=./setup.py`."""
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-c", STAGE, folder, cwd=copy_checkout(folder / "checkout"))
    (tarball,) = folder.glob("*.tar.gz")
    return tarball


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as a worker makes it of the tarball."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", folder)
    run(sys.executable, "-m", "pip", "wheel", *options, sdist, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def packed_files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def files_of_folders() -> set[str]:
    """Every file of src/eqforge and of the linked folders, by its name in the package."""
    package = ROOT / "src" / "eqforge"
    found = {f"eqforge/{path.name}" for path in package.iterdir() if path.is_file()}
    for folder in ("commands", "interface"):
        found |= {f"eqforge/{folder}/{path.name}" for path in (package / folder).glob("*.py")}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                found.add(f"eqforge/{folder}/{path.relative_to(ROOT / folder).as_posix()}")
    return found


def test_the_sdist_holds_the_folders_as_files_not_as_links(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        members = {member.name.split("/", 1)[-1]: member for member in archive.getmembers()}
    assert not [name for name, member in members.items() if member.issym() or member.islnk()]
    assert {f"src/{name}" for name in files_of_folders()} <= set(members)


def test_the_wheel_holds_every_file_of_the_folders_and_nothing_else(wheel: Path) -> None:
    assert packed_files(wheel) == files_of_folders()


def test_the_wheel_is_typed_and_has_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (entry_points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "eqforge = eqforge.cli:main" in archive.read(entry_points).decode()
    assert "eqforge/py.typed" in packed_files(wheel)


def test_every_module_imports_from_the_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    options = ("--no-deps", "--no-index", "--quiet")
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, wheel, cwd=tmp_path)
    (site_packages,) = home.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))

    imported = run(python, "-c", IMPORT_ALL, cwd=tmp_path).stdout.split()

    assert {Path(file).is_relative_to(site_packages) for file in imported} == {True}
    modules = {name for name in files_of_folders() if name.endswith(".py")}
    expected = modules - {"eqforge/__init__.py", "eqforge/__main__.py"}
    assert {Path(file).relative_to(site_packages).as_posix() for file in imported} == expected


@pytest.mark.parametrize("checked_out_as", ["text file", "broken link", "nothing"])
def test_setup_refuses_a_checkout_without_its_links(checkout: Path, checked_out_as: str) -> None:
    link = checkout / "src" / "eqforge" / "schemas"
    link.unlink()
    if checked_out_as == "text file":
        link.write_text("../../schemas")
    elif checked_out_as == "broken link":
        link.symlink_to("../../nowhere")

    done = run(sys.executable, "setup.py", "--name", cwd=checkout, check=False)

    assert done.returncode == 1
    assert "src/eqforge lacks ['schemas']: check out with git symlinks on" in done.stderr


def test_bootstrap_refuses_what_is_no_interpreter(tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    shutil.copytree(ROOT / "scripts", scripts)
    wrong = shutil.which("false")

    done = run("env", f"PYTHON={wrong}", scripts / "bootstrap", cwd=tmp_path, check=False)

    assert done.returncode == 1
    assert f"PYTHON={wrong} is not a Python 3.11 to 3.14" in done.stderr
    assert not (tmp_path / ".venv").exists()
