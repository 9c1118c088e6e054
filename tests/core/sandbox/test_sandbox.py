"""What a process in its sandbox tries is refused; each try is a real one, made from inside."""

import contextlib
import hashlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.core.sandbox import landlock, probe, seccomp
from eqforge.core.sandbox.child import Child, ChildDied, ChildFailed
from eqforge.core.sandbox.sandbox import VARIABLE, Sandbox, adjusted
from eqforge.schemas.records.frames import FrameRequest, FrameSettings, MissedFrame, StoredFrame
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.video.frames.extract import FrameExtractor
from tests import clips

BY_LANDLOCK = {"read", "list", "write", "delete", "tcp", "ipv6", "exec"}
BY_SECCOMP = {"tcp", "udp", "ipv6", "unix", "exec", "fork", "mode", "signal", "pair", "owner"}
HAS_LANDLOCK = landlock.version() >= 4
SANDBOXED = """
import json, os, sys, threading
from eqforge.core.sandbox import landlock, seccomp
from eqforge.core.sandbox.sandbox import Sandbox, enter

def answer(request, alive):
    if request == "spin":
        while True:
            alive()
    if request == "lift":
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    if request == "thread":
        found = []
        def read():
            try:
                found.append(open("/etc/passwd").read())
            except OSError as error:
                found.append(str(error))
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        yield from found
    if request == "itself":
        yield open("/proc/self/statm").read()
    if isinstance(request, dict):
        yield request
"""


def has_seccomp() -> bool:
    """Whether a process of its own may take its calls away."""
    code = "from eqforge.core.sandbox import seccomp\nseccomp.restrict(network=False, modes=False)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def refused() -> set[str]:
    """What has to be refused on this machine."""
    by_landlock = BY_LANDLOCK if HAS_LANDLOCK else set()
    return {"memory"} | by_landlock | (BY_SECCOMP if has_seccomp() else set())


@pytest.fixture
def sandboxed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Child]:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "sandboxed.py").write_text(SANDBOXED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"), prepend=":")
    child = Child("sandboxed:answer", timeout_s=60, sandbox=Sandbox(memory_gb=8, cpu_s=1))
    yield child
    child.close()


def test_what_a_cage_refuses(tmp_path: Path, refused: set[str]) -> None:
    (tmp_path / "secret").write_text("secret")

    said = probe.outcomes(str(tmp_path / "secret"))

    assert {name for name in probe.TRIES if said[name]} >= refused, said
    assert "Cannot allocate memory" in said["memory"] or "MemoryError" in said["memory"]
    assert (tmp_path / "secret").exists() == ("delete" in refused)


def test_without_a_cage_all_of_it_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the tries are real ones."""
    monkeypatch.setenv(VARIABLE, "off")
    (tmp_path / "secret").write_text("secret")

    said = probe.outcomes(str(tmp_path / "secret"))

    assert {name for name, text in said.items() if text} <= {"ipv6"}, said
    assert not (tmp_path / "secret").exists()


@pytest.mark.skipif(not HAS_LANDLOCK, reason="the kernel has no Landlock")
def test_with_a_network_and_a_folder_there_are_still_no_socket_files_and_no_devices(
    tmp_path: Path,
) -> None:
    """Workers are commanded through the former; the latter would be the disk itself."""
    script = """
import asyncio, contextlib, os, socket, stat, sys
from eqforge.core.sandbox.sandbox import Sandbox, enter
enter(Sandbox(read=("/",), write=(sys.argv[1],), network=True))
asyncio.run(asyncio.sleep(0))
socket.socket().close()
for kind in (stat.S_IFBLK, stat.S_IFCHR):
    with contextlib.suppress(PermissionError):
        os.mknod(sys.argv[1] + "/device", kind | 0o600, os.makedev(1, 3))
        print("a device")
with contextlib.suppress(PermissionError):
    socket.socket(socket.AF_UNIX)
    print("a socket")
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == ("" if has_seccomp() else "a socket\n")


@pytest.mark.skipif(not HAS_LANDLOCK, reason="the kernel has no Landlock")
def test_landlock_alone_holds_files_and_tcp_and_seccomp_alone_the_rest(tmp_path: Path) -> None:
    """Each is told to a process of its own, through Python's own calls."""
    (tmp_path / "secret").write_text("secret")
    script = """
import json, sys
from eqforge.core.sandbox import landlock, probe, seccomp
if sys.argv[1] == "landlock":
    landlock.restrict(["/usr", sys.prefix, sys.base_prefix], [], network=False)
else:
    seccomp.restrict(network=False, modes=False)
tries = {"tries": list(probe.TRIES), "path": sys.argv[2]}
print(json.dumps(dict(zip(probe.TRIES, probe.probe(tries, print)))))
"""
    for part, held in (("landlock", BY_LANDLOCK), ("seccomp", BY_SECCOMP)):
        ended = subprocess.run(
            [sys.executable, "-c", script, part, str(tmp_path / "secret")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        said = json.loads(ended.stdout)
        assert {name for name, text in said.items() if text} >= held, said


def test_threads_are_inside_too_and_the_limits_cannot_be_lifted(sandboxed: Child) -> None:
    if HAS_LANDLOCK:
        assert "Permission denied" in next(sandboxed.ask("thread"))
    if os.geteuid():
        with pytest.raises((ChildFailed, OSError)):
            list(sandboxed.ask("lift"))


def test_a_process_reads_of_itself_also_after_memory_was_short(sandboxed: Child) -> None:
    assert list(sandboxed.ask("itself"))
    with contextlib.suppress(OSError):  # only root may; the kernel does so by itself, too
        Path("/proc/sys/vm/drop_caches").write_text("2")
    assert list(sandboxed.ask("itself"))


def test_a_request_that_takes_too_much_processor_time_ends_the_process(sandboxed: Child) -> None:
    assert list(sandboxed.ask({"a": 1})) == [{"a": 1}]
    with pytest.raises(ChildDied, match="SIGXCPU"):
        list(sandboxed.ask("spin"))
    assert list(sandboxed.ask({"a": 2})) == [{"a": 2}]


def test_the_environment_takes_the_cage_away_or_changes_its_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sandbox = Sandbox(read=("/a",), memory_gb=1, cpu_s=2)
    assert adjusted(sandbox) == sandbox
    monkeypatch.setenv(VARIABLE, "memory_gb=16,cpu_s=7200")
    assert adjusted(sandbox) == Sandbox(read=("/a",), memory_gb=16, cpu_s=7200)
    monkeypatch.setenv(VARIABLE, "off")
    assert adjusted(sandbox) is None
    wrongs = ("on", "memory_gb=", "memory_gb=-1", "memory_gb=nan", "memory_gb=inf", "cpu_s=1e20")
    for wrong in (*wrongs, "read=/"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(InputError, match=VARIABLE):
            adjusted(sandbox)


def test_modules_in_the_current_folder_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "base64.py").write_text("import os; os._exit(9)")
    monkeypatch.chdir(tmp_path)
    child = Child("base64:b64encode", timeout_s=60)
    list(zip((), child.ask({}), strict=False))
    child.close()


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clips.write_clip(tmp_path_factory.mktemp("clip") / "v.mp4", clips.Clip(size=(64, 48)))


def frames(extractor: FrameExtractor, video: Path) -> list[StoredFrame | MissedFrame]:
    return extractor.extract(str(video), [FrameRequest(frame_id="f", timestamp_s=0.5)])


def test_the_decoder_reads_its_folder_and_links_that_were_allowed(
    clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("videos/deep", "elsewhere", "far"):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(clip, tmp_path / folder / "v.mp4")
    (tmp_path / "videos" / "link.mp4").symlink_to(tmp_path / "elsewhere" / "v.mp4")
    (tmp_path / "videos" / "folder").symlink_to(tmp_path / "far")
    (tmp_path / "linked").symlink_to(tmp_path / "videos")
    videos = tmp_path / "linked"
    store = MediaStore(str(tmp_path / "media"))
    names = ("deep/v.mp4", "link.mp4", "folder/v.mp4", "deep/v.mp4")
    with FrameExtractor(store=store, folder=str(videos)) as extractor:
        sandboxed = [frames(extractor, videos / name) for name in names]
    monkeypatch.setenv(VARIABLE, "off")
    with FrameExtractor(store=MediaStore(str(tmp_path / "other"))) as extractor:
        free = [frames(extractor, videos / name) for name in names]

    assert sandboxed == free
    assert all(isinstance(frame, StoredFrame) for (frame,) in sandboxed)
    image = {path.name: path.read_bytes() for path in (tmp_path / "media").rglob("*.jpg")}
    assert image == {p.name: p.read_bytes() for p in (tmp_path / "other").rglob("*.jpg")}


def test_frames_go_to_an_object_store_though_the_decoder_has_no_network(clip: Path) -> None:
    store = MediaStore("memory://sandbox/media")  # a file system that only this process has
    with FrameExtractor(store=store) as extractor:
        (frame,) = frames(extractor, clip)
    assert isinstance(frame, StoredFrame)
    assert hashlib.sha256(store.get(frame.image_id, ".jpg")).hexdigest() == frame.image_id


@pytest.fixture
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A port, and what was sent to it."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    heard.append(connection.recv(100))

        threading.Thread(target=listen, daemon=True).start()
        yield server.getsockname()[1], heard
        server.shutdown(socket.SHUT_RDWR)


PLAYLISTS = {
    "hls": "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{target}\n#EXT-X-ENDLIST\n",
    "concat": "ffconcat version 1.0\nfile '{target}'\n",
    "dash": '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
    'mediaPresentationDuration="PT10S"><Period><AdaptationSet mimeType="video/mp4">'
    '<Representation id="1" bandwidth="1"><BaseURL>{target}</BaseURL></Representation>'
    "</AdaptationSet></Period></MPD>\n",
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
    "m=video {port} RTP/AVP 96\n",
    "asx": '<asx version="3.0"><entry><ref href="{target}"/></entry></asx>\n',
}


@pytest.mark.parametrize("sandbox", ["", "off"])
def test_a_playlist_that_calls_itself_a_video_opens_nothing(
    clip: Path,
    tmp_path: Path,
    listener: tuple[int, list[bytes]],
    sandbox: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a sandbox or without: FFmpeg is told which formats hold their own data."""
    monkeypatch.setenv(VARIABLE, sandbox)
    port, heard = listener
    folder = tmp_path / "videos"
    folder.mkdir()
    targets = {"file": str(clip), "http": f"http://127.0.0.1:{port}/v.mp4", "passwd": "/etc/passwd"}
    with FrameExtractor(store=MediaStore(str(tmp_path / "media")), folder=str(folder)) as extractor:
        for form, text in PLAYLISTS.items():
            for name, target in targets.items():
                for suffix in (".mp4", ".m3u8", ".mkv"):
                    video = folder / f"{form}-{name}{suffix}"
                    video.write_text(text.format(target=target, port=port))
                    (frame,) = frames(extractor, video)
                    assert isinstance(frame, MissedFrame), video.name
                    assert frame.reason == "video_unreadable"
    assert heard == []


ANSWERS = {
    "a suffix that leads out": {"suffix": "/../../out"},
    "an image that was not sent": {"image_id": "a" * 64},
    "a path for an id": {"image_id": "../../etc/passwd"},
    "another type": {"width_px": "wide"},
}


@pytest.mark.parametrize("wrong", ANSWERS.values(), ids=ANSWERS)
def test_a_decoder_that_was_taken_over_stores_nothing_but_its_images(
    clip: Path, tmp_path: Path, wrong: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "liar.py").write_text(
        "from eqforge.transforms.video.frames import extract\n"
        "def serve(question, alive):\n"
        "    for answer in extract.serve(question, alive):\n"
        f"        answer['stored'].update({wrong!r})\n"
        "        yield answer\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    with FrameExtractor(store=MediaStore(str(tmp_path / "media"))) as extractor:
        extractor._child._function = "liar:serve"
        with pytest.raises(ChildFailed, match="no answer"):
            frames(extractor, clip)
    assert {path.suffix for path in (tmp_path / "media").rglob("*") if path.is_file()} <= {".jpg"}


@pytest.mark.parametrize("line", [b"[" * 100_000, b"1", b'"text"', b"\xff", b'{"answer": '])
def test_what_is_no_message_is_an_error(
    line: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rude.py").write_text(
        "import gc, io\n"
        "def answer(request, alive):\n"
        "    (pipe,) = [o for o in gc.get_objects() if isinstance(o, io.BufferedWriter)"
        " and not o.closed and o.fileno() > 2]\n"
        f"    pipe.write({line!r} + b'\\n')\n"
        "    pipe.flush()\n"
        "    yield 1\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    child = Child("rude:answer", timeout_s=60)
    with pytest.raises(ChildFailed, match="its message is not"):
        list(child.ask(0))
    child.close()


def test_a_machine_without_landlock_or_seccomp_is_told_and_not_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "s390x")
    with pytest.raises(OSError, match="eqforge has no list of system calls for linux on s390x"):
        seccomp.restrict(network=False, modes=False)


def test_the_settings_of_frames_are_those_of_the_caged(clip: Path, tmp_path: Path) -> None:
    settings = FrameSettings(image_format="png")
    with FrameExtractor(store=MediaStore(str(tmp_path)), settings=settings) as extractor:
        (frame,) = frames(extractor, clip)
    assert isinstance(frame, StoredFrame)
    data = extractor.store.get(frame.image_id, ".png")
    assert io.BytesIO(data).read(4) == b"\x89PNG"
