"""Files that are swapped, or grow, while a build reads them: what the rows say of them is true."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eqforge.cli import main
from eqforge.core.errors import InputError
from eqforge.core.files import source_file as sources
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.identity import sha256_hex
from eqforge.core.ledger import Ledger
from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines.base import identity
from eqforge.schemas.records.frames import Clip, FrameRequest
from eqforge.schemas.records.values import CornerBox
from eqforge.transforms.dataset.image_folder import FoundImage, ImageFolder
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.video.clip_work import ClipWork
from eqforge.transforms.video.extract import extract_frames
from eqforge.transforms.video.frames.extract import FrameExtractor
from tests import clips
from tests.small_builds import COMMANDS

Change = Callable[[Path, Path], None]


def swap(place: Path, other: Path) -> None:
    """Renames another file over it, as a finished download does."""
    shutil.copy(other, place.with_suffix(".new"))
    place.with_suffix(".new").replace(place)


def write_over(place: Path, other: Path) -> None:
    """Writes other bytes of the same length into it, and sets its time of change back."""
    found, data = place.stat(), other.read_bytes()
    with open(place, "r+b") as stream:
        stream.write(data[: found.st_size].ljust(found.st_size, b"\0"))
    os.utime(place, ns=(found.st_atime_ns, found.st_mtime_ns))


def grow(place: Path, other: Path) -> None:
    """Appends to it, as a download in progress does."""
    with open(place, "ab") as stream:
        stream.write(other.read_bytes()[:1000])


CHANGES = [swap, write_over, grow]


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two clips of one name, which differ in every frame."""
    folder = tmp_path_factory.mktemp("versions")
    sizes = {"a.mp4": (64, 48), "b.mp4": (80, 48)}
    first, second = (
        clips.write_clip(folder / name, clips.Clip(size=size)) for name, size in sizes.items()
    )
    return first, second


@pytest.fixture(scope="module")
def extractor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrameExtractor]:
    folder = tmp_path_factory.mktemp("store") / "media"
    with FrameExtractor(store=MediaStore(str(folder))) as found:
        yield found


def folders(place: Path, versions: tuple[Path, Path]) -> tuple[Path, Path]:
    """Makes an empty folder of videos, and one with a copy of each version of one."""
    videos, kept = place / "videos", place / "kept"
    videos.mkdir()
    kept.mkdir()
    for path in versions:
        shutil.copy(path, kept)
    return videos, kept


TIMES_S = (0.1, 0.5, 0.9, 1.3)


def frames_of(videos: Path, extractor: FrameExtractor) -> ClipWork:
    requests = tuple(FrameRequest(frame_id=f"d/v/{at}", timestamp_s=at) for at in TIMES_S)
    planned = Clip(clip_id="v", video="v.mp4", split="test", root="d/v", frames=requests)
    ledger = Ledger(root=str(videos.parent / "done"), step="extract", basis=None)
    return extract_frames(planned, SourceFolder(str(videos)), extractor, ledger)


def is_true(work: ClipWork, folder: Path, extractor: FrameExtractor) -> bool:
    """Tells whether frames are those of the file with the digest; False where there are none."""
    if work.source is None:
        assert {reject.reason for reject in work.rejects} == {"source_changed"}
        return False
    assert work.source.sha256 is not None
    copies = {sha256_hex(path.read_bytes()): path for path in folder.iterdir()}
    videos = folder.parent / f"again-{work.source.sha256}"
    videos.mkdir(exist_ok=True)
    shutil.copy(copies[work.source.sha256], videos / "v.mp4")
    assert work.frames == frames_of(videos, extractor).frames
    assert len(work.frames) == len(TIMES_S)
    return True


MOMENTS = ["opened", "digested", "asked", "decoded"]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_video_that_changes_is_a_reject_or_its_frames_are_of_its_digest(
    moment: str,
    change: Change,
    versions: tuple[Path, Path],
    extractor: FrameExtractor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    videos, kept = folders(tmp_path, versions)
    place = Path(shutil.copy(versions[0], videos / "v.mp4"))
    digest, ask = sources.SourceFile.digest, FrameExtractor.extract

    def changed(at: str) -> None:
        if moment == at:
            change(place, versions[1])

    def digesting(source: sources.SourceFile) -> str:
        changed("opened")
        found = digest(source)
        changed("digested")
        return found

    def asking(self: FrameExtractor, *question: Any) -> Any:
        changed("asked")
        answers = ask(self, *question)
        changed("decoded")
        return answers

    with monkeypatch.context() as patched:
        patched.setattr(sources.SourceFile, "digest", digesting)
        patched.setattr(FrameExtractor, "extract", asking)
        work = frames_of(videos, extractor)

    assert not is_true(work, kept, extractor)
    shutil.copy(versions[1], place)
    assert is_true(frames_of(videos, extractor), kept, extractor)  # the next run has them


def test_a_video_that_changes_all_the_time_has_no_false_lineage(
    versions: tuple[Path, Path], extractor: FrameExtractor, tmp_path: Path
) -> None:
    """Two versions replace one another every few milliseconds."""
    videos, kept = folders(tmp_path, versions)
    swap(videos / "v.mp4", versions[0])
    over = threading.Event()

    def keep_on() -> None:
        number = 0
        while not over.wait(0.001 * (number % 60)):
            number += 1
            swap(videos / "v.mp4", versions[number % 2])

    swapping = threading.Thread(target=keep_on)
    swapping.start()
    try:
        works = [frames_of(videos, extractor) for _ in range(40)]
    finally:
        over.set()
        swapping.join()
    for work in works:
        is_true(work, kept, extractor)
    assert is_true(frames_of(videos, extractor), kept, extractor)


def test_a_part_of_an_image_and_its_digest_are_of_one_reading(tmp_path: Path) -> None:
    """The file is another by the time its digest is asked for."""
    from PIL import Image

    (tmp_path / "images").mkdir()
    Image.new("RGB", (40, 30), "red").save(tmp_path / "images" / "a.png")
    before = sha256_hex((tmp_path / "images" / "a.png").read_bytes())
    images = SourceFolder(str(tmp_path / "images"))
    folder = ImageFolder(root=images, media_root=str(tmp_path / "media"))
    found = folder.look_up("a.png", CornerBox(x0=0, y0=0, x1=9, y1=9))
    Image.new("RGB", (40, 30), "blue").save(tmp_path / "images" / "a.png")

    assert isinstance(found, FoundImage)
    assert found.source_sha256 == before


def test_an_image_that_grows_while_it_is_read_is_a_reject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    check = sources.SourceFile.check_unchanged

    def late(source: sources.SourceFile) -> None:
        grow(tmp_path / "a.png", tmp_path / "a.png")
        check(source)

    monkeypatch.setattr(sources.SourceFile, "check_unchanged", late)
    images = SourceFolder(str(tmp_path))
    found = ImageFolder(root=images, media_root=str(tmp_path / "media")).find("a.png")

    assert getattr(found, "reason", None) == "source_changed"


# The vocabulary of eq-sd is read once, before it is digested.
@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("eq-kubric", "eq-sd")])
def test_annotations_that_change_after_they_were_digested_are_refused(
    name: str,
    demo_workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Blanks are added behind the last input: every reader takes them, and no digest knows them."""
    folder = tmp_path / "demo"
    shutil.copytree(demo_workspace.videos.parent, folder)
    _, *arguments = COMMANDS[name](demo_workspace, tmp_path)
    arguments = [a.replace(str(demo_workspace.videos.parent), str(folder)) for a in arguments]
    digest = sources.digest_input
    digested = []

    def digesting(url: str) -> str:
        found = digest(url)
        if str(tmp_path) in url:
            digested.append(url)
            with open(url, "ab") as stream:
                stream.write(b"\n")
        return found

    monkeypatch.setattr(identity, "digest_input", digesting)
    with pytest.raises(SystemExit, match="2"):
        main(["plan", name, *arguments])

    said = capsys.readouterr().err
    assert any(f"{url} changed while it was read" in said for url in digested), said


def test_an_input_has_one_content_however_often_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    path.write_text("a")
    with sources.one_content():
        assert sources.read_input(path) == b"a"
        assert sources.digest_input(path) == sha256_hex(b"a")
        path.write_text("b")
        with pytest.raises(InputError, match="changed while it was read"):
            sources.read_input(path)
    assert sources.read_input(path) == b"b"


def test_a_damaged_file_that_was_still_written_to_is_said_to_have_changed(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    path.write_text("{")

    def read() -> None:
        with sources.open_input(path):
            path.write_text("{}")
            raise InputError("no JSON")

    with pytest.raises(InputError, match="changed while it was read"):
        read()


def test_a_model_folder_that_changes_while_it_is_loaded_is_refused(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"a")
    with (
        pytest.raises(InputError, match="changed while it was read"),
        sources.unchanged([tmp_path, "no/such", "openai/clip"]),
    ):
        write_over(tmp_path / "weights", tmp_path / "weights")
