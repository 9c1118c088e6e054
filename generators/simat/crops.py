"""Determines the crop of an image for a region.

Source: SIMAT, section 3.2: "crop square regions of images that minimally contain the subject and
object"; its code cuts out the box of retrieval_db.tsv, which is not square.
"""

from dataclasses import dataclass
from typing import Literal

from eqforge.core.errors import InputError
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.values import CornerBox
from eqforge.sources.simat import Region

CROP_REASONS = {
    "bad_box": "A box is empty, or lies outside the image.",
    "crop_too_small": "The longer side of the crop is below its minimum.",
}
Shape = Literal["square", "published"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CropSettings:
    """What is cut out of an image."""

    crop: Shape = "square"
    """square: the smallest square that holds subject and object, moved and clipped to lie in the
    image. published: the box of the source, or that of both where it has none."""

    min_crop_px: int = 64
    """The longer side of a crop has at least so many pixels; the smallest published one has 65."""

    def __post_init__(self) -> None:
        if self.min_crop_px < 1:
            raise InputError(f"--min-crop-px {self.min_crop_px}: expected 1 or more")


def crop_box(
    region: Region, size: tuple[int, int] | None, settings: CropSettings
) -> CornerBox | Rejection:
    """Return the crop for a region, or why there is none.

    Args:
      region: with the boxes of subject and object.
      size: width and height of the image in pixels; None if unknown, so nothing is clipped to them.
      settings: the crop's shape and minimum size.
    """
    for box in (region.subject_box, region.object_box):
        if box.clip(size).is_empty:
            return Rejection(reason="bad_box", detail=_text(box))
    both = region.subject_box.union(region.object_box).clip(size)
    if settings.crop == "square":
        found = _square(both, size)
    else:
        found = both if region.box is None else region.box.clip(size)
    if found.is_empty:
        return Rejection(reason="bad_box", detail=_text(found))
    longer = max(found.width, found.height)
    if longer < settings.min_crop_px:
        return Rejection(reason="crop_too_small", value=longer, threshold=settings.min_crop_px)
    return found


def _square(box: CornerBox, size: tuple[int, int] | None) -> CornerBox:
    """Return the smallest square around a box: centred, moved into the image, then clipped."""
    side = max(box.width, box.height)
    x0, x1 = _stretch(box.x0, box.x1, side, None if size is None else size[0])
    y0, y1 = _stretch(box.y0, box.y1, side, None if size is None else size[1])
    return CornerBox(x0=x0, y0=y0, x1=x1, y1=y1)


def _stretch(start: int, stop: int, length: int, end: int | None) -> tuple[int, int]:
    first = start - (length - (stop - start)) // 2
    if end is not None:
        first = max(0, min(first, end - length))
        return first, min(end, first + length)
    return max(0, first), max(0, first) + length


def _text(box: CornerBox) -> str:
    return f"{box.x0},{box.y0},{box.x1},{box.y1}"
