"""Colour and orientation of the pixels, against the definitions written out in NumPy."""

from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest
from av.video.reformatter import VideoReformatter

from eqforge.schemas.records.frames import FrameSettings
from eqforge.transforms.video.frames.answers import DecodedFrame, upright_rgb
from eqforge.transforms.video.frames.decode import decode_frames
from tests import clips

BT709, BT470BG, UNSPECIFIED, BT2020 = 1, 5, 2, 9
LIMITED, FULL = 1, 2
LUMA = {BT709: (0.2126, 0.0722), BT470BG: (0.299, 0.114), BT2020: (0.2627, 0.0593)}

Planes = tuple[npt.NDArray[np.floating], ...]


def smooth_planes(height: int, width: int, seed: int) -> Planes:
    """Returns planes Y, U, V of waves within the limited range, as whole numbers."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]

    def wave(low: float, high: float) -> npt.NDArray[np.floating]:
        a, b, phase = *rng.uniform(0.01, 0.1, 2), rng.uniform(0, 6)
        return np.round(low + (high - low) * (0.5 + 0.5 * np.sin(a * x + b * y + phase)))

    return wave(40, 210), wave(100, 150), wave(100, 150)


def to_rgb(planes: Planes, matrix: int, color_range: int) -> npt.NDArray[np.floating]:
    """Returns R, G, B in [0, 255] by the equations of ITU-R BT.601, 709 and 2020."""
    red, blue = LUMA[matrix]
    luma, u, v = planes
    if color_range == FULL:
        luma, u, v = luma / 255, (u - 128) / 255, (v - 128) / 255
    else:
        luma, u, v = (luma - 16) / 219, (u - 128) / 224, (v - 128) / 224
    r, b = luma + 2 * (1 - red) * v, luma + 2 * (1 - blue) * u
    g = (luma - red * r - blue * b) / (1 - red - blue)
    return np.clip(np.stack([r, g, b], axis=-1) * 255, 0, 255)


def halve(plane: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Returns every second sample of a plane, in both directions."""
    return plane[::2, ::2]


def double(plane: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Interpolates a halved plane linearly; samples lie on even columns, between two rows."""
    height, width = plane.shape
    x = np.minimum(np.arange(2 * width) / 2, width - 1)
    y = np.clip(np.arange(2 * height) / 2 - 0.25, 0, height - 1)
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    right, bottom = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    across = plane[:, left] * (1 - (x - left)) + plane[:, right] * (x - left)
    weight = (y - top)[:, None]
    return across[top] * (1 - weight) + across[bottom] * weight


def frame_of(planes: Planes, pix_fmt: str, dtype: type) -> av.VideoFrame:
    height, width = planes[0].shape
    frame = av.VideoFrame(width, height, pix_fmt)
    for target, source in zip(frame.planes, planes, strict=True):
        width_of_row = target.line_size // np.dtype(dtype).itemsize
        rows: npt.NDArray[Any] = np.zeros((target.height, width_of_row), dtype)
        rows[:, : target.width] = source
        target.update(rows.tobytes())
    return frame


def converted(frame: av.VideoFrame, matrix: int, color_range: int) -> npt.NDArray[np.integer]:
    frame.colorspace, frame.color_range = matrix, color_range
    return upright_rgb(frame, VideoReformatter()).astype(int)


@pytest.mark.parametrize("color_range", [LIMITED, FULL])
@pytest.mark.parametrize("matrix", [BT709, BT470BG, BT2020])
def test_matrix_and_range_are_honoured(matrix: int, color_range: int) -> None:
    planes = smooth_planes(90, 161, seed=matrix)
    pixels = converted(frame_of(planes, "yuv444p", np.uint8), matrix, color_range)
    error = pixels - to_rgb(planes, matrix, color_range)
    assert np.abs(error).max() <= 1
    assert abs(error.mean()) < 0.05


@pytest.mark.parametrize("color_range", [LIMITED, FULL])
@pytest.mark.parametrize("matrix", [BT709, BT470BG])
def test_chroma_at_half_the_resolution_is_interpolated(
    tmp_path: Path, matrix: int, color_range: int
) -> None:
    luma, u, v = smooth_planes(90, 160, seed=3)
    planes = (luma, halve(u), halve(v))
    path = tmp_path / "lossless.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"qp": "0"})
        stream.width, stream.height, stream.pix_fmt = 160, 90, "yuv420p"
        stream.codec_context.colorspace, stream.codec_context.color_range = matrix, color_range
        frame = frame_of(planes, "yuv420p", np.uint8)
        frame.colorspace, frame.color_range = matrix, color_range
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    (answer,) = decode_frames(str(path), [0.0], FrameSettings())
    assert isinstance(answer, DecodedFrame)
    error = answer.pixels - to_rgb(
        (luma, double(planes[1]), double(planes[2])), matrix, color_range
    )
    assert np.abs(error[4:-4, 4:-4]).max() <= 1
    assert abs(error.mean()) < 0.05


def test_ten_bits_are_rounded_to_eight() -> None:
    planes = smooth_planes(90, 160, seed=4)
    frame = frame_of(tuple(4 * plane for plane in planes), "yuv444p10le", np.uint16)
    error = converted(frame, BT709, LIMITED) - to_rgb(planes, BT709, LIMITED)
    assert np.abs(error).max() <= 1


def test_a_stream_without_a_matrix_is_taken_for_bt601() -> None:
    planes = smooth_planes(90, 160, seed=5)
    pixels = converted(frame_of(planes, "yuv444p", np.uint8), UNSPECIFIED, 0)
    assert np.abs(pixels - to_rgb(planes, BT470BG, LIMITED)).max() <= 1


def test_the_old_jpeg_formats_are_full_range() -> None:
    planes = smooth_planes(90, 160, seed=6)
    pixels = converted(frame_of(planes, "yuvj444p", np.uint8), BT470BG, 0)
    assert np.abs(pixels - to_rgb(planes, BT470BG, FULL)).max() <= 1


@pytest.mark.parametrize("pix_fmt", ["rgb24", "bgr24", "bgra", "gbrp"])
def test_rgb_stays_as_it_is(pix_fmt: str) -> None:
    rgb = clips.draw(5, (161, 95))
    frame = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format=pix_fmt)
    assert np.array_equal(upright_rgb(frame, VideoReformatter()), rgb)


def test_grey_becomes_three_equal_channels() -> None:
    grey = clips.draw(5, (161, 95))[:, :, 0]
    frame = av.VideoFrame.from_ndarray(grey, format="gray")
    frame.color_range = FULL
    pixels = upright_rgb(frame, VideoReformatter())
    assert np.array_equal(pixels, np.repeat(grey[:, :, None], 3, axis=2))


def test_pixels_are_contiguous_and_cannot_be_written_to() -> None:
    frame = av.VideoFrame.from_ndarray(clips.draw(5, (161, 95)), format="rgb24")
    pixels = upright_rgb(frame, VideoReformatter())
    assert pixels.flags.c_contiguous
    assert pixels.dtype == np.uint8
    with pytest.raises(ValueError, match="read-only"):
        pixels[0, 0, 0] = 1


def shown(coded: npt.NDArray[np.uint8], matrix: tuple[int, int, int, int]) -> list[list[int]]:
    a, b, c, d = matrix
    places = {
        (a * x + c * y, b * x + d * y): int(coded[y, x])
        for y in range(coded.shape[0])
        for x in range(coded.shape[1])
    }
    left, top = min(x for x, _ in places), min(y for _, y in places)
    width = max(x for x, _ in places) - left + 1
    height = max(y for _, y in places) - top + 1
    return [[places[x + left, y + top] for x in range(width)] for y in range(height)]


@pytest.mark.parametrize(
    ("matrix", "clockwise_deg"),
    [
        ((1, 0, 0, 1), 0),
        ((0, 1, -1, 0), 90),
        ((-1, 0, 0, -1), 180),
        ((0, -1, 1, 0), 270),
        ((-1, 0, 0, 1), None),
        ((1, 0, 0, -1), None),
        ((0, 1, 1, 0), None),
        ((0, -1, -1, 0), None),
    ],
)
def test_turns_and_mirrors_follow_the_display_matrix(
    tmp_path: Path, matrix: tuple[int, int, int, int], clockwise_deg: int | None
) -> None:
    coded = np.arange(16 * 32, dtype=np.uint8).reshape(16, 32) // 2
    path = tmp_path / "clip.mov"
    a, b, c, d = (value << 16 for value in matrix)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("png", rate=25)
        stream.height, stream.width = coded.shape
        stream.pix_fmt = "gray"
        stream.set_display_matrix([a, b, 0, c, d, 0, 0, 0, 1 << 30])
        container.mux(stream.encode(av.VideoFrame.from_ndarray(coded, format="gray")))
        container.mux(stream.encode(None))
    (answer,) = decode_frames(str(path), [0.0], FrameSettings())
    assert isinstance(answer, DecodedFrame)
    assert answer.pixels[:, :, 1].tolist() == shown(coded, matrix)
    if clockwise_deg is not None:
        assert answer.rotation_deg == clockwise_deg


def test_the_nearest_quarter_turn_is_taken(tmp_path: Path) -> None:
    clip = clips.CLIPS["constant rate"]
    path = tmp_path / "clip.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height = clip.size
        stream.set_display_rotation(80)
        frame = av.VideoFrame.from_ndarray(clips.draw(1, clip.size), format="rgb24")
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    (answer,) = decode_frames(str(path), [0.0], FrameSettings())
    assert isinstance(answer, DecodedFrame)
    assert (answer.rotation_deg, answer.pixels.shape[:2]) == (270, clip.size)
