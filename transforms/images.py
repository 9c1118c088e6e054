"""A user's folder of images: each is checked, and taken into the media store as it is."""

import errno
from dataclasses import dataclass
from functools import lru_cache

from eqforge.schemas.frames import MissedVideo
from eqforge.schemas.scores import Rejection
from eqforge.schemas.tables import ImageRow
from eqforge.transforms.frames.locate import resolve_video
from eqforge.transforms.media import MediaStore
from eqforge.transforms.minimality import perceptual_hash
from eqforge.transforms.pictures import BadImage, TooManyPixels, read_untrusted

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
        suffix, pixels = read_untrusted(data, folder.max_pixels)
    except TooManyPixels as error:
        return Rejection(reason="too_many_pixels", value=error.pixels, threshold=folder.max_pixels)
    except BadImage as error:
        return Rejection(reason="undecodable_image", detail=str(error))
    return ImageRow(
        image_id=MediaStore(folder.media_root).put(data, suffix),
        suffix=suffix,
        width_px=pixels.shape[1],
        height_px=pixels.shape[0],
        num_bytes=len(data),
        phash=perceptual_hash(pixels),
        scores=(),
    )
