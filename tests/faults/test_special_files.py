"""A path that is not a readable file is one error line, whichever command reads it."""

import os
import shlex
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from eqforge import cli
from tests.statuses import status_of


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


SPECIAL: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path,
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "socket": bind,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "empty device": lambda path: path.symlink_to("/dev/null"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "broken link": lambda path: path.symlink_to("/nowhere/x"),
    "memory of a process": lambda path: path.symlink_to("/proc/self/mem"),
}


@pytest.mark.timeout(60)  # a command that opened the pipe would wait for ever
@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize(
    "command", ["verify", "lint", "audit", "pareto", "plot drops --output p.svg"]
)
def test_a_special_file_is_one_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    kind: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    SPECIAL[kind](Path("d.json"))

    assert status_of(cli.main)([*shlex.split(command), "d.json"]) == 2

    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not Path("p.svg").exists()
