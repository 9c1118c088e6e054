"""Damaged and unusable videos: what can be had is right, the rest has a reason."""

import collections
import random
from collections.abc import Sequence
from pathlib import Path

import av
import pytest

from eqforge.schemas.records.frames import FRAME_REASONS, FrameNumber, FrameSettings
from eqforge.transforms.video.frames.answers import DecodedFrame, UndecodedFrame
from eqforge.transforms.video.frames.decode import decode_frames
from eqforge.transforms.video.frames.video import is_idr
from tests import clips

SETTINGS = FrameSettings()
MIDDLES = [0.02 + 0.04 * number for number in range(48)]


def reasons(path: Path | str, times: Sequence[float] = (0.1,)) -> list[str | None]:
    """Returns the reason for each time, None where there is a frame."""
    answers = sorted(decode_frames(str(path), times, SETTINGS), key=lambda answer: answer.request)
    assert [answer.request for answer in answers] == list(range(len(times)))
    for answer in answers:
        if isinstance(answer, UndecodedFrame):
            assert answer.reason in FRAME_REASONS
            assert answer.detail
    return [getattr(answer, "reason", None) for answer in answers]


def assert_right(path: Path, times: Sequence[float]) -> collections.Counter[str]:
    """Checks that every frame shows the number due, and returns the counts of the reasons."""
    counts = collections.Counter[str]()
    for answer in decode_frames(str(path), times, SETTINGS):
        if isinstance(answer, DecodedFrame):
            number = round((times[answer.request] - 0.02) / 0.04)
            assert clips.read_number(answer.pixels) == answer.frame_index == number
        counts[getattr(answer, "reason", "right")] += 1
    return counts


def packets_of(path: Path) -> list[av.Packet]:
    with av.open(str(path)) as container:
        return [packet for packet in container.demux(video=0) if packet.size]


def spoil(path: Path, packet: av.Packet) -> None:
    """Overwrites a packet's data, but for what says how long it is."""
    assert packet.pos is not None
    data = bytearray(path.read_bytes())
    data[packet.pos + 5 : packet.pos + packet.size] = b"\xff" * (packet.size - 5)
    path.write_bytes(data)


def with_index_first(path: Path) -> Path:
    """Writes an MP4 again, its index before the frames, so that it may be cut off."""
    copy = path.with_name("first.mp4")
    with (
        av.open(str(path)) as source,
        av.open(str(copy), "w", options={"movflags": "faststart"}) as target,
    ):
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.size:
                packet.stream = stream
                target.mux(packet)
    return copy


@pytest.mark.parametrize(
    "content",
    [
        b"not a video at all, but a text of some length\n" * 100,
        b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n/etc/passwd\n#EXT-X-ENDLIST\n",
        b"ffconcat version 1.0\nfile /etc/passwd\n",
    ],
    ids=["text", "playlist", "list of files"],
)
def test_what_is_no_video_of_its_own_is_unreadable(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text.mp4"
    path.write_bytes(content)
    assert reasons(path) == ["video_unreadable"]


def test_a_folder_is_unreadable(tmp_path: Path) -> None:
    assert reasons(tmp_path) == ["video_unreadable"]


def test_an_mp4_without_its_index_is_unreadable(tmp_path: Path) -> None:
    path = clips.write_clip(tmp_path / "clip.mp4", clips.CLIPS["constant rate"])
    path.write_bytes(path.read_bytes()[:6000])
    assert reasons(path) == ["video_unreadable"]


def test_sound_alone_is_no_video(tmp_path: Path) -> None:
    path = tmp_path / "sound.mkv"
    with av.open(str(path), "w") as container:
        clips.write_silence(container, 500)
    assert reasons(path) == ["no_video_stream"]


def test_a_picture_over_the_limit_is_not_decoded(tmp_path: Path) -> None:
    path = clips.write_clip(tmp_path / "clip.mp4", clips.CLIPS["constant rate"])
    (answer,) = decode_frames(str(path), [0.1], FrameSettings(max_pixels=160 * 96 - 1))
    assert isinstance(answer, UndecodedFrame)
    assert answer.reason == "too_many_pixels"
    assert answer.detail == "160 x 96, at most 15359"
    (answer,) = decode_frames(str(path), [0.1], FrameSettings(max_pixels=160 * 96))
    assert isinstance(answer, DecodedFrame)


@pytest.mark.parametrize("name", ["constant rate", "HEVC with B-frames", "MP4, MPEG-4"])
def test_damage_costs_no_more_than_the_rest_of_its_group(tmp_path: Path, name: str) -> None:
    clip = clips.CLIPS[name]
    path = clips.write_clip(tmp_path / f"clip{clip.suffix}", clip)
    packets = packets_of(path)
    keys = [number for number, packet in enumerate(packets) if packet.is_keyframe]
    spoil(path, packets[keys[1] + 1])
    counts = assert_right(path, MIDDLES)
    lost = counts["undecodable"]
    assert 1 <= lost <= keys[2] - keys[1]
    assert counts["right"] == 48 - lost


def test_a_frame_nobody_refers_to_costs_nothing_but_itself(tmp_path: Path) -> None:
    path = clips.write_clip(tmp_path / "clip.mp4", clips.CLIPS["constant rate"])
    packets = packets_of(path)
    lengths = [int.from_bytes(bytes(packet)[:4], "big") for packet in packets]
    disposable = [
        packet
        for packet, length in zip(packets, lengths, strict=True)
        if length + 4 == packet.size and bytes(packet)[4] >> 5 & 3 == 0  # nal_ref_idc
    ]
    spoil(path, disposable[7])
    assert assert_right(path, MIDDLES) == {"right": 47, "undecodable": 1}


@pytest.mark.parametrize("seed", range(4))
def test_an_answer_does_not_depend_on_what_else_was_asked(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    name = ["constant rate", "HEVC with B-frames", "VP9", "MPEG-TS"][seed % 4]
    clip = clips.CLIPS[name]
    path = clips.write_clip(tmp_path / f"clip{clip.suffix}", clip)
    spoil(path, packets_of(path)[rng.randrange(12, 36)])
    every = {answer.request: answer for answer in decode_frames(str(path), MIDDLES, SETTINGS)}
    for number in rng.sample(range(48), 12):
        (alone,) = decode_frames(str(path), [MIDDLES[number]], SETTINGS)
        together = every[number]
        if isinstance(together, DecodedFrame):
            assert isinstance(alone, DecodedFrame)
            assert (alone.pixels == together.pixels).all()
            assert alone.frame_index == together.frame_index


@pytest.mark.parametrize("share", [0.35, 0.6, 0.95])
@pytest.mark.parametrize("name", ["constant rate", "one keyframe", "HEVC with B-frames"])
def test_of_an_mp4_cut_off_the_first_frames_are_right(
    tmp_path: Path, name: str, share: float
) -> None:
    path = with_index_first(clips.write_clip(tmp_path / "clip.mp4", clips.CLIPS[name]))
    data = path.read_bytes()
    frames = data.index(b"mdat")
    path.write_bytes(data[: frames + round((len(data) - frames) * share)])
    counts = assert_right(path, MIDDLES)
    assert set(counts) == {"right", "undecodable"}
    assert counts["right"] >= 1
    assert reasons(path, [100.0]) == ["after_last_frame"]


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("name", ["VP9", "starting at 1.5 s, Matroska", "FLV"])
def test_of_other_files_that_tell_their_length_too(tmp_path: Path, name: str, share: float) -> None:
    clip = clips.CLIPS[name]
    path = clips.write_clip(tmp_path / f"clip{clip.suffix}", clip)
    data = path.read_bytes()
    path.write_bytes(data[: round(len(data) * share)])
    counts = assert_right(path, MIDDLES)
    assert set(counts) == {"right", "undecodable"}


def test_a_transport_stream_cut_off_is_a_shorter_one(tmp_path: Path) -> None:
    path = clips.write_clip(tmp_path / "clip.ts", clips.CLIPS["MPEG-TS"])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    answers = list(decode_frames(str(path), MIDDLES, FrameSettings(end_tolerance_s=0)))
    counts = collections.Counter(getattr(answer, "reason", "right") for answer in answers)
    assert counts["right"] > 12
    assert counts["after_last_frame"] > 12
    for answer in answers:
        if isinstance(answer, DecodedFrame):
            assert clips.read_number(answer.pixels) == answer.request


def test_a_frame_that_is_cut_off_is_not_found_by_its_number_either(tmp_path: Path) -> None:
    path = with_index_first(clips.write_clip(tmp_path / "c.mp4", clips.CLIPS["constant rate"]))
    data = path.read_bytes()
    path.write_bytes(data[: round(len(data) * 0.8)])
    answers = {
        answer.request: answer
        for answer in decode_frames(str(path), [FrameNumber(3), FrameNumber(46)], SETTINGS)
    }
    assert isinstance(answers[0], DecodedFrame)
    assert isinstance(answers[1], UndecodedFrame)
    assert answers[1].reason == "undecodable"


@pytest.mark.parametrize("name", ["constant rate", "MPEG-TS"])
def test_the_keyframes_of_closed_groups_are_refreshes(tmp_path: Path, name: str) -> None:
    clip = clips.CLIPS[name]
    path = clips.write_clip(tmp_path / f"clip{clip.suffix}", clip)
    with av.open(str(path)) as container:
        record = container.streams.video[0].codec_context.extradata or b""
    for packet in packets_of(path):
        assert is_idr(bytes(packet), record) == packet.is_keyframe


def test_the_keyframes_of_open_groups_are_not(tmp_path: Path) -> None:
    path = clips.write_clip(tmp_path / "clip.mp4", clips.CLIPS["open GOP"])
    with av.open(str(path)) as container:
        record = container.streams.video[0].codec_context.extradata or b""
    packets = packets_of(path)
    keys = [number for number, packet in enumerate(packets) if packet.is_keyframe]
    assert len(keys) > 1
    refreshes = [n for n, packet in enumerate(packets) if is_idr(bytes(packet), record)]
    assert refreshes == [0]
