"""Encodes pixels as an image file."""

from __future__ import annotations

import dataclasses
import io
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from eqforge.schemas.records.frames import FrameSettings

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class EncodedImage:
    """An image file in memory.

    Attributes:
      data: the bytes of the file.
      suffix: ".jpg" or ".png".
      width_px: its width in pixels.
      height_px: its height in pixels.
    """

    data: bytes
    suffix: str
    width_px: int
    height_px: int


def encode_image(pixels: npt.NDArray[np.uint8], settings: FrameSettings) -> EncodedImage:
    """Encode pixels, scaled down first if the longer side exceeds the limit.

    The same pixels and settings give the same bytes with the same Pillow: no date, program name or
    profile is written. JPEG chroma is subsampled 4:2:0, Pillow's default.

    Args:
      pixels: RGB, shape (height, width, 3), uint8.
      settings: the format, its quality, and the longest side.
    """
    image = _fit(Image.fromarray(pixels), settings.max_side)
    is_jpeg = settings.image_format == "jpeg"
    options: dict[str, Any] = {"quality": settings.jpeg_quality} if is_jpeg else {}
    buffer = io.BytesIO()
    image.save(buffer, format=settings.image_format.upper(), **options)
    return EncodedImage(
        data=buffer.getvalue(),
        suffix=".jpg" if is_jpeg else ".png",
        width_px=image.width,
        height_px=image.height,
    )


def _fit(image: Image.Image, max_side: int | None) -> Image.Image:
    longest = max(image.size)
    if max_side is None or longest <= max_side:
        return image
    width, height = (max(1, round(side * max_side / longest)) for side in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS)
