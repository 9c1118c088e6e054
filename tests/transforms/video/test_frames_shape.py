"""The shape of stored pixels, and interlaced lines: against the drawing, and FFmpeg's own graph."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest
from av.filter import Graph

from eqforge.pipelines import eq_video
from eqforge.schemas.dataset.manifest import load_manifest
from eqforge.schemas.records.frames import FrameSettings
from eqforge.transforms.video.frames.answers import Answer, DecodedFrame
from eqforge.transforms.video.frames.decode import decode_frames
from tests.builds import reasons, rows

Picture = npt.NDArray[np.uint8]
PAL, WIDE, NARROW = (720, 576), Fraction(64, 45), Fraction(16, 15)
B_FRAMES = {"bf": "2", "preset": "ultrafast"}
FIELDS = {"flags": "+ildct+ilme", "x264-params": "tff=1", "preset": "ultrafast"}


def disc(n: int, pixel_aspect: Fraction = WIDE, step: int = 0) -> Picture:
    """Draw a disc of 300 lines that is round where it is shown; the later field is `step` on."""
    y, x = np.mgrid[: PAL[1], : PAL[0]]
    centre = 250 + 12 * n + step * (y % 2)
    near = ((x - centre) * float(pixel_aspect)) ** 2 + (y - 288) ** 2 < 150**2
    return np.where(near, 220, 40).astype(np.uint8)[:, :, None].repeat(3, axis=2)


def write(
    path: Path,
    pictures: list[Picture],
    codec: str = "libx264",
    pixel_aspect: Fraction | None = WIDE,
    options: dict[str, str] = B_FRAMES,
    rotation_deg: int = 0,
) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25, options=options)
        assert isinstance(stream, av.VideoStream)
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = "rgb8" if codec == "gif" else "yuv420p"
        stream.codec_context.thread_count = 1
        if pixel_aspect is not None:
            stream.codec_context.sample_aspect_ratio = pixel_aspect
        if rotation_deg:
            stream.set_display_rotation(rotation_deg)
        for n, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts = n
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def frames_of(path: Path, times: list[float], **settings: object) -> list[DecodedFrame]:
    answers: list[Answer] = list(decode_frames(str(path), times, FrameSettings(**settings)))  # type: ignore[arg-type]
    found = [answer for answer in answers if isinstance(answer, DecodedFrame)]
    assert len(found) == len(times), answers
    return sorted(found, key=lambda frame: frame.request)


def extent(pixels: Picture) -> Picture:
    """Return width and height of what is bright."""
    bright = pixels[:, :, 1] > 130
    return np.array([bright.any(axis=0).sum(), bright.any(axis=1).sum()])


def is_round(pixels: Picture, diameter: int) -> bool:
    return bool(np.abs(extent(pixels).astype(int) - diameter).max() <= 3)


def combing(pixels: Picture) -> float:
    """Return how much more neighbouring lines differ than lines of one field, on average."""
    luma = pixels[:, :, 1].astype(float)
    return float(np.abs(luma[1:-1] - luma[:-2]).mean() - np.abs(luma[2:] - luma[:-2]).mean())


@pytest.mark.parametrize(
    ("codec", "suffix"),
    [
        *((("libx264", end)) for end in ("mp4", "mkv", "ts", "avi", "h264")),
        *((("mpeg2video", end)) for end in ("mpg", "ts")),
        *((("mpeg4", end)) for end in ("mp4", "avi")),
    ],
)
def test_a_disc_on_wide_pixels_comes_out_round(tmp_path: Path, codec: str, suffix: str) -> None:
    path = write(tmp_path / f"pal.{suffix}", [disc(n) for n in range(6)], codec)
    for frame in frames_of(path, [0.0, 0.1, 0.2]):
        assert frame.pixels.shape == (576, 1024, 3)
        assert is_round(frame.pixels, 299)
        assert (frame.pixel_aspect, frame.is_deinterlaced) == (WIDE, False)
    (stored,) = frames_of(path, [0.1], stored_pixels=True)
    assert stored.pixels.shape == (576, 720, 3)
    assert extent(stored.pixels)[0] == pytest.approx(299 * 45 / 64, abs=3)


def test_tall_pixels_enlarge_the_height(tmp_path: Path) -> None:
    path = write(tmp_path / "tall.mp4", [disc(0, Fraction(8, 9))], pixel_aspect=Fraction(8, 9))
    (frame,) = frames_of(path, [0.0])
    assert frame.pixels.shape == (648, 720, 3)
    assert is_round(frame.pixels, 337)


@pytest.mark.parametrize(("rotation_deg", "shape"), [(90, (1024, 576, 3)), (180, (576, 1024, 3))])
def test_pixels_become_square_before_the_picture_is_turned(
    tmp_path: Path, rotation_deg: int, shape: tuple[int, ...]
) -> None:
    path = write(tmp_path / "turned.mp4", [disc(0)], rotation_deg=rotation_deg)
    (frame,) = frames_of(path, [0.0])
    assert frame.pixels.shape == shape
    assert is_round(frame.pixels, 299)


def test_each_frame_has_the_shape_that_the_stream_has_there(tmp_path: Path) -> None:
    """As broadcasts have it that go from 16:9 to 4:3; B-frames come out after the change."""
    parts = [
        write(tmp_path / f"{n}.ts", [disc(k, aspect) for k in range(6)], pixel_aspect=aspect)
        for n, aspect in enumerate((WIDE, NARROW, Fraction(1)))
    ]
    whole = tmp_path / "whole.ts"
    with av.open(str(whole), "w") as joined:
        stream = None
        for n, part in enumerate(parts):
            with av.open(str(part)) as container:
                source = container.streams.video[0]
                stream = stream or joined.add_stream_from_template(source)
                for packet in container.demux(source):
                    if packet.size and packet.pts is not None and packet.dts is not None:
                        packet.pts, packet.dts = (
                            t + n * 6 * 3600 for t in (packet.pts, packet.dts)
                        )
                        packet.stream = stream
                        joined.mux(packet)
    frames = frames_of(whole, [0.01 + n * 0.04 for n in range(18)])
    assert [frame.pixels.shape[1] for frame in frames] == [1024] * 6 + [768] * 6 + [720] * 6
    assert [frame.pixel_aspect for frame in frames] == [WIDE] * 6 + [NARROW] * 6 + [1] * 6


def test_an_absurd_shape_is_a_fault_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "absurd.mp4", [disc(0)], pixel_aspect=Fraction(100, 1))
    assert frames_of(path, [0.0])[0].pixels.shape == (576, 720, 3)


def test_more_pixels_than_the_limit_are_refused_where_scaling_makes_them(tmp_path: Path) -> None:
    path = write(tmp_path / "pal.mp4", [disc(0)])
    (answer,) = decode_frames(str(path), [0.0], FrameSettings(max_pixels=720 * 576))
    assert not isinstance(answer, DecodedFrame)
    assert (answer.reason, answer.detail) == ("too_many_pixels", "1024 x 576, at most 414720")


@pytest.mark.parametrize(
    ("codec", "suffix"), [("libx264", "mp4"), ("libx264", "ts"), ("mpeg2video", "mpg")]
)
def test_two_fields_are_joined_as_ffmpeg_joins_them(
    tmp_path: Path, codec: str, suffix: str
) -> None:
    pictures = [disc(n, step=6) for n in range(6)]
    path = write(tmp_path / f"fields.{suffix}", pictures, codec, None, FIELDS)
    times = [0.01 + 0.04 * n for n in range(6)]
    stored = frames_of(path, times, stored_pixels=True)
    joined = frames_of(path, times)

    assert all(combing(frame.pixels) > 0.8 for frame in stored)
    assert not any(frame.is_deinterlaced for frame in stored)
    assert all(combing(frame.pixels) < 0 for frame in joined)
    assert all(frame.is_deinterlaced for frame in joined)
    with av.open(str(path)) as container:
        graph = Graph()
        source = graph.add_buffer(template=container.streams.video[0])
        graph.link_nodes(source, graph.add("bwdif", "mode=send_frame"), graph.add("buffersink"))
        graph.configure()
        for read in [*container.decode(video=0), None]:
            graph.push(read)
        whole = [graph.vpull() for _ in times]
    for ours, theirs in zip(joined, whole, strict=True):
        difference = ours.pixels[:, :, 1].astype(int) - theirs.to_ndarray(format="gbrp")[:, :, 1]
        assert np.abs(difference).max() <= 4  # FFmpeg truncates where RGB is made


def test_colours_of_a_still_scene_survive_the_filter(tmp_path: Path) -> None:
    """Full range and BT.709: a filter that forgets them would make other colours."""
    y, x = np.mgrid[:96, :160]
    scene = np.stack([x, y * 2, 255 - x], axis=2).astype(np.uint8)
    path = tmp_path / "still.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={**FIELDS, "qp": "0"})
        stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv444p"
        stream.codec_context.colorspace, stream.codec_context.color_range = 1, 2
        for n in range(3):
            shown = av.VideoFrame.from_ndarray(scene, format="rgb24")
            coded = shown.reformat(format="yuv444p", dst_colorspace=1, dst_color_range=2)
            coded.pts = n
            container.mux(stream.encode(coded))
        container.mux(stream.encode(None))
    for frame in frames_of(path, [0.0, 0.05, 0.1]):
        assert frame.is_deinterlaced
        assert np.abs(frame.pixels[2:-2].astype(int) - scene[2:-2]).max() <= 4


def test_moving_pictures_without_a_shape_and_stills_stay_as_they_are(tmp_path: Path) -> None:
    first, second = disc(0, Fraction(1)), disc(8, Fraction(1))
    moving = write(tmp_path / "moving.gif", [first, second], "gif", None, {})
    still = write(tmp_path / "still.mp4", [first], pixel_aspect=None)
    for path, shown in ((moving, [first, second]), (still, [first])):
        frames = frames_of(path, [0.01 + 0.04 * n for n in range(len(shown))])
        for frame, drawn in zip(frames, shown, strict=True):
            assert frame.pixels.shape == drawn.shape
            assert np.mean((frame.pixels > 130) == (drawn > 130)) > 0.995
            assert not frame.is_deinterlaced


def test_rows_and_manifest_say_what_was_done(tmp_path: Path) -> None:
    """A clip of either kind and one of neither, in both modes."""
    videos = tmp_path / "videos"
    videos.mkdir()
    write(videos / "wide.mp4", [disc(n) for n in range(6)])
    write(
        videos / "fields.ts", [disc(n, Fraction(1), 6) for n in range(6)], "libx264", None, FIELDS
    )
    write(videos / "square.mp4", [disc(n, Fraction(1)) for n in range(6)], pixel_aspect=None)
    captions = tmp_path / "captions.jsonl"
    captions.write_text(
        "".join(
            json.dumps({"video": name, "timestamp_s": at, "caption": f"a disc at {at}"}) + "\n"
            for name in ("wide.mp4", "fields.ts", "square.mp4")
            for at in (0.05, 0.18)
        )
    )
    found: dict[str, Any] = {}
    for mode in ("corrected", "paper"):
        output = tmp_path / mode
        arguments = ["--captions", captions, "--videos", videos, "--output", output, "--mode", mode]
        limits = ["--min-minimality", "None"]
        assert eq_video.main([*map(str, arguments), "--face-policy", "off", *limits]) == 0
        assert reasons(output, "frames") == {}
        encoded = {
            row["source_id"]: json.loads(row["origin_0"]["parameters"])
            for row in rows(output, "samples")
        }
        sizes = {(row["width_px"], row["height_px"]) for row in rows(output, "images")}
        settings = load_manifest(str(output)).config["settings"]["frames"]["stored_pixels"]
        found[mode] = (
            {
                name: [each.get("pixel_aspect"), each.get("deinterlaced")]
                for name, each in encoded.items()
            },
            sizes,
            settings,
        )
    assert found["corrected"] == (
        {"wide.mp4": ["64:45", None], "fields.ts": [None, "bwdif"], "square.mp4": [None, None]},
        {(1024, 576), (720, 576)},
        False,
    )
    nothing = {name: [None, None] for name in found["corrected"][0]}
    assert found["paper"] == (nothing, {(720, 576)}, True)
