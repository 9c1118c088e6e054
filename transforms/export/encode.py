"""The pictures of an export: as they are stored, or scaled and encoded anew."""

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from eqforge.core.errors import InputError
from eqforge.core.files.checked import name_of
from eqforge.core.files.pictures import BadImage, TooManyPixels, opened, read_pixels
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


@dataclass(frozen=True, slots=True)
class PictureColumn:
    """The pictures of some rows.

    Attributes:
      ids: of the pictures; null where a row has none.
      suffixes: of their files.
      data: their bytes; empty where a row has none.
    """

    ids: pa.StringArray
    suffixes: pa.StringArray
    data: pa.BinaryArray

    def __iter__(self) -> Iterator[Picture | None]:
        """Yields the pictures, one for each row."""
        columns = (self.ids.to_pylist(), self.suffixes.to_pylist(), self.data)
        for name, suffix, data in zip(*columns, strict=True):
            yield None if name is None else Picture(name, suffix, data.as_py())


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
        return tuple(sorted(set(map(self._suffix, self._pictures.suffixes))))

    def _suffix(self, suffix: str) -> str:
        """Returns the suffix that a picture has once it is encoded."""
        return _SUFFIXES[self._wanted(suffix)]

    def _wanted(self, suffix: str) -> Literal["jpeg", "png"]:
        """Returns the format of a picture whose file has a suffix."""
        chosen = self._settings.image_format
        return _FORMATS.get(suffix, "png") if chosen == "keep" else chosen

    def count(self, columns: Iterable[pa.Array]) -> int:
        """Returns how many distinct pictures ids name, beside null.

        Raises:
          InputError: a picture is missing.
        """
        shown = np.zeros(len(self._pictures), bool)
        for ids in columns:
            places = self._pictures.places(ids)
            shown[places[places >= 0]] = True
        return int(shown.sum())

    def sizes(self, ids: pa.ChunkedArray) -> np.ndarray:
        """Returns the lengths of pictures as they are stored, in bytes, int64 [n]; 0 for null."""
        return self._pictures.sizes(self._pictures.places(ids))

    def read(self, ids: pa.ChunkedArray) -> PictureColumn:
        """Returns pictures by their ids.

        Raises:
          InputError: a picture is missing or damaged.
        """
        names, places = ids.combine_chunks(), self._pictures.places(ids)
        data = self._pictures.read(names, places)
        stored = PictureColumn(names, self._pictures.suffixes_of(places), data)
        return stored if self._is_kept else self._encode(stored)

    def _encode(self, stored: PictureColumn) -> PictureColumn:
        """Returns pictures in the format and size of the settings, each encoded once."""
        names = stored.ids.to_pylist()
        distinct = dict(zip(names, stored, strict=True))
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            made = dict(zip(distinct, threads.map(self._encoded, distinct.values()), strict=True))
        suffixes = [self._suffix(each) for each in stored.suffixes.to_pylist()]
        data = pa.array([made[name] for name in names], pa.binary())
        return PictureColumn(stored.ids, pa.array(suffixes, pa.string()), data)

    def _encoded(self, picture: Picture | None) -> bytes:
        """Returns a picture in the format and size of the settings; nothing for None.

        Bytes stay as they are where they fit already.
        """
        if picture is None:
            return b""
        suffix, data = picture.suffix, picture.data
        wanted = self._wanted(suffix)
        try:
            if wanted == _FORMATS.get(suffix) and self._fits(data):
                return data
            pixels = read_pixels(data)
        except (BadImage, TooManyPixels) as error:
            said = f"image {name_of(picture.image_id)}: cannot be encoded anew: {error}"
            raise InputError(said) from error
        settings = FrameSettings(image_format=wanted, max_side=self._settings.max_side)
        return encode_image(pixels, settings).data

    def _fits(self, data: bytes) -> bool:
        """Tells whether a picture is no larger than the longest side that is wanted."""
        with opened(data) as image:
            return self._settings.max_side is None or max(image.size) <= self._settings.max_side
