"""Checks the images of a user's folder and stores them unchanged or cropped."""

from __future__ import annotations

import errno
import io
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from PIL import Image

from eqforge.core.files.find_file import MissingFile
from eqforge.core.files.objects import STORE_REASONS, FetchFailed
from eqforge.core.files.pictures import (
    MAX_PIXELS,
    BadImage,
    TooManyPixels,
    read_pixels,
    read_untrusted,
)
from eqforge.core.files.source_file import SourceChanged
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.identity import sha256_hex
from eqforge.schemas.records.frames import FrameSettings
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.values import CornerBox
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.transforms.dataset.media import MediaStore, encode_image
from eqforge.transforms.filters.minimality import perceptual_hash

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLDER_REASONS = {
    "image_missing": "The image folder does not contain a file with this name.",
    "outside_root": "The path is absolute, leads out of the folder, or follows links in a circle. "
    "--follow-links allows links out of the folder.",
    "source_changed": "The file changed while eqforge was reading it.",
    **STORE_REASONS,
    "undecodable_image": "The image cannot be decoded.",
    "too_many_pixels": "The image has more pixels than allowed.",
}

BAD_BOX = "A box is empty or lies outside its image."

REMEMBERED = 4_096
# A crop of decoded pixels is stored losslessly and at full size.
CROPS = FrameSettings(image_format="png")
# Errors of one file. Others, such as too many open files, concern the machine and end the run.
UNREADABLE = frozenset({errno.EACCES, errno.EPERM, errno.EIO, errno.ENOENT, errno.ESTALE})


@dataclass(frozen=True, slots=True)
class ImageFolder:
    """A folder of images and the media store they go to.

    Attributes:
      root: the folder; nothing outside it is read, unless it follows links.
      max_pixels: images and crops with more pixels are rejected.
      clip_boxes: whether crops are clipped to the image; else they are padded with black, as Pillow
        and the authors of ARO do.
      encoded: how whole images are re-encoded, once upright; None keeps the bytes of their files.
    """

    root: SourceFolder
    media_root: str
    max_pixels: int = MAX_PIXELS
    clip_boxes: bool = True
    encoded: FrameSettings | None = None

    def __post_init__(self) -> None:
        _look_up.cache_clear()  # in another run of this process the folder holds other files

    def find(self, name: str, box: CornerBox | None = None) -> ImageRow | Rejection:
        """Return the row of an image, or its rejection; one read serves many captions.

        Args:
          box: the crop in pixels of the upright image; None takes the whole file.
        """
        found = self.look_up(name, box)
        return found if isinstance(found, Rejection) else found.row

    def look_up(self, name: str, box: CornerBox | None = None) -> FoundImage | Rejection:
        """Find an image as `find` does, with the digest of its source file."""
        return _look_up(self, name, box)


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundImage:
    """The row of an image, or of a crop of it, and the SHA-256 of its source file."""

    row: ImageRow
    source_sha256: str


def bad_box(box: CornerBox) -> Rejection:
    return Rejection(reason="bad_box", detail=f"{box.x0},{box.y0},{box.x1},{box.y1}")


@lru_cache(maxsize=REMEMBERED)
def _look_up(folder: ImageFolder, name: str, box: CornerBox | None) -> FoundImage | Rejection:
    data = read_named(folder.root, name)
    if isinstance(data, Rejection):
        return data
    return store_image(
        folder.media_root,
        data,
        box,
        max_pixels=folder.max_pixels,
        clip_boxes=folder.clip_boxes,
        is_array=name.endswith(".npy"),
        encoded=folder.encoded,
    )


def read_named(root: SourceFolder, name: str) -> bytes | Rejection:
    try:
        found = root.find(name)
        return image_rejection(found) if isinstance(found, MissingFile) else found.read()
    except SourceChanged as error:
        return Rejection(reason="source_changed", detail=str(error))
    except FetchFailed as error:
        return image_rejection(error)
    except OSError as error:
        if error.errno not in UNREADABLE:
            raise
        return Rejection(reason="undecodable_image", detail=f"cannot be read: {error.strerror}")


def image_rejection(why: MissingFile | FetchFailed) -> Rejection:
    reason = {"file_missing": "image_missing"}.get(why.reason, why.reason)
    return Rejection(reason=reason, detail=why.detail)


def store_image(
    media_root: str,
    source: bytes,
    box: CornerBox | None = None,
    *,
    max_pixels: int = MAX_PIXELS,
    clip_boxes: bool = True,
    is_array: bool = False,
    encoded: FrameSettings | None = None,
) -> FoundImage | Rejection:
    """Check an encoded image, then store its bytes unchanged, cropped or re-encoded.

    Args:
      box: the crop; None takes the whole image.
      is_array: whether the file is an array of pixels, which is stored as a PNG.
      media_root, max_pixels, clip_boxes, encoded: as in `ImageFolder`.
    """
    try:
        data = png_of_array(source, max_pixels) if is_array else source
        suffix, pixels = read_untrusted(data, max_pixels)
    except TooManyPixels as error:
        return Rejection(reason="too_many_pixels", value=error.pixels, threshold=max_pixels)
    except BadImage as error:
        return Rejection(reason="undecodable_image", detail=str(error))
    if box is not None:
        part = _cut(pixels, box, max_pixels, clip_boxes)
        if isinstance(part, Rejection):
            return part
        pixels = part
    if box is not None or encoded is not None:
        image = encode_image(pixels, encoded or CROPS)
        data, suffix = image.data, image.suffix
    if encoded is not None:  # which may scale
        pixels = read_pixels(data)
    row = ImageRow(
        image_id=MediaStore(media_root).put(data, suffix),
        suffix=suffix,
        width_px=pixels.shape[1],
        height_px=pixels.shape[0],
        num_bytes=len(data),
        phash=perceptual_hash(pixels),
        scores=(),
    )
    return FoundImage(row=row, source_sha256=sha256_hex(source))


def _cut(
    pixels: NDArray[np.uint8], box: CornerBox, max_pixels: int, clip_boxes: bool
) -> NDArray[np.uint8] | Rejection:
    inside = box.clip((pixels.shape[1], pixels.shape[0]))
    if inside.is_empty:
        return bad_box(box)
    wanted = inside if clip_boxes else box
    area = wanted.width * wanted.height
    if area > max_pixels:
        return Rejection(reason="too_many_pixels", value=area, threshold=max_pixels)
    corners = (wanted.x0, wanted.y0, wanted.x1, wanted.y1)
    return np.asarray(Image.fromarray(pixels).crop(corners))


_CHANNELS: Final = 3


def png_of_array(data: bytes, max_pixels: int) -> bytes:
    """Return the PNG of an array of pixels in the order blue, green, red.

    Args:
      data: the bytes of a `.npy` file, uint8 [height, width, 3]; pickles are rejected.

    Raises:
      TooManyPixels: the array has more than `max_pixels`.
      BadImage: it has a different type or shape, or is cut short.

    Source: github.com/Wangt-CN/EqBen, `example/eqben_eval_template.py`, process_img_npy.
    """
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): "read_array_header_1_0", (2, 0): "read_array_header_2_0"}[version]
        shape, _, kind = getattr(np.lib.format, read)(stream)
    except Exception as error:  # a damaged header can make its parser raise anything
        raise BadImage("no array that NumPy wrote") from error
    if kind != np.dtype("uint8") or len(shape) != _CHANNELS or shape[2] != _CHANNELS:
        raise BadImage(f"an array of {kind} {list(shape)}; expected uint8 [height, width, 3]")
    if shape[0] * shape[1] > max_pixels:
        raise TooManyPixels(shape[0] * shape[1])
    if 0 in shape or len(data) - stream.tell() != shape[0] * shape[1] * _CHANNELS:
        raise BadImage("the array is empty, or the file is truncated")
    pixels = np.load(io.BytesIO(data), allow_pickle=False)[:, :, ::-1]
    encoded = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(encoded, format="PNG")
    return encoded.getvalue()
