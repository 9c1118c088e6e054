"""The shape of stored pixels, and interlaced lines: against the drawing, and FFmpeg's own graph."""

import json
import shlex
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest
from av.filter import Graph
from av.stream import Disposition
from PIL import Image

from eqforge.pipelines import eq_video
from eqforge.schemas.dataset.manifest import load_manifest
from eqforge.schemas.records.frames import FrameSettings
from eqforge.transforms.video.frames import video
from eqforge.transforms.video.frames.answers import Answer, DecodedFrame
from eqforge.transforms.video.frames.decode import decode_frames
from tests.builds import reasons, rows
from tests.clips import draw, read_number

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


def nits_as_pq(nits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Inverse of SMPTE ST 2084, equation 4.1, in [0, 1]."""
    power = (nits / 10_000) ** (2610 / 16384)
    top, bottom = 3424 / 4096 + 2413 / 128 * power, 1 + 2392 / 128 * power
    return (top / bottom) ** (2523 / 32)


def write_hdr(path: Path, signal: npt.NDArray[np.float64], transfer: int, step_px: int = 0) -> Path:
    """Write grey patches of 32 pixels in 10 bits, BT.2020; they move by `step_px` a frame."""
    name = {1: "bt709", 16: "smpte2084", 18: "arib-std-b67"}[transfer]
    luma = np.rint(64 + np.repeat(signal, 32) * 876).astype(np.uint16)
    with av.open(str(path), "w") as container:
        tags = f"log-level=none:colorprim=bt2020:transfer={name}:colormatrix=bt2020nc:range=limited"
        stream = container.add_stream("libx265", rate=25, options={"x265-params": tags})
        stream.width, stream.height, stream.pix_fmt = len(luma), 64, "yuv420p10le"
        for n in range(3):
            frame = av.VideoFrame(len(luma), 64, "yuv420p10le")
            for plane, row in zip(
                frame.planes, (luma, *[np.full(len(luma) // 2, 512)] * 2), strict=True
            ):
                line = np.zeros(plane.line_size // 2, dtype=np.uint16)
                line[: len(row)] = np.roll(row, n * step_px)
                plane.update(line.tobytes() * plane.height)
            frame.pts = n
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def patches(frame: DecodedFrame) -> Picture:
    assert np.ptp(frame.pixels[32, 16::32].astype(int), axis=1).max() <= 1  # grey stays grey
    return frame.pixels[32, 16::32, 1]


def test_high_dynamic_range_is_mapped_to_what_screens_show(tmp_path: Path) -> None:
    """Diffuse white is 203 cd/m2 in PQ and 75% of the signal in HLG (ITU-R BT.2408, table 1)."""
    nits = np.array([0, 1, 5, 20, 50, 100, 203, 400, 1000], dtype=float)
    pq = write_hdr(tmp_path / "pq.mp4", nits_as_pq(nits), 16)
    hlg = write_hdr(tmp_path / "hlg.mp4", np.array([0, 0.2, 0.38, 0.5, 0.75, 1.0]), 18)
    plain = write_hdr(tmp_path / "plain.mp4", np.array([0, 0.5, 1.0]), 1)

    (mapped, again), (stored,) = (
        frames_of(pq, [0.01, 0.05]),
        frames_of(pq, [0.01], stored_pixels=True),
    )

    assert (mapped.tone_mapped, stored.tone_mapped) == ("pq", "")
    shown, flat = patches(mapped).astype(int), patches(stored).astype(int)
    np.testing.assert_array_equal(mapped.pixels, again.pixels)
    assert (np.diff(shown) > 0).all()
    # Dark patches get darker than the codes, white gets brighter than a signal of 58 % seems.
    assert flat[1] > shown[1] + 10
    assert flat[6] < 150 < shown[6]
    # Shadows follow BT.709's own curve for their light relative to diffuse white.
    light = nits[:4] / 203
    curve = np.where(light < 0.018, 4.5 * light, 1.099 * light**0.45 - 0.099) * 255
    assert np.abs(shown[:4] - curve).max() < 30
    (frame,) = frames_of(hlg, [0.01])
    assert frame.tone_mapped == "hlg"
    assert (np.diff(patches(frame).astype(int)) > 0).all()
    (frame,) = frames_of(plain, [0.01])
    assert frame.tone_mapped == ""
    assert np.abs(patches(frame).astype(int) - [0, 128, 255]).max() <= 1


@pytest.mark.parametrize("b_frames", ["0", "2"])
def test_an_edit_list_cuts_frames_off_the_start(tmp_path: Path, b_frames: str) -> None:
    path = tmp_path / "cut.mp4"
    options = {"avoid_negative_ts": "disabled", "use_editlist": "1"}
    with av.open(str(path), "w", options=options) as container:
        encoder = {"bf": b_frames, "preset": "ultrafast", "g": "5"}
        stream = container.add_stream("libx264", rate=10, options=encoder)
        stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv420p"
        drawn = [av.VideoFrame.from_ndarray(draw(n, (160, 96)), format="rgb24") for n in range(12)]
        for n, frame in enumerate(drawn):
            frame.pts, frame.time_base = n, Fraction(1, 10)
        for frame_or_end in (*drawn, None):
            for packet in stream.encode(frame_or_end):
                assert packet.pts is not None
                assert packet.dts is not None
                packet.pts, packet.dts = packet.pts - 4, packet.dts - 4
                container.mux(packet)
    frames = frames_of(path, [0.0, 0.35, 0.75])
    assert [(frame.frame_index, read_number(frame.pixels)) for frame in frames] == [
        (0, 4), (3, 7), (7, 11),
    ]  # fmt: skip


def scenes() -> list[Image.Image]:
    return [Image.fromarray(disc(n, Fraction(1))[::8, ::8]) for n in (0, 8, 16)]


@pytest.mark.parametrize("name", ["moving.gif", "moving.png", "moving.webp"])
def test_animations_are_videos_with_their_own_delays(tmp_path: Path, name: str) -> None:
    first, *rest = scenes()
    first.save(tmp_path / name, save_all=True, append_images=rest, duration=[500, 200, 300])
    for frame, drawn in zip(frames_of(tmp_path / name, [0.4, 0.6, 0.9]), scenes(), strict=True):
        assert np.mean((frame.pixels > 130) == (np.asarray(drawn) > 130)) > 0.995


@pytest.mark.parametrize(
    ("name", "kind"), [("still.webp", "WebP"), ("still.png", "PNG"), ("still.jpg", "JPEG")]
)
def test_images_are_no_videos(tmp_path: Path, name: str, kind: str) -> None:
    scenes()[0].save(tmp_path / name)
    (answer,) = decode_frames(str(tmp_path / name), [0.0], FrameSettings())
    assert not isinstance(answer, DecodedFrame)
    assert (answer.reason, answer.detail) == (
        "video_unreadable",
        f"a {kind} image, not a video",
    )


def animated_webp(path: Path) -> None:
    first, *rest = scenes()
    durations = [500, 200, 300]
    first.save(path, save_all=True, append_images=rest, duration=durations, lossless=True)


def test_lossless_animated_webp_keeps_its_colours_and_times(tmp_path: Path) -> None:
    animated_webp(tmp_path / "clip.webp")
    frames = frames_of(tmp_path / "clip.webp", [0.0, 0.49, 0.51, 0.69, 0.71, 0.99])
    assert [frame.frame_index for frame in frames] == [0, 0, 1, 1, 2, 2]
    for frame, drawn in zip(frames[::2], scenes(), strict=True):
        np.testing.assert_array_equal(frame.pixels, np.asarray(drawn))


def test_animated_webp_that_is_cut_off_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "clip.webp"
    animated_webp(path)
    path.write_bytes(path.read_bytes()[:-300])
    (answer,) = decode_frames(str(path), [0.0], FrameSettings())
    assert not isinstance(answer, DecodedFrame)
    assert answer.reason == "video_unreadable"


def test_large_animated_webp_is_rejected_with_a_command_that_converts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(video, "MAX_WEBP_PIXELS", 1000)
    animated_webp(tmp_path / "clip.webp")
    (answer,) = decode_frames(str(tmp_path / "clip.webp"), [0.0], FrameSettings())
    assert not isinstance(answer, DecodedFrame)
    assert answer.reason == "too_many_pixels"

    python, *words = shlex.split(answer.detail.partition("run: ")[2])
    assert python == "python"
    subprocess.run([sys.executable, *words], cwd=tmp_path, check=True)
    for frame, drawn in zip(
        frames_of(tmp_path / "clip.apng", [0.4, 0.6, 0.9]), scenes(), strict=True
    ):
        np.testing.assert_array_equal(frame.pixels, np.asarray(drawn))


def test_a_still_shown_for_long_is_one_frame(tmp_path: Path) -> None:
    path = tmp_path / "still.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=1)
        stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv420p"
        for start in (0, 60):
            frame = av.VideoFrame.from_ndarray(draw(start, (160, 96)), format="rgb24")
            frame.pts, frame.time_base = start, Fraction(1)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    frames = frames_of(path, [0.0, 59.9, 60.5])
    assert [(frame.frame_index, read_number(frame.pixels)) for frame in frames] == [
        (0, 0), (0, 0), (1, 60),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("codec", "suffix", "pix_fmt"),
    [("qtrle", "mov", "argb"), ("prores_ks", "mov", "yuva444p10le"), ("ffv1", "mkv", "bgra")],
)
def test_transparency_is_ignored(tmp_path: Path, codec: str, suffix: str, pix_fmt: str) -> None:
    path, scene = tmp_path / f"alpha.{suffix}", np.asarray(scenes()[0])
    alpha = np.tile(np.linspace(0, 255, scene.shape[1]).astype(np.uint8), (scene.shape[0], 1))
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25)
        assert isinstance(stream, av.VideoStream)
        stream.height, stream.width, stream.pix_fmt = *scene.shape[:2], pix_fmt
        frame = av.VideoFrame.from_ndarray(np.dstack([scene, alpha]), format="rgba")
        coded = frame.reformat(format=pix_fmt)
        coded.pts = 0
        container.mux(stream.encode(coded))
        container.mux(stream.encode(None))
    (found,) = frames_of(path, [0.0])
    assert np.abs(found.pixels.astype(int) - scene).max() <= 12


def test_the_stream_used_of_several_is_named(tmp_path: Path) -> None:
    path = tmp_path / "two.mkv"
    with av.open(str(path), "w") as container:
        streams = [container.add_stream("ffv1", rate=25) for _ in range(2)]
        for stream, side, disposition in zip(streams, (64, 128), (0, 1), strict=True):
            stream.width = stream.height = side
            stream.disposition = Disposition(disposition)
        for stream in streams:
            frame = av.VideoFrame(stream.width, stream.height, "rgb24")
            frame.pts, frame.time_base = 0, Fraction(1, 25)
            container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
    (frame_of_two,) = frames_of(path, [0.0])
    assert (frame_of_two.pixels.shape, frame_of_two.video_stream) == ((128, 128, 3), "1")
    assert frames_of(path, [0.0], stored_pixels=True)[0].video_stream == ""
    alone = write(tmp_path / "one.mp4", [disc(0)])
    assert frames_of(alone, [0.0])[0].video_stream == ""


def test_rows_say_that_frames_are_tone_mapped_and_which_stream_they_show(tmp_path: Path) -> None:
    videos = tmp_path / "videos"
    videos.mkdir()
    write_hdr(videos / "hdr.mp4", np.linspace(0.1, 0.6, 8), 16, step_px=40)
    with av.open(str(videos / "two.mkv"), "w") as container:
        streams = [container.add_stream("ffv1", rate=25) for _ in range(2)]
        for stream, disposition in zip(streams, (0, 1), strict=True):
            stream.width, stream.height, stream.pix_fmt = 128, 96, "bgr0"
            stream.disposition = Disposition(disposition)
        for n in range(3):
            for stream in streams:
                drawn = np.full((96, 128, 3), 60 * n + 40, np.uint8)
                drawn[:, : 20 * n + 10] = (200, 30, 30)
                frame = av.VideoFrame.from_ndarray(drawn, format="rgb24").reformat(format="bgr0")
                frame.pts, frame.time_base = n, Fraction(1, 25)
                container.mux(stream.encode(frame))
        for stream in streams:
            container.mux(stream.encode(None))
    captions = tmp_path / "captions.jsonl"
    lines = [
        {"video": clip, "frame": n, "caption": f"picture {n}"}
        for clip in ("hdr.mp4", "two.mkv")
        for n in (0, 2)
    ]
    captions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    limits = ["--mode", "paper", "--face-policy", "off", "--no-stored-pixels"]
    inputs = ["--captions", str(captions), "--videos", str(videos)]

    assert eq_video.main([*inputs, *limits, "--output", str(tmp_path / "out")]) == 0

    marks = set()
    for row in rows(tmp_path / "out", "samples"):
        for side in (0, 1):
            made = json.loads(row[f"origin_{side}"]["parameters"])
            named = made.get("tone_mapped", ""), made.get("video_stream", "")
            marks.add((row["source_id"], *named))
    assert marks == {("hdr.mp4", "pq", ""), ("two.mkv", "", "1")}
