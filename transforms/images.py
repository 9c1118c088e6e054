"""A user's folder of images: each is checked, and taken into the media store as it is."""

import errno
import io
import warnings
from dataclasses import dataclass
from functools import lru_cache

from PIL import Image, UnidentifiedImageError

from eqforge.schemas.frames import MissedVideo
from eqforge.schemas.scores import Rejection
from eqforge.schemas.tables import ImageRow
from eqforge.transforms.frames.locate import resolve_video
from eqforge.transforms.judge import read_pixels
from eqforge.transforms.media import MediaStore
from eqforge.transforms.minimality import view

SUFFIXES = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp", "GIF": ".gif", "BMP": ".bmp"}
REMEMBERED = 4_096
# Errors of one file; any other, such as too many open files, is of the machine and ends the run.
UNREADABLE = frozenset({errno.EACCES, errno.EPERM, errno.EIO, errno.ENOENT, errno.ESTALE})


@dataclass(frozen=True, slots=True)
class ImageFolder:
    """A folder of images and the media store they go to.

    Attributes:
      root: the folder; nothing outside it is read.
      media_root: the media store.
      max_pixels: images of more pixels are refused undecoded.
    """

    root: str
    media_root: str
    max_pixels: int = 2**26

    def find(self, name: str) -> ImageRow | Rejection:
        """Returns the row of an image, or why it cannot be used; read once for many captions."""
        return _find(self, name)


@lru_cache(maxsize=REMEMBERED)
def _find(folder: ImageFolder, name: str) -> ImageRow | Rejection:
    path = resolve_video(folder.root, name)
    if isinstance(path, MissedVideo):
        reason = {"video_missing": "image_missing"}.get(path.reason, path.reason)
        return Rejection(reason=reason, detail=path.detail)
    try:
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError as error:
        if error.errno not in UNREADABLE:
            raise
        return Rejection(reason="undecodable_image", detail=f"cannot be read: {error.strerror}")
    return _store(folder, data)


def _store(folder: ImageFolder, data: bytes) -> ImageRow | Rejection:
    """Checks an encoded image and stores its bytes unchanged."""
    try:
        kind, width, height = _header(data)
        if width * height > folder.max_pixels:
            return Rejection(
                reason="too_many_pixels", value=width * height, threshold=folder.max_pixels
            )
        if kind not in SUFFIXES:
            return Rejection(reason="undecodable_image", detail=f"the format {kind}")
        phash = view(read_pixels(data)).phash
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        return Rejection(
            reason="undecodable_image", detail=f"{type(error).__name__}: {error}"[:200]
        )
    except Image.DecompressionBombError as error:
        return Rejection(reason="too_many_pixels", detail=str(error)[:200])
    image_id = MediaStore(folder.media_root).put(data, SUFFIXES[kind])
    return ImageRow(
        image_id=image_id,
        suffix=SUFFIXES[kind],
        width_px=width,
        height_px=height,
        num_bytes=len(data),
        phash=phash,
        scores=(),
    )


def _header(data: bytes) -> tuple[str, int, int]:
    """Returns format, width and height of an image without decoding it."""
    with warnings.catch_warnings():
        # Pillow warns of large images when it opens them; the limit of pixels is checked here.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        with Image.open(io.BytesIO(data)) as image:
            return image.format or "", image.width, image.height
