import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from eqforge.transforms.engines import progress
from tests.builds import environment, wait_for

COUNT = """
import sys
from eqforge.transforms.engines import progress
progress.count(sys.argv[1], "made", 2)
"""
SHOW = """
import sys, time
from eqforge.transforms.engines import progress
with progress.watch(sys.argv[1], {"made": (3, "videos"), "judged": (3, "frames")}):
    progress.count(sys.argv[1], "made", 2)
    progress.count(sys.argv[1], "judged")
    time.sleep(4)
    progress.count(sys.argv[1], "made", 1)
"""

# At a rate that depends on the clock.
LINE = (
    r"(?m)^ +\d+ s  made 2 of 3 videos, [\d.,]+ a (?:second|minute), \d+ (?:s|min) left; "
    r"judged 0 of 3 frames$"
)


def test_counts_of_all_processes_add_up(tmp_path: Path) -> None:
    for _ in range(2):
        subprocess.run([sys.executable, "-c", COUNT, str(tmp_path)], check=True)
    progress.count(str(tmp_path), "made")
    progress.count(str(tmp_path), "judged", 5)

    assert progress.totals(str(tmp_path)) == {"made": 5, "judged": 5}
    assert len(list(tmp_path.iterdir())) == 3  # a file a process: nobody waits for a lock


def test_counting_needs_no_folder_and_no_driver(tmp_path: Path) -> None:
    progress.count(None, "made")
    progress.count(str(tmp_path / "removed by the driver"), "made")


def test_the_folder_is_removed_after_an_error_too(tmp_path: Path) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        progress.watch(str(tmp_path / "notes"), {"made": (1, "videos")}),
    ):
        raise ZeroDivisionError
    assert not (tmp_path / "notes").exists()


def test_without_a_terminal_there_are_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, said = str(tmp_path / "notes"), io.StringIO()

    def two_lines() -> bool:
        said.write(capsys.readouterr().err)
        return len(re.findall(LINE, said.getvalue())) >= 2

    with progress.watch(
        folder, {"made": (3, "videos"), "judged": (3, "frames")}, line_every_s=0.02
    ):
        progress.count(folder, "made", 2)
        wait_for(two_lines)


def test_a_terminal_shows_bars(tmp_path: Path) -> None:
    """On a pseudo-terminal, as a user's is."""
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-c", SHOW, str(tmp_path / "notes")],
        env=environment(TERM="xterm", COLUMNS="80"),
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 1 << 16)
        except OSError:  # the other side is closed
            break
    os.close(ours)
    assert run.wait(timeout=300) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert "2 of 3 videos" in text
    assert re.search(r"made \S+ 3 of 3 videos", text)
    assert re.search(r"judged \S+\s*\S* 1 of 3 frames", text)
