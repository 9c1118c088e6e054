"""Environments for these tests, by uv: it downloads and unpacks a package once for all of them."""

import sys
from pathlib import Path

from tests.test_packaging import run

UV = Path(sys.executable).parent / "uv"


def environment(home: Path, *packages: object, python: object = sys.executable) -> Path:
    """Makes an environment with packages; returns its folder of programs.

    Args:
      home: its folder, which is made.
      packages: what to install, and options for that.
      python: the interpreter.
    """
    run(UV, "venv", "--quiet", "--python", python, home, cwd=home.parent)
    run(UV, "pip", "install", "--quiet", *of(home), *packages, cwd=home)
    return home / "bin"


def of(home: Path) -> tuple[object, ...]:
    """Returns the option that names an environment to uv."""
    return "--python", home / "bin" / "python"
