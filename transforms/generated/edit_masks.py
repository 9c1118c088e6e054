"""Finds where a photograph may change, from the user's masks or a grounder."""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
from PIL import Image, ImageOps

from eqforge.core.errors import InputError
from eqforge.core.files.pictures import MAX_PIXELS, BadImage, TooManyPixels, opened
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.identity import Trace
from eqforge.core.ranges import check_range
from eqforge.generators.editors.canvas import grow
from eqforge.models.grounding import VERSION, Detection, Grounder, weights_of
from eqforge.schemas.records.frames import StoredImage
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.tables.generated import MaskRow
from eqforge.sources.edit_captions import EditCaption
from eqforge.transforms.dataset.image_folder import read_named
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.generated.draw_work import load_once
from eqforge.transforms.generated.pairs import coloured, read_numbers, store_mask

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDED_PX: Final = 1
"""Both sides of a scaled image are rounded, so its shape may differ by this much."""


@dataclass(frozen=True, slots=True)
class MaskFolder:
    """A user's folder of masks.

    A mask is an image of its photograph's shape, of any mode; the photograph may change where the
    mask is not black. Unless named, it has the photograph's name, or that with the ending `.png`.
    """

    root: SourceFolder

    def find(
        self, caption: EditCaption, picture: StoredImage, media: MediaStore
    ) -> MaskRow | Rejection | None:
        for name in mask_names(caption):
            data = read_named(self.root, name)
            if not isinstance(data, Rejection):
                return _stored(data, picture, media)
            if data.reason != "image_missing":
                return Rejection(reason="undecodable_mask", detail=f"{data.reason}: {data.detail}")
        if caption.mask is None:
            return None
        return Rejection(reason="mask_missing", detail=caption.mask[:200])


def mask_names(caption: EditCaption) -> tuple[str, ...]:
    if caption.mask is not None:
        return (caption.mask,)
    ending = PurePosixPath(caption.image).suffix
    return tuple(dict.fromkeys((caption.image, f"{caption.image.removesuffix(ending)}.png")))


def _stored(data: bytes, picture: StoredImage, media: MediaStore) -> MaskRow | Rejection:
    try:
        mask = _read(data)
    except (BadImage, TooManyPixels) as error:
        return Rejection(reason="undecodable_mask", detail=str(error)[:200])
    size = (picture.width_px, picture.height_px)
    # The photograph may have been scaled down since.
    scale = max(size) / max(mask.shape)
    sides = zip(mask.shape[::-1], size, strict=True)
    if scale > 1 or any(abs(side * scale - other) > _ROUNDED_PX for side, other in sides):
        found = f"{mask.shape[1]}x{mask.shape[0]}, the photograph {size[0]}x{size[1]}"
        return Rejection(reason="mask_size", detail=found)
    fitted = Image.fromarray(mask).resize(size, Image.Resampling.NEAREST)
    if not fitted.getbbox():
        return Rejection(reason="empty_mask")
    return store_region(np.asarray(fitted), media)


def _read(data: bytes) -> NDArray[np.bool_]:
    """Return where a mask is not black; transparency is ignored."""
    with opened(data, MAX_PIXELS) as image:
        upright = ImageOps.exif_transpose(image)
        # Numbers of palettes and inks are not brightness: 0 may mean white.
        if upright.mode in ("P", "PA", "CMYK", "YCbCr"):
            upright = upright.convert("RGB")
        values = np.asarray(upright)
        has_alpha = upright.mode in ("LA", "RGBA", "La", "RGBa")
    if values.ndim == 2:
        return np.asarray(values != 0)
    colours = values[..., :-1] if has_alpha else values
    return np.asarray(colours.any(axis=2))


def store_region(region: NDArray[np.bool_], media: MediaStore) -> MaskRow:
    stream = io.BytesIO()
    Image.fromarray(region.astype(np.uint8)).save(stream, "png")
    height, width = region.shape
    return store_mask(media, coloured(stream.getvalue()), width, height)


def read_region(mask: MaskRow, media: MediaStore) -> NDArray[np.bool_]:
    """Return a stored region, bool [height, width]."""
    return np.asarray(read_numbers(media.get(mask.mask_id, mask.suffix)) != 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class GroundingSettings:
    """Models that find the area to edit if a photograph has no mask."""

    grounder: Annotated[str | None, Trace.NAME] = None
    """Grounding DINO, OWL-ViT or OWLv2 model that finds the area to edit. Pass the folder of a
    saved Transformers model, or ID@COMMIT from the Hugging Face Hub."""

    segmenter: Annotated[str | None, Trace.NAME] = None
    """SAM or SAM 2 model that outlines the detected objects (default: use their boxes as masks)."""

    grounding_score: float = 0.3
    """Minimum detection score of the --grounder model, in [0, 1]."""

    mask_margin: float = 0.02
    """Margin to add around a detected region, as a fraction of the photograph's longer side."""

    def __post_init__(self) -> None:
        check_range("grounding_score", self.grounding_score, 0, 1)
        check_range("mask_margin", self.mask_margin, 0, 1)
        if self.segmenter is not None and self.grounder is None:
            raise InputError(
                "--segmenter: also pass --grounder, which finds the objects to outline"
            )


class SharedGrounder:
    """A grounder that the threads of a process share, one photograph at a time."""

    def __init__(self, grounder: Grounder, settings: GroundingSettings) -> None:
        self.grounder, self.settings, self.lock = grounder, settings, threading.Lock()

    @property
    def basis(self) -> list[Any]:
        """Everything that a region depends on besides the photograph and the words."""
        settings = self.settings
        return [VERSION, self.grounder.identity, settings.grounding_score, settings.mask_margin]

    def find(
        self, pixels: NDArray[np.uint8], things: tuple[str, ...]
    ) -> tuple[NDArray[np.bool_], list[Detection]] | None:
        """Return the region of some things, and their boxes; None if one is not found."""
        with self.lock:
            found = self.grounder.detect(pixels, things)
            if not things or {each.phrase for each in found} != set(things):
                return None
            region = self.grounder.outline(pixels, found)
        margin = round(self.settings.mask_margin * max(region.shape))
        return (grow(region, margin), found) if region.any() else None


@load_once
def shared_grounder(settings: GroundingSettings, device: str) -> SharedGrounder | None:
    if settings.grounder is None:
        return None
    segmenter = None if settings.segmenter is None else weights_of(settings.segmenter, device)
    detector = weights_of(settings.grounder, device)
    return SharedGrounder(Grounder(detector, segmenter, settings.grounding_score), settings)
