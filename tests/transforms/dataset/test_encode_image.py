import hashlib
import io

import numpy as np
import pytest
from PIL import Image

from eqforge.core.errors import InputError
from eqforge.schemas.records.frames import FrameSettings
from eqforge.transforms.dataset.media import encode_image
from tests import clips

PIXELS = clips.draw(77, (320, 180))


def read(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def test_png_keeps_every_pixel() -> None:
    encoded = encode_image(PIXELS, FrameSettings(image_format="png"))
    assert encoded.suffix == ".png"
    assert np.array_equal(np.asarray(read(encoded.data)), PIXELS)


def test_jpeg_of_quality_95_is_the_default_and_close() -> None:
    encoded = encode_image(PIXELS, FrameSettings())
    image = read(encoded.data)
    assert encoded.suffix == ".jpg"
    assert image.format == "JPEG"
    assert (encoded.width_px, encoded.height_px) == image.size == (320, 180)
    assert np.abs(np.asarray(image).astype(int) - PIXELS).mean() < 3
    assert encoded == encode_image(PIXELS, FrameSettings(jpeg_quality=95))
    assert len(encode_image(PIXELS, FrameSettings(jpeg_quality=50)).data) < len(encoded.data)


@pytest.mark.parametrize("image_format", ["jpeg", "png"])
def test_equal_pixels_give_equal_bytes(image_format: str) -> None:
    settings = FrameSettings(image_format=image_format)  # type: ignore[arg-type]
    first = encode_image(PIXELS, settings)
    again = encode_image(PIXELS.copy(), settings)
    assert hashlib.sha256(first.data).digest() == hashlib.sha256(again.data).digest()
    assert not {"exif", "icc_profile", "comment"} & set(read(first.data).info)


@pytest.mark.parametrize(
    ("max_side", "size"),
    [(160, (160, 90)), (100, (100, 56)), (320, (320, 180)), (4000, (320, 180)), (1, (1, 1))],
)
def test_the_longest_side_shrinks_to_the_limit_and_never_grows(
    max_side: int, size: tuple[int, int]
) -> None:
    settings = FrameSettings(image_format="png", max_side=max_side)
    for pixels, expected in ((PIXELS, size), (PIXELS.transpose(1, 0, 2).copy(), size[::-1])):
        encoded = encode_image(pixels, settings)
        assert (encoded.width_px, encoded.height_px) == read(encoded.data).size == expected


def test_shrinking_averages_rather_than_drops_pixels() -> None:
    stripes = np.zeros((64, 64, 3), dtype=np.uint8)
    stripes[:, ::2] = 255
    small = np.asarray(
        read(encode_image(stripes, FrameSettings(image_format="png", max_side=16)).data)
    )
    assert np.abs(small[4:-4, 4:-4].astype(int) - 127).max() <= 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"jpeg_quality": 0},
        {"jpeg_quality": 96},
        {"max_side": 0},
        {"end_tolerance_s": -0.1},
        {"end_tolerance_s": float("nan")},
        {"end_tolerance_s": float("inf")},
        {"max_pixels": 0},
    ],
)
def test_settings_out_of_range_are_refused_by_name(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong)).replace("_", "-")):
        FrameSettings(**wrong)  # type: ignore[arg-type]
