"""The media store: images in a folder or bucket, encoded and named by their content."""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from eqforge.core.files import disk, storage
from eqforge.core.identity import sha256_hex
from eqforge.schemas.records.frames import FrameSettings

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class MediaStore:
    """A content-addressed store: `<root>/ab/abcd….jpg` holds the bytes whose SHA-256 is abcd….

    Any number of processes may write at once, and be killed at any time: a file gets its final name
    only when it is complete. Storing the same bytes again writes nothing. A power cut may leave
    wrong bytes of the right length in a file that was not synced; storing the image again repairs
    it. So call `sync` before recording that images are stored.

    Attributes:
      root: a local folder, or an address fsspec knows, such as gs://bucket/folder.
    """

    root: str

    def put(self, data: bytes, suffix: str) -> str:
        image_id = sha256_hex(data)
        # A power cut may leave a short or wrong file on a disk; in an object store, length decides.
        is_there = self.exists(image_id, suffix, len(data))
        if not is_there or (_place(self.root)[1] and self.get(image_id, suffix) != data):
            storage.write_bytes(self.path(image_id, suffix), data, synced=False)
        return image_id

    def sync(self, images: Iterable[tuple[str, str]]) -> None:
        """Make images (id, suffix) durable against a power cut; one call for many is faster."""
        root, is_local = _place(self.root)
        if not is_local:
            return
        paths = sorted({self.path(*image) for image in images})
        folders = sorted({os.path.dirname(path) for path in paths})
        for path in [*paths, *folders, *([root, os.path.dirname(root)] if paths else [])]:
            disk.sync(path)

    def get(self, image_id: str, suffix: str) -> bytes:
        return storage.read_bytes(self.path(image_id, suffix))

    def exists(self, image_id: str, suffix: str, num_bytes: int | None = None) -> bool:
        """Return True if the store holds an image, with the given length if any."""
        found = storage.info(self.path(image_id, suffix))
        return found is not None and num_bytes in (None, found["size"])

    def path(self, image_id: str, suffix: str) -> str:
        return f"{_place(self.root)[0]}/{image_id[:2]}/{image_id}{suffix}"


@functools.cache
def _place(root: str) -> tuple[str, bool]:
    is_local = storage.is_local(root)
    return (storage.locate(root)[1] if is_local else root).rstrip("/"), is_local


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodedImage:
    """An image file in memory; its suffix is ".jpg" or ".png"."""

    data: bytes
    suffix: str
    width_px: int
    height_px: int


def encode_image(pixels: npt.NDArray[np.uint8], settings: FrameSettings) -> EncodedImage:
    """Encode pixels, scaled down first if the longer side exceeds the limit.

    The same pixels, settings and Pillow give the same bytes: no date, program name or profile is
    written. JPEG chroma is subsampled 4:2:0, Pillow's default.

    Args:
      pixels: RGB, uint8 [height, width, 3].
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
