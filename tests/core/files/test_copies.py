import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eqforge.core.files.found_file import copies_folder, room_for
from tests.builds import environment, wait_for

KB = 1000


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EQFORGE_CACHE", str(tmp_path))
    return tmp_path


def copies() -> list[Path]:
    return [path for path in copies_folder().iterdir() if path.name != "lock"]


def test_a_copy_exists_during_the_block_alone() -> None:
    with room_for(3, ".mp4", 10 * KB) as copy:
        assert copies() == [Path(copy.name)]
        assert copies()[0].suffix == ".mp4"
        copy.write(b"abc")
        copy.flush()
        assert Path(copy.name).read_bytes() == b"abc"
    assert copies() == []
    with pytest.raises(ValueError, match="stop"), room_for(3, "", 10 * KB):
        raise ValueError("stop")
    assert copies() == []
    assert copies_folder().stat().st_mode & 0o777 == 0o700


def test_together_they_keep_to_the_limit() -> None:
    """Twenty threads want 4 kB each of 10: never more than two have it."""
    most, lock = [0], threading.Lock()

    def take(_: int) -> None:
        with room_for(4 * KB, "", 10 * KB), lock:
            most[0] = max(most[0], sum(path.stat().st_size for path in copies()))

    with ThreadPoolExecutor(20) as threads:
        list(threads.map(take, range(40)))
    assert most[0] <= 8 * KB
    assert copies() == []


_HOLD = """
import sys
from eqforge.core.files.found_file import room_for
with room_for(9_000, "", 10_000):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_process_waits_for_another_and_not_for_a_dead_one() -> None:
    held = subprocess.Popen(
        [sys.executable, "-c", _HOLD], env=environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert held.stdout is not None
    assert held.stdout.readline() == "held\n"
    begun, got = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        with room_for(2 * KB, "", 10 * KB):
            got.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    begun.wait()
    assert not got.wait(0.5), "there is room for 1 kB"
    assert len(copies()) == 1

    os.kill(held.pid, signal.SIGKILL)
    held.communicate()
    wait_for(got.is_set)
    waiting.join()
    assert copies() == [], "the copy of the dead process is gone, too"
