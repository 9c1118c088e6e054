"""Each time asked of a clip gets the frame whose interval holds it, whatever the container."""

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from eqforge.schemas.records.frames import FrameNumber, FrameSettings
from eqforge.transforms.video.frames import walks
from eqforge.transforms.video.frames.answers import DecodedFrame, UndecodedFrame
from eqforge.transforms.video.frames.decode import decode_frames
from eqforge.transforms.video.frames.index import read_index
from eqforge.transforms.video.frames.video import Video, open_file, open_video
from tests import clips

STRICT = FrameSettings(end_tolerance_s=0)
LAST_MS = 40
WALKED = [
    "constant rate",
    "variable rate, switching",
    "open GOP",
    "in fragments",
    "HEVC with B-frames",
    "HEVC in temporal layers",
    "VP9",
    "AV1",
    "keyframes only",
    "one keyframe",
]


@pytest.fixture(scope="session")
def clip_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    folder = tmp_path_factory.mktemp("clips")
    written: dict[str, str] = {}

    def write(name: str) -> str:
        if name not in written:
            clip = clips.CLIPS[name]
            path = folder / f"{len(written)}{clip.suffix}"
            written[name] = str(clips.write_clip(path, clip))
        return written[name]

    return write


def answers_to(
    path: str, moments: Sequence[float | FrameNumber], settings: FrameSettings = STRICT
) -> list[DecodedFrame | UndecodedFrame]:
    answers = list(decode_frames(path, moments, settings))
    assert sorted(answer.request for answer in answers) == list(range(len(moments)))
    return sorted(answers, key=lambda answer: answer.request)


def assert_shows(answer: DecodedFrame | UndecodedFrame, number: int, start_s: float) -> None:
    assert isinstance(answer, DecodedFrame), answer
    assert clips.read_number(answer.pixels) == number
    assert answer.frame_index == number
    assert answer.timestamp_s == pytest.approx(start_s, abs=1e-9)


@pytest.mark.parametrize("name", clips.CLIPS)
def test_every_time_gets_the_frame_whose_interval_holds_it(
    name: str, clip_path: Callable[[str], str]
) -> None:
    starts = clips.CLIPS[name].starts_ms
    ends = [*starts[1:], starts[-1] + LAST_MS]
    rng = random.Random(name)
    questions = []
    for number in rng.sample(range(len(starts)), 24):
        begin = Fraction(starts[number] - starts[0], 1000)
        end = Fraction(ends[number] - starts[0], 1000)
        questions += [(number, float(begin)), (number, float((begin + end) / 2))]
    rng.shuffle(questions)
    for asked in (questions, questions[:1], questions[1:4]):
        answers = answers_to(clip_path(name), [time_s for _, time_s in asked])
        for (number, _), answer in zip(asked, answers, strict=True):
            assert_shows(answer, number, (starts[number] - starts[0]) / 1000)


@pytest.mark.parametrize("name", WALKED)
def test_a_frame_taken_out_alone_is_the_one_of_a_plain_decode(
    name: str, clip_path: Callable[[str], str]
) -> None:
    path = clip_path(name)
    with av.open(path) as container:
        plain = [frame.to_ndarray(format="yuv420p") for frame in container.decode(video=0)]
    with open_file(path) as source, open_video(source, STRICT, lambda: None) as video:
        index = read_index(video)
        assert walks.can_walk(video, index)
        for number in range(0, len(plain), 5):
            (frame,) = walks.walk(video, index, {index.shown[number]})
            assert np.array_equal(frame.to_ndarray(format="yuv420p"), plain[number])


@pytest.mark.parametrize("name", [name for name in WALKED if name != "open GOP"])
def test_only_the_packets_from_the_keyframe_on_are_read_again(
    name: str, clip_path: Callable[[str], str]
) -> None:
    read = 0

    def count() -> None:
        nonlocal read
        read += 1

    path = clip_path(name)
    with av.open(path) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    keys = [number for number, packet in enumerate(packets) if packet.is_keyframe]
    longest_group = max(b - a for a, b in zip(keys, [*keys[1:], len(packets)], strict=True))
    last_s = (clips.CLIPS[name].starts_ms[-1] - clips.CLIPS[name].starts_ms[0]) / 1000
    (answer,) = decode_frames(path, [last_s], STRICT, count)
    assert isinstance(answer, DecodedFrame)
    assert read <= len(packets) + 1 + longest_group  # one more says that there are no more


@pytest.mark.parametrize("name", ["constant rate", "VP9"])
def test_a_container_whose_seeks_lie_is_decoded_through(
    name: str, clip_path: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def seek_to_the_end(video: Video, pts: int) -> None:
        video.container.seek(10**6, stream=video.stream)

    monkeypatch.setattr(Video, "seek", seek_to_the_end)
    for number, answer in zip([3, 30], answers_to(clip_path(name), [0.13, 1.21]), strict=True):
        assert_shows(answer, number, number * 0.04)


@pytest.mark.parametrize("name", ["constant rate", "MPEG-TS"])
def test_the_same_time_twice_and_times_out_of_order_are_answered_each(
    name: str, clip_path: Callable[[str], str]
) -> None:
    times = [0.5, 0.1, 0.5, 0.51, 0.1]
    for time_s, answer in zip(times, answers_to(clip_path(name), times), strict=True):
        number = int(time_s / 0.04)
        assert_shows(answer, number, number * 0.04)


@pytest.mark.parametrize("name", ["variable rate, jitter", "VP9", "MPEG-TS", "AVI, H.264"])
def test_a_frame_is_found_by_its_number(name: str, clip_path: Callable[[str], str]) -> None:
    starts = clips.CLIPS[name].starts_ms
    numbers = [47, 0, 13, 13]
    answers = answers_to(clip_path(name), [FrameNumber(number) for number in [*numbers, 48, 400]])
    for number, answer in zip(numbers, answers[:4], strict=True):
        assert_shows(answer, number, (starts[number] - starts[0]) / 1000)
    for answer in answers[4:]:
        assert isinstance(answer, UndecodedFrame)
        assert answer.reason == "after_last_frame"


@pytest.mark.parametrize("name", ["constant rate", "VP9", "MPEG-TS", "GIF"])
def test_the_last_frame_answers_until_its_end_and_the_tolerance_longer(
    name: str, clip_path: Callable[[str], str]
) -> None:
    times = [1.91, 1.921, 2.019, 2.021, 1e9]
    strict = answers_to(clip_path(name), times)
    assert_shows(strict[0], 47, 1.88)
    assert [getattr(answer, "reason", None) for answer in strict[1:]] == ["after_last_frame"] * 4
    lenient = answers_to(clip_path(name), times, FrameSettings(end_tolerance_s=0.1))
    for answer in lenient[:3]:
        assert_shows(answer, 47, 1.88)
    assert [getattr(answer, "reason", None) for answer in lenient[3:]] == ["after_last_frame"] * 2


@pytest.mark.parametrize("name", ["constant rate", "VP9", "MPEG-TS"])
def test_no_frame_answers_a_time_before_the_first(
    name: str, clip_path: Callable[[str], str]
) -> None:
    (answer,) = answers_to(clip_path(name), [-0.01])
    assert isinstance(answer, UndecodedFrame)
    assert answer.reason == "before_first_frame"


def test_time_0_is_where_the_sound_starts_if_it_starts_first(tmp_path: Path) -> None:
    clip = clips.CLIPS["starting at 1.5 s"]
    path = str(clips.write_clip(tmp_path / "clip.mp4", clip, sound_ms=3000))
    early, first, tenth = answers_to(path, [1.4, 1.51, 1.91])
    assert isinstance(early, UndecodedFrame)
    assert early.reason == "before_first_frame"
    assert early.detail == "the first frame is shown at 1.500000 s"
    assert_shows(first, 0, 1.5)
    assert_shows(tenth, 10, 1.9)


def test_the_first_frame_answers_time_0_though_no_microsecond_falls_on_it(tmp_path: Path) -> None:
    path = tmp_path / "thirds.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=3)
        stream.width = stream.height = 64
        for number in range(6):
            frame = av.VideoFrame.from_ndarray(clips.draw(number, (64, 64)), format="rgb24")
            frame.pts, frame.time_base = number + 1, Fraction(1, 3)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    answers = answers_to(str(path), [number / 3 + 1e-3 for number in range(6)])
    frames = [answer for answer in answers if isinstance(answer, DecodedFrame)]
    assert [clips.read_number(frame.pixels) for frame in frames] == list(range(6))
    assert isinstance(answers_to(str(path), [0.0])[0], DecodedFrame)


def test_a_time_that_is_not_finite_is_refused(clip_path: Callable[[str], str]) -> None:
    for time_s in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="not finite"):
            list(decode_frames(clip_path("constant rate"), [0.0, time_s], STRICT))


def test_no_time_asked_for_gets_no_answer(clip_path: Callable[[str], str]) -> None:
    assert list(decode_frames(clip_path("MPEG-TS"), [], STRICT)) == []


def test_a_name_that_looks_like_an_option_is_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clips.write_clip(tmp_path / "-i.mp4", clips.CLIPS["constant rate"])
    monkeypatch.chdir(tmp_path)
    assert_shows(answers_to("-i.mp4", [0.2])[0], 5, 0.2)


def test_a_name_that_looks_like_an_address_is_a_name(tmp_path: Path) -> None:
    folder = tmp_path / "http:"
    folder.mkdir()
    path = clips.write_clip(folder / "x?y=%20#z.mp4", clips.CLIPS["constant rate"])
    assert_shows(answers_to(str(path), [0.2])[0], 5, 0.2)
