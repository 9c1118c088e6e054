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
    """An image file in memory; its suffix is ".jpg" or ".png"."""

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
    """
    image = Image.fromarray(pixels)
    longest = max(image.size)
    if settings.max_side is not None and longest > settings.max_side:
        width, height = (max(1, round(side * settings.max_side / longest)) for side in image.size)
        image = image.resize((width, height), Image.Resampling.LANCZOS)
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
