"""The numbers of pictures, the folder that is found, and the picture that a time means."""

from fractions import Fraction
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.core.files.find_file import MissingFile
from eqforge.core.files.found_frames import FoundFrames, TrimmedClips, find_video, number_frames
from eqforge.core.files.source_folder import SourceFolder
from eqforge.schemas.records.frames import VIDEO_SUFFIXES, FrameRequest
from eqforge.schemas.records.scores import Rejection
from eqforge.transforms.video.pictures import number_of


def test_what_is_not_clear_is_said_alike_in_every_order() -> None:
    files = ["00001.png", "1.jpg", "img_2.png", "flow_3.png", "0.png", "Thumbs.db", ".4.png"]
    faults = {number_frames("a", files[n:] + files[:n]).fault for n in range(len(files))}
    assert faults == {"00001.png and 1.jpg have the same frame number"}
    assert (
        number_frames("a", ["a1.png", "b2.png"]).fault
        == "a1.png and b2.png are named in different ways"
    )
    assert number_frames("a", ["0.png", "1.png"]).fault.startswith("0.png has the number 0")


def test_a_folder_that_may_not_be_listed_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()

    def refuse(_: str) -> None:
        raise PermissionError(13, "Permission denied")

    folder = SourceFolder(str(tmp_path))
    assert folder.is_on_disk
    monkeypatch.setattr("os.scandir", refuse)
    found = find_video(folder, "a", VIDEO_SUFFIXES)
    assert found == MissingFile(reason="video_unreadable", detail="Permission denied")


TEN = FoundFrames(name="a", files={n: f"{n}.png" for n in range(1, 11)})


def asked(
    *, time_s: float | None = None, index: int | None = None, fps: float | None
) -> int | Rejection:
    request = FrameRequest(frame_id="f", timestamp_s=time_s, frame_index=index)
    return number_of(request, TEN, fps, 0.1)


def test_a_picture_is_shown_until_the_next_one_is() -> None:
    for fps in (1.0, 5.0, 23.976, 25.0, 29.97, 30.0, 0.5):
        for number in range(1, 11):
            begins = float(Fraction(number - 1) / Fraction(str(fps)))
            ends = float(Fraction(number) / Fraction(str(fps)))
            assert asked(time_s=begins, fps=fps) == number, (fps, number)
            assert asked(time_s=(begins + ends) / 2, fps=fps) == number
            assert asked(time_s=ends - 1e-5, fps=fps) == number
        assert asked(time_s=10 / fps + 0.09, fps=fps) == 10
        late = asked(time_s=10 / fps + 0.11, fps=fps)
        assert isinstance(late, Rejection)
        assert late.reason == "after_last_frame"
        early = asked(time_s=-0.01, fps=fps)
        assert isinstance(early, Rejection)
        assert early.reason == "before_first_frame"


def trimmed(root: Path) -> TrimmedClips:
    return TrimmedClips(SourceFolder(str(root)), VIDEO_SUFFIXES)


def test_a_clip_of_kinetics_is_found_by_its_video(tmp_path: Path) -> None:
    for name in (
        "abseiling/a-_b_000001_000011.mp4",
        "train/zumba/c_000000_000010.MKV",
        "d_000000_000010.webm",
        "e.mp4",
        "abseiling/e_000000_000010.mp4",
        "abseiling/f_00000_000010.mp4",
        "abseiling/g_000000_000010.txt",
        "x/y/z/h_000000_000010.mp4",
        "zumba/i_000000_000010/img_00001.jpg",
        "j/img_00001.jpg",
        "j/k_000000_000010.mp4",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"\0")
    (tmp_path / "loop").symlink_to("loop")
    clips = trimmed(tmp_path)
    assert clips.find("a-_b") == "abseiling/a-_b_000001_000011.mp4"
    assert clips.find("c") == "train/zumba/c_000000_000010.MKV"
    assert clips.find("d") == "d_000000_000010.webm"
    assert clips.find("i") == "zumba/i_000000_000010"
    for video in ("e", "f", "g", "h", "k", "missing"):
        assert clips.find(video) == video


def test_two_clips_of_one_video_are_one_error(tmp_path: Path) -> None:
    for name in ("one/a_000001_000011.mp4", "two/a_000001_000011.mp4"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"\0")
    message = "the video a has two clips, one/a_000001_000011.mp4 and two/a_000001_000011.mp4"
    with pytest.raises(InputError, match=message):
        trimmed(tmp_path).find("a")
    assert trimmed(tmp_path).find("b") == "b"
