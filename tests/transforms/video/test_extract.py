import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.identity import sha256_hex
from eqforge.core.ledger import Ledger
from eqforge.schemas.records.frames import Clip, FrameRequest, FrameSettings, MissedFrame
from eqforge.schemas.records.stages import Reject, Tally
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.video.clip_work import ClipWork
from eqforge.transforms.video.extract import extract_frames
from eqforge.transforms.video.frames.extract import FrameExtractor
from eqforge.transforms.video.rules import encoding_parameters
from tests import clips


@pytest.fixture(scope="module")
def clip_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """48 numbered frames, 40 ms each."""
    return clips.write_clip(tmp_path_factory.mktemp("clip") / "v.mp4", clips.Clip(size=(64, 48)))


@pytest.fixture
def videos(clip_file: Path, tmp_path: Path) -> Path:
    (tmp_path / "videos" / "deep").mkdir(parents=True)
    shutil.copy(clip_file, tmp_path / "videos" / "deep" / "v.mp4")
    return tmp_path / "videos"


@pytest.fixture
def extractor(tmp_path: Path) -> Iterator[FrameExtractor]:
    with FrameExtractor(store=MediaStore(str(tmp_path / "media"))) as found:
        yield found


def plan(*times_s: float, video: str = "deep/v") -> Clip:
    return Clip(
        clip_id="v",
        video=video,
        split="train",
        root="d/v",
        frames=tuple(FrameRequest(frame_id=f"d/v/{t}", timestamp_s=t) for t in times_s),
        rejects=(Reject(candidate_id="d/v/planned", stage="segments", reason="bad_segment"),),
        tallies=(Tally(stage="segments", candidates=3, kept=2),),
    )


def extract(clip: Clip, videos: Path, extractor: FrameExtractor) -> ClipWork:
    ledger = Ledger(root=str(videos.parent / "done"), step="extract", basis=None)
    return extract_frames(clip, SourceFolder(str(videos)), extractor, ledger)


def test_frames_are_in_the_store_and_carry_their_lineage(
    videos: Path, extractor: FrameExtractor
) -> None:
    work = extract(plan(0.5, 0.02, 1.0), videos, extractor)

    assert work.source is not None
    assert work.source.path == "deep/v.mp4"
    assert work.source.sha256 == sha256_hex((videos / "deep" / "v.mp4").read_bytes())
    for frame, number in zip(work.frames, (12, 0, 25), strict=True):
        data = extractor.store.get(frame.stored.image_id, frame.stored.suffix)
        path = extractor.store.path(frame.stored.image_id, frame.stored.suffix)
        assert (frame.stored.frame_index, len(data)) == (number, frame.stored.num_bytes)
        assert clips.read_number(pixels_of(path)) == number
    assert work.rejects == plan().rejects
    assert work.tallies == plan().tallies  # the frames' books are closed when they are judged


def pixels_of(path: str) -> Any:
    import numpy as np

    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("none", "video_missing"),
        ("../videos/deep/v.mp4", "outside_root"),
        ("/etc/passwd", "outside_root"),
        ("empty", "video_empty"),
        ("text", "video_unreadable"),
    ],
)
def test_a_video_that_cannot_be_had_is_a_reject_of_each_of_its_frames(
    videos: Path, extractor: FrameExtractor, name: str, reason: str
) -> None:
    (videos / "empty.mp4").touch()
    (videos / "text.mp4").write_text("no video")

    work = extract(plan(0.5, 1.0, video=name), videos, extractor)

    assert work.frames == ()
    found = [reject for reject in work.rejects if reject.stage == "frames"]
    assert [(reject.candidate_id, reject.reason) for reject in found] == [
        ("d/v/0.5", reason),
        ("d/v/1.0", reason),
    ]


def test_the_frames_of_a_damaged_video_that_are_there_are_kept(
    videos: Path, extractor: FrameExtractor
) -> None:
    work = extract(plan(0.5, 99.0), videos, extractor)

    assert [frame.stored.frame_id for frame in work.frames] == ["d/v/0.5"]
    *_, reject = work.rejects
    assert (reject.candidate_id, reject.reason) == ("d/v/99.0", "after_last_frame")
    assert reject.source_path == "deep/v.mp4"


def test_a_plan_without_frames_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "v.mp4").write_text("no video")
    extractor = FrameExtractor(store=MediaStore(str(tmp_path / "media")))
    for video in ("v", ""):
        work = extract(plan(video=video), tmp_path / "videos", extractor)

        assert work.frames == ()
        assert work.rejects == plan().rejects
        assert work.tallies[-1] == Tally(stage="frames", candidates=0, kept=0)


@pytest.mark.parametrize(("name", "reason"), [("none", "video_missing"), ("../v", "outside_root")])
def test_a_video_that_is_not_there_is_told_of_even_where_no_frame_is_wanted(
    videos: Path, extractor: FrameExtractor, name: str, reason: str
) -> None:
    work = extract(plan(video=name), videos, extractor)

    (reject,) = work.rejects[1:]
    assert (reject.candidate_id, reject.stage, reject.reason) == ("d/v", "frames", reason)
    assert work.tallies[-1] == Tally(stage="frames", candidates=1, kept=0)


def test_a_finished_video_is_not_opened_again_until_it_changes(
    videos: Path, extractor: FrameExtractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = extract(plan(0.5, 99.0), videos, extractor)
    opened = count_extractions(monkeypatch)

    assert extract(plan(0.5, 99.0), videos, extractor) == first
    assert opened == []
    extract(plan(0.5), videos, extractor)
    assert opened == [1]  # other frames are other work
    shutil.copy(videos / "deep" / "v.mp4", videos / "again.mp4")
    (videos / "again.mp4").replace(videos / "deep" / "v.mp4")
    extract(plan(0.5, 99.0), videos, extractor)
    assert opened == [1, 2]


@pytest.mark.parametrize("damage", [os.unlink, lambda path: os.truncate(path, 100)])
def test_a_frame_that_the_store_lost_or_cut_short_is_made_again(
    videos: Path,
    extractor: FrameExtractor,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[str], None],
) -> None:
    first = extract(plan(0.5, 1.0), videos, extractor)
    stored = first.frames[0].stored
    damage(extractor.store.path(stored.image_id, stored.suffix))
    opened = count_extractions(monkeypatch)

    assert extract(plan(0.5, 1.0), videos, extractor) == first
    assert opened == [2]
    assert sha256_hex(extractor.store.get(stored.image_id, stored.suffix)) == stored.image_id


def count_extractions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Notes for how many frames each video is opened."""
    opened: list[int] = []
    original = FrameExtractor.extract

    def noting(self: FrameExtractor, path: str, requests: Any, expected: Any) -> Any:
        opened.append(len(requests))
        return original(self, path, requests, expected)

    monkeypatch.setattr(FrameExtractor, "extract", noting)
    return opened


@pytest.mark.parametrize("reason", ["decoder_crashed", "decoder_timeout"])
def test_what_a_crash_took_is_asked_for_once_more_and_in_every_run(
    videos: Path, extractor: FrameExtractor, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    original = FrameExtractor.extract
    asked = []

    def crash(self: FrameExtractor, path: str, requests: Any, expected: Any) -> Any:
        """Loses the frame at 1.0 s."""
        asked.append([request.frame_id for request in requests])
        lost = MissedFrame(
            frame_id="d/v/1.0", requested_timestamp_s=1.0, reason=reason, detail="SIGSEGV"
        )
        answers = original(self, path, requests, expected)
        return [lost if answer.frame_id == lost.frame_id else answer for answer in answers]

    with monkeypatch.context() as crashing:
        crashing.setattr(FrameExtractor, "extract", crash)
        work = extract(plan(0.5, 1.0), videos, extractor)
    assert asked == [["d/v/0.5", "d/v/1.0"], ["d/v/1.0"]]
    assert [frame.stored.frame_id for frame in work.frames] == ["d/v/0.5"]
    assert work.rejects[-1].reason == reason

    assert len(extract(plan(0.5, 1.0), videos, extractor).frames) == 2


def test_a_fault_of_the_extractor_is_a_reject_and_a_full_disk_ends_the_run(
    videos: Path, extractor: FrameExtractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: Iterator[Exception] = iter([IndexError("at 0x7f00"), OSError(28, "no space")])

    def fail(*_: Any) -> Any:
        raise next(errors)

    monkeypatch.setattr(FrameExtractor, "extract", fail)

    work = extract(plan(0.5), videos, extractor)
    assert (work.rejects[-1].reason, work.rejects[-1].detail) == ("error:IndexError", "at 0x")
    with pytest.raises(OSError, match="no space"):
        extract(plan(0.5), videos, extractor)


def test_a_video_that_may_not_be_read_is_a_reject(
    clip_file: Path, extractor: FrameExtractor
) -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own are closed to others
        os.chmod(folder, 0o755)
        shutil.copy(clip_file, f"{folder}/v.mp4")
        os.chmod(f"{folder}/v.mp4", 0)
        with as_nobody():
            work = extract(plan(0.5, video="v"), Path(folder), extractor)

    reject = work.rejects[-1]
    assert (reject.reason, reject.detail) == ("video_unreadable", "Permission denied")


@contextmanager
def as_nobody() -> Iterator[None]:
    """Gives root's privileges up for a while; others have none to give up."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_only_what_decides_an_image_s_bytes_stands_in_its_parameters() -> None:
    settings = FrameSettings(jpeg_quality=80, max_side=100)

    assert encoding_parameters(settings) == {
        "image_format": "jpeg",
        "jpeg_quality": 80,
        "max_side": 100,
    }
    assert "jpeg_quality" not in encoding_parameters(replace(settings, image_format="png"))
