import hashlib
import io
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import fsspec
import pytest

from eqforge.core.errors import InputError
from eqforge.core.files import objects
from eqforge.core.files.find_file import MissingFile
from eqforge.core.files.found_file import FoundFile
from eqforge.core.files.objects import FetchFailed
from eqforge.core.files.source_folder import SourceFolder
from tests.web_server import WebServer

SUFFIXES = (".mp4", ".mkv", ".webm")
FILES = {"train/a.MP4": b"first", "b.webm": b"other", "a b?%#ü.mp4": b"odd"}
KINDS = ("disk", "store", "web", "shards", "shards in a store")


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQFORGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(objects, "WAITS_S", (0.0, 0.0))
    fsspec.filesystem("memory").store.clear()


@dataclass(frozen=True)
class Place:
    """A folder of videos somewhere, and how files come into it."""

    folder: SourceFolder
    put: Callable[[dict[str, bytes]], None]

    def video(self, name: str) -> FoundFile:
        """A video as a run that begins now finds it."""
        self.folder.check("videos")
        file = self.folder.find(name, SUFFIXES)
        assert isinstance(file, FoundFile), file
        return file


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """The same files in each kind of place, beside one that nobody may read."""
    kind, root = request.param, tmp_path / "videos"
    root.mkdir()
    (tmp_path / "secret.mp4").write_bytes(b"secret")

    def put(files: dict[str, bytes]) -> None:
        for name, data in files.items():
            file = root / (f"{name[0]}{len(name)}.tar" if "shards" in kind else name)
            file.parent.mkdir(exist_ok=True)
            if "shards" in kind:
                write_shard(file, {f"./{name}": data})
            else:
                file.write_bytes(data)
            if "store" in kind:
                url = f"/bucket/{file.relative_to(tmp_path)}"
                fsspec.filesystem("memory").pipe_file(url, file.read_bytes())

    put(FILES)
    if kind == "web":
        with WebServer(tmp_path).running() as web:
            yield Place(SourceFolder(f"{web.url}/videos"), put)
    else:
        where = "memory://bucket/videos" if "store" in kind else str(root)
        yield Place(SourceFolder(where), put)


def write_shard(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("train/a", "train/a.MP4"),
        ("train/a.MP4", "train/a.MP4"),
        ("b", "b.webm"),
        ("a b?%#ü.mp4", "a b?%#ü.mp4"),
        ("./train//a", "train/a.MP4"),
    ],
)
def test_every_place_gives_the_same_file_for_a_name(place: Place, name: str, file: str) -> None:
    video = place.video(name)

    assert video.name == file
    assert video.read() == FILES[file]
    assert video.digest() == hashlib.sha256(FILES[file]).hexdigest()
    with video.opened() as opened, opened.copied() as source:
        assert source.stream.read() == FILES[file]
        assert not opened.is_changed()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((name, "file_missing") for name in ("train", "train/", "c", "", ".", "x::file:///b")),
        *((name, "outside_root") for name in ("../secret", "/secret", "train/../../secret")),
    ],
)
def test_what_is_no_file_below_the_folder_has_a_reason(
    place: Place, name: str, reason: str
) -> None:
    missing = place.folder.find(name, SUFFIXES)

    assert isinstance(missing, MissingFile)
    assert missing.reason == reason


def test_many_names_are_looked_up_in_their_order(place: Place) -> None:
    names = ["b", "c", "train/a"] * 400
    files = [file for _, file in place.folder.find_all(names, str, SUFFIXES)]

    assert [getattr(file, "name", None) for file in files] == ["b.webm", None, "train/a.MP4"] * 400


def test_a_file_that_changes_while_it_is_open_is_noticed(place: Place) -> None:
    video = place.video("b")
    before = video.state()
    with video.opened() as opened:
        assert not opened.is_changed()
        place.put({"b.webm": b"OTHER, and longer"})
        assert is_noticed(opened.is_changed)
    assert place.video("b").state() != before
    assert place.video("b").read() == b"OTHER, and longer"


def is_noticed(ask: Callable[[], bool]) -> bool:
    """A part of a shard that changed cannot be had at all: it may lie elsewhere."""
    try:
        return ask()
    except FetchFailed as error:
        return error.reason == "source_changed"


@pytest.mark.parametrize("place", KINDS[1:], indirect=True)
def test_a_file_larger_than_the_room_for_copies_says_which_setting(place: Place) -> None:
    small = replace(place, folder=replace(place.folder, cache_gb=4e-9))
    assert small.video("a b?%#ü").read() == b"odd"
    with pytest.raises(FetchFailed, match="5 bytes, more than --cache-gb 4e-09 allows") as failed:
        small.video("b").read()
    assert failed.value.reason == "too_large_to_copy"


@pytest.mark.parametrize("place", ["store", "shards", "shards in a store"], indirect=True)
def test_workers_take_the_list_of_the_process_that_started_them(
    place: Place, tmp_path: Path
) -> None:
    place.video("b")
    place.folder.share(str(tmp_path / "list.json"))
    shared = replace(place.folder, index=str(tmp_path / "list.json"))
    place.put({"c.webm": b"new"})

    assert isinstance(shared.find("c", SUFFIXES), MissingFile)
    video = shared.find("b", SUFFIXES)
    assert isinstance(video, FoundFile)
    assert video.read() == b"other"


def test_a_shard_that_is_another_than_listed_gives_no_wrong_bytes(tmp_path: Path) -> None:
    write_shard(tmp_path / "0.tar", {"a.mp4": b"first", "b.mp4": b"other"})
    folder = SourceFolder(str(tmp_path / "0.tar"))
    video = folder.find("b.mp4")
    assert isinstance(video, FoundFile)
    write_shard(tmp_path / "0.tar", {"c.mp4": bytes(5000), "b.mp4": b"other"})

    with pytest.raises(FetchFailed) as failed:
        video.read()
    assert failed.value.reason == "source_changed"


@pytest.mark.parametrize(
    ("files", "are_shards"),
    [
        (["0.tar", "1.tar", "index.json", "README.md"], True),
        (["0.tar", "a.mp4"], False),
        (["0.tar", "train/"], False),
        (["notes.txt"], False),
    ],
)
def test_a_folder_of_tars_and_of_nothing_else_is_one_of_shards(
    tmp_path: Path, files: list[str], are_shards: bool
) -> None:
    for name in files:
        if name.endswith("/"):
            (tmp_path / name).mkdir()
        else:
            write_shard(tmp_path / name, {f"{name}.mp4": b""})
    assert isinstance(SourceFolder(str(tmp_path)).find("0.tar.mp4"), FoundFile) == are_shards


def test_a_pattern_names_shards(tmp_path: Path) -> None:
    for number in range(3):
        write_shard(tmp_path / f"part-{number}.tar", {f"{number}.mp4": b""})
    (tmp_path / "a.mp4").touch()
    folder = SourceFolder(str(tmp_path / "part-[01].tar"))
    folder.check("videos")
    assert isinstance(folder.find("1.mp4"), FoundFile)
    assert isinstance(folder.find("2.mp4"), MissingFile)


@pytest.mark.parametrize(
    ("root", "message"),
    [
        (
            "memory://nowhere/videos",
            "--videos memory://nowhere/videos: no such folder, or the folder",
        ),
        ("memory://bucket/*.tar", r"--videos memory://bucket/\*.tar: no such folder"),
        ("{tmp}/none", "--videos .*/none: no such folder"),
        ("{tmp}/file", "--videos .*/file is a file; expected a folder"),
        ("{tmp}/none.tar", "none.tar: no file of that name"),
        ("{tmp}/x.tar.gz", "x.tar.gz is compressed"),
        (
            "https://me:hunter2@host/videos",
            "^--videos https://host/videos contains a password or a",
        ),
        (
            "https://host/videos?sig=hunter2",
            "^--videos https://host/videos contains a password or a",
        ),
        ("http://localhost:1/videos", "--videos http://localhost:1/videos: Cannot connect to host"),
        ("tar://a.tar::s3://bucket", "is not a supported store"),
    ],
)
def test_a_folder_that_is_none_is_an_error_before_any_work(
    tmp_path: Path, root: str, message: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=message) as error:
        SourceFolder(root.format(tmp=tmp_path)).check("videos")
    assert "hunter2" not in str(error.value)


def test_a_web_server_is_asked_for_many_names_at_once_and_remembers(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"{number}.mp4").touch()
    with WebServer(tmp_path).running() as web:
        folder = SourceFolder(web.url)
        names = [str(number) for number in range(300)]
        for _ in range(2):
            files = [file for _, file in folder.find_all(names, str, SUFFIXES)]
            assert sum(isinstance(file, FoundFile) for file in files) == 200
        assert web.asked["HEAD", "7.mp4"] == 1
        web.down.add("301.mp4")
        ((_, away),) = folder.find_all(["301.mp4"], str)
        assert isinstance(away, MissingFile)
        assert away.reason == "download_failed"
        assert "503" in away.detail
