"""Installs programs that are not Python packages into eqforge's cache, atomically."""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files import storage


@contextlib.contextmanager
def installing(folder: Path) -> Iterator[Path]:
    """Yields an empty folder that replaces `folder` when the block ends without an error.

    Until then, `folder` holds what was there before, or nothing.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as scratch:
        new = Path(scratch) / "new"
        new.mkdir()
        yield new
        if folder.exists():
            folder.rename(Path(scratch) / "old")
        new.rename(folder)


def run_tool(*command: str, folder: Path, needs: str, **environment: str) -> None:
    """Runs a program that fetches or builds something.

    Args:
      command: the program and its arguments.
      folder: its working directory.
      needs: where to get the program, for the error message.
      environment: variables added to this process's own.

    Raises:
      InputError: the program is not installed, or failed.
    """
    if shutil.which(command[0]) is None:
        raise InputError(f"{command[0]} is not on this machine: install {needs}")
    variables = [f"{name}={value}" for name, value in environment.items()]
    done = subprocess.run(
        ["env", *variables, *command], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        errors = [line for line in said if "error" in line.lower()]
        why = " / ".join((errors or said)[:2])
        raise InputError(f"`{' '.join(command[:4])} ...` failed: {why}")


def check_digest(path: Path, sha256: str) -> None:
    """Checks the digest of a download.

    Raises:
      InputError: it is not the file that eqforge was tested with.
    """
    found = storage.digest(str(path))[1]
    if found != sha256:
        raise InputError(f"{path.name}: its SHA-256 is {found}, expected {sha256}; it is not used")
