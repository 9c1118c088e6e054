"""The README's commands and Python run as they stand, on the demo's workspace."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def blocks(language: str) -> list[str]:
    """Returns the code blocks of one language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def run(command: list[str], folder: Path) -> str:
    """Runs a command with the project's programs on the path."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_the_commands_and_the_python_of_the_readme_run(demo_folder: Path, tmp_path: Path) -> None:
    """The shell blocks build two datasets, and the Python blocks read one of them."""
    (tmp_path / "workspace").symlink_to(demo_folder)
    shell = blocks("sh")

    printed = "".join(run(["bash", "-euc", block], tmp_path) for block in shell)

    assert printed.count(": sound") == 1
    assert len(shell) == 2
    for block in blocks("python"):
        if "datasets" in block:
            pytest.importorskip("datasets")
        assert run([sys.executable, "-c", block], tmp_path).strip()


def test_the_files_shown_in_the_readme_are_those_of_a_dataset(
    demo_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "workspace").symlink_to(demo_folder)
    run(["bash", "-euc", blocks("sh")[0]], tmp_path)

    shown = re.findall(r"^  (\S+)  ", README.read_text(encoding="utf-8"), re.MULTILINE)

    assert {"dataset.json", "README.md", "_work/"} <= set(shown)
    for name in shown:
        assert (tmp_path / "out" / "youcook2" / name).exists(), name
