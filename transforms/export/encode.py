"""The pictures of an export: as they are stored, or scaled and encoded anew."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from eqforge.schemas.errors import InputError
from eqforge.schemas.io.checked import name_of
from eqforge.schemas.io.pictures import BadImage, TooManyPixels, opened, read_pixels
from eqforge.schemas.records.frames import FrameSettings
from eqforge.transforms.dataset.encode_image import encode_image
from eqforge.transforms.export.pictures import Pictures
from eqforge.transforms.export.settings import ExportSettings

_FORMATS: Final[Mapping[str, Literal["jpeg", "png"]]] = {
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".png": "png",
}
_SUFFIXES: Final = {"jpeg": ".jpg", "png": ".png"}


@dataclass(frozen=True, slots=True)
class Picture:
    """An encoded picture.

    Attributes:
      image_id: key into the dataset's images: the SHA-256 of the bytes that are stored there.
      suffix: of its file, such as `.jpg`.
      data: its bytes.
    """

    image_id: str
    suffix: str
    data: bytes


class Encoder:
    """Reads pictures and encodes them as the settings say.

    Args:
      pictures: where they are.
      settings: how they are encoded.
    """

    def __init__(self, pictures: Pictures, settings: ExportSettings) -> None:
        """Encodes nothing yet."""
        self._pictures, self._settings = pictures, settings
        self._is_kept = settings.image_format == "keep" and settings.max_side is None

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes that pictures may have."""
        if self._is_kept:
            return self._pictures.suffixes
        return tuple(sorted({_SUFFIXES[self._wanted(each)] for each in self._pictures.suffixes}))

    def _wanted(self, suffix: str) -> Literal["jpeg", "png"]:
        """Returns the format of a picture whose file has a suffix."""
        chosen = self._settings.image_format
        return _FORMATS.get(suffix, "png") if chosen == "keep" else chosen

    def sizes(self, ids: pa.ChunkedArray) -> np.ndarray:
        """Returns the lengths of pictures as they are stored, in bytes, int64 [n]; 0 for null."""
        return self._pictures.sizes(self._pictures.places(ids))

    def read(self, ids: pa.ChunkedArray) -> list[Picture | None]:
        """Returns pictures by their ids; None for null.

        Raises:
          InputError: a picture is missing or damaged.
        """
        names, places = ids.to_pylist(), self._pictures.places(ids).tolist()
        if self._is_kept:
            return list(map(self._kept, names, places))
        distinct = dict(zip(names, places, strict=True))
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            encoded = threads.map(self._encoded, distinct.keys(), distinct.values())
            made = dict(zip(distinct, encoded, strict=True))
        return [made[name] for name in names]

    def _kept(self, image_id: str | None, place: int) -> Picture | None:
        if image_id is None:
            return None
        data = self._pictures.read(image_id, place)
        return Picture(image_id, self._pictures.suffix(place), data)

    def _encoded(self, image_id: str | None, place: int) -> Picture | None:
        """Returns a picture in the format and size of the settings.

        Bytes stay as they are where they fit already.
        """
        if image_id is None:
            return None
        kept = self._kept(image_id, place)
        assert kept is not None
        found, wanted = _FORMATS.get(kept.suffix), self._wanted(kept.suffix)
        try:
            if wanted == found and self._fits(kept.data):
                return kept
            pixels = read_pixels(kept.data)
        except (BadImage, TooManyPixels) as error:
            raise InputError(
                f"image {name_of(image_id)}: cannot be encoded anew: {error}"
            ) from error
        settings = FrameSettings(image_format=wanted, max_side=self._settings.max_side)
        return Picture(image_id, _SUFFIXES[wanted], encode_image(pixels, settings).data)

    def _fits(self, data: bytes) -> bool:
        """Tells whether a picture is no larger than the longest side that is wanted."""
        with opened(data) as image:
            return self._settings.max_side is None or max(image.size) <= self._settings.max_side
