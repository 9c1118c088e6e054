"""Crops the regions of a source image into the media store.

Source: SIMAT, section 3.2: "crop square regions of images that minimally contain the subject and
object"; its code cuts out the box of retrieval_db.tsv, which is not square.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from eqforge.core.files import pictures
from eqforge.core.files.pictures import BadImage, TooManyPixels, read_pixels
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.identity import sha256_hex, versions_of
from eqforge.core.ledger import Ledger
from eqforge.core.ranges import expect
from eqforge.schemas.records.frames import FrameSettings
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.values import CornerBox
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.sources.simat import Region
from eqforge.transforms.dataset.failures import error_rejection
from eqforge.transforms.dataset.image_folder import BAD_BOX, bad_box, read_named
from eqforge.transforms.dataset.media import MediaStore, encode_image
from eqforge.transforms.filters import minimality

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERSION = "2"
CROP_REASONS = {
    "bad_box": BAD_BOX,
    "crop_too_small": "The longer side of the crop is shorter than --min-crop-px.",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CropSettings:
    """Crop shape and size."""

    crop: Literal["square", "published"] = "square"
    """Crop shape. `square` is the smallest square around both objects, and `published` is SIMAT's
    own crop."""

    min_crop_px: int = 64
    """Minimum length of a crop's longer side in pixels. The smallest value in SIMAT is 65."""

    def __post_init__(self) -> None:
        expect(self, "min_crop_px", self.min_crop_px >= 1, "1 or more")


def crop_box(
    region: Region, size: tuple[int, int] | None, settings: CropSettings
) -> CornerBox | Rejection:
    """Return the crop for a region, or why there is none; an unknown size clips nothing."""
    for box in (region.subject_box, region.object_box):
        if box.clip(size).is_empty:
            return bad_box(box)
    both = region.subject_box.union(region.object_box).clip(size)
    if settings.crop == "square":
        # The smallest square around it: centred, moved into the image, then clipped.
        side = max(both.width, both.height)
        x0, x1 = _stretch(both.x0, both.x1, side, None if size is None else size[0])
        y0, y1 = _stretch(both.y0, both.y1, side, None if size is None else size[1])
        found = CornerBox(x0=x0, y0=y0, x1=x1, y1=y1)
    else:
        found = both if region.box is None else region.box.clip(size)
    if found.is_empty:
        return bad_box(found)
    longer = max(found.width, found.height)
    if longer < settings.min_crop_px:
        return Rejection(reason="crop_too_small", value=longer, threshold=settings.min_crop_px)
    return found


def _stretch(start: int, stop: int, length: int, end: int | None) -> tuple[int, int]:
    first = start - (length - (stop - start)) // 2
    if end is not None:
        first = max(0, min(first, end - length))
        return first, min(end, first + length)
    return max(0, first), max(0, first) + length


@dataclass(frozen=True, kw_only=True, slots=True)
class Crop:
    """A cropped region; `box` is in pixels of the source image."""

    box: CornerBox
    image: ImageRow | None = None
    source_path: str | None = None
    source_sha256: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Crops:
    """The results for the regions of one image, in order: a crop or a rejection."""

    crops: tuple[Crop | None, ...]
    rejections: tuple[Rejection | None, ...]

    @property
    def found(self) -> tuple[Crop | Rejection, ...]:
        pairs = zip(self.crops, self.rejections, strict=True)
        return tuple(one for pair in pairs for one in pair if one is not None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cutter:
    """How regions are cropped; without a folder of source images there are only boxes."""

    root: SourceFolder | None
    store: MediaStore
    settings: CropSettings
    encoding: FrameSettings
    ledger_root: str

    def ledger(self) -> Ledger:
        own = [VERSION, pictures.VERSION, minimality.VERSION]
        basis = [*own, asdict(self.settings), asdict(self.encoding)]
        versions = versions_of("pillow", "numpy", "imagehash")
        return Ledger(root=self.ledger_root, step="crop", basis=[*basis, versions])


def cut_regions(
    regions: Sequence[Region], size: tuple[int, int] | None, paths: Sequence[str], cutter: Cutter
) -> tuple[Crop | Rejection, ...]:
    if cutter.root is None:
        boxes = [crop_box(region, size, cutter.settings) for region in regions]
        return tuple(box if isinstance(box, Rejection) else Crop(box=box) for box in boxes)
    if not regions:
        return ()
    found = _read(cutter.root, paths)
    if isinstance(found, Rejection):
        return tuple(found for _ in regions)
    path, data = found
    ledger, store = cutter.ledger(), cutter.store
    sha256 = sha256_hex(data)
    inputs = [path, sha256, size, [asdict(region) for region in regions]]
    known = ledger.recall(inputs, Crops)
    if known is not None and all(
        store.exists(row.image_id, row.suffix, row.num_bytes) for row in _rows(known.found)
    ):
        return known.found
    pixels = _decode(data, size, cutter.encoding.max_pixels)
    crops: tuple[Crop | Rejection, ...]
    if isinstance(pixels, Rejection):
        crops = (pixels,) * len(regions)
    else:
        crops = tuple(_cut_one(region, pixels, (path, sha256), cutter) for region in regions)
        # A failure may be the machine's fault, so another run tries again.
    if not any(isinstance(c, Rejection) and c.reason.startswith("error:") for c in crops):
        store.sync((row.image_id, row.suffix) for row in _rows(crops))
        result = Crops(
            crops=tuple(one if isinstance(one, Crop) else None for one in crops),
            rejections=tuple(one if isinstance(one, Rejection) else None for one in crops),
        )
        ledger.write(inputs, result)
    return crops


def _rows(crops: Sequence[Crop | Rejection]) -> list[ImageRow]:
    return [crop.image for crop in crops if isinstance(crop, Crop) and crop.image is not None]


def _read(root: SourceFolder, paths: Sequence[str]) -> tuple[str, bytes] | Rejection:
    for name in paths:
        found = read_named(root, name)
        if isinstance(found, bytes):
            return os.path.normpath(name), found
        if found.reason != "image_missing":
            return found
    return Rejection(reason="image_missing", detail=" or ".join(paths))


def _decode(
    data: bytes, size: tuple[int, int] | None, max_pixels: int
) -> NDArray[np.uint8] | Rejection:
    try:
        pixels = read_pixels(data, max_pixels)
    except TooManyPixels as error:
        return Rejection(reason="too_many_pixels", value=error.pixels, threshold=max_pixels)
    except BadImage as error:
        return Rejection(reason="undecodable_image", detail=str(error))
    height, width = pixels.shape[:2]
    if size is not None and (width, height) != size:
        detail = f"{width}x{height}, annotated as {size[0]}x{size[1]}"
        return Rejection(reason="other_size", detail=detail)
    return pixels


def _cut_one(
    region: Region, pixels: NDArray[np.uint8], source: tuple[str, str], cutter: Cutter
) -> Crop | Rejection:
    height, width = pixels.shape[:2]
    box = crop_box(region, (width, height), cutter.settings)
    if isinstance(box, Rejection):
        return box
    try:
        part = np.ascontiguousarray(pixels[box.y0 : box.y1, box.x0 : box.x1])
        encoded = encode_image(part, cutter.encoding)
        phash = minimality.perceptual_hash(read_pixels(encoded.data))
    except Exception as error:
        return error_rejection(error)
    image = ImageRow(
        image_id=cutter.store.put(encoded.data, encoded.suffix),
        suffix=encoded.suffix,
        width_px=encoded.width_px,
        height_px=encoded.height_px,
        num_bytes=len(encoded.data),
        phash=phash,
        scores=(),
    )
    return Crop(box=box, image=image, source_path=source[0], source_sha256=source[1])
