"""Write the images of a dataset, and thumbnails, into the folder of a report."""

import io
import itertools
import os
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from PIL import Image

from eqforge.core.console import ticked
from eqforge.core.errors import InputError
from eqforge.core.files.checked import name_of
from eqforge.core.files.pictures import BadImage, TooManyPixels, open_rgb, opened
from eqforge.evaluation.report.items import Pane
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.shelf import check_picture_id, make_shelf, suffix_of

if TYPE_CHECKING:
    from eqforge.evaluation.report.folder import Folder

THUMBNAIL_PX: Final = 320
"""Longer side of a thumbnail."""

_AT_ONCE: Final = 64

# Colours for the object numbers of a mask, in turn; the background is transparent.
_COLOURS: Final = (
    *((230, 25, 75), (60, 180, 75), (0, 130, 200), (245, 130, 48), (145, 30, 180)),
    *((70, 240, 240), (240, 50, 230), (210, 245, 60), (0, 128, 128), (170, 110, 40)),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """A stored image: its suffix and its size in pixels."""

    suffix: str
    width_px: int
    height_px: int


@dataclass(kw_only=True, slots=True)
class Pictures:
    """Metadata of a dataset's images by id, without their bytes.

    Attributes:
      whole: whether the report stores full images as well as thumbnails.
      bad: ids of images that cannot be decoded.
    """

    stored: dict[str, Stored] = field(default_factory=dict)
    scores: dict[str, tuple[tuple[str, float | None], ...]] = field(default_factory=dict)
    masks: set[str] = field(default_factory=set)
    whole: bool = True
    bad: set[str] = field(default_factory=set)

    def file(self, image_id: str | None) -> str | None:
        """Return the path of a full image in the report; None if the report lacks it."""
        found = self.stored.get(image_id or "")
        if found is None or not self.whole:
            return None
        return f"pictures/{_below(image_id or '')}{found.suffix}"

    def thumbnail(self, image_id: str | None) -> str | None:
        if image_id is None or image_id not in self.stored or image_id in self.bad:
            return None
        return f"thumbnails/{_below(image_id)}.jpg"

    def mask(self, mask_id: str | None) -> str | None:
        there = mask_id is not None and mask_id in self.masks
        return f"masks/{_below(mask_id or '')}.png" if there else None


def _below(image_id: str) -> str:
    return f"{image_id[:2]}/{image_id}"


def read_pictures(
    dataset: Dataset, *, whole: bool, only: Collection[str] | None = None
) -> Pictures:
    pictures = Pictures(whole=whole)
    columns = ["image_id", "image.path", "width_px", "height_px", "scores"]
    names: dict[str, str] = {}
    wanted = pa.array(sorted(only or ()), pa.string())
    for batch in dataset.batches("images", columns, 10_000):
        for image_id in batch.column(0).to_pylist():
            check_picture_id(image_id, dataset.folder)
        if only is not None:
            batch = batch.filter(pc.is_in(batch.column(0), value_set=wanted))
        for row in batch.to_pylist():
            key = row["image_id"]
            pictures.stored[key] = Stored(
                suffix=suffix_of((row["image"] or {}).get("path"), dataset.folder),
                width_px=row["width_px"],
                height_px=row["height_px"],
            )
            found = ((score["name"], score["value"]) for score in row["scores"])
            pictures.scores[key] = tuple((names.setdefault(n, n), value) for n, value in found)
    for batch in dataset.batches("masks", ["mask_id"], 10_000):
        found_ids = batch.column(0).to_pylist()
        pictures.masks.update(check_picture_id(each, dataset.folder) for each in found_ids)
    return pictures


def write_pictures(dataset: Dataset, pictures: Pictures, folder: "Folder") -> None:
    """Write images and thumbnails, unless they exist; note undecodable images in `pictures.bad`."""
    encoded = _encoded(dataset, "images", "image_id")
    write_encoded(ticked(encoded, len(pictures.stored), "pictures"), pictures, folder)
    _write_masks(dataset, pictures, pictures.masks, folder)


def write_some(
    dataset: Dataset, panes: Iterable[Pane], pictures: Pictures, folder: "Folder"
) -> None:
    panes = list(panes)
    wanted = {pane.image_id for pane in panes if pane.image_id is not None}
    if wanted and dataset.files("images"):
        shelf = make_shelf(dataset)
        placed = sorted(wanted & shelf.places.keys(), key=lambda name: (shelf.places[name], name))
        # Only the images of one row group are in memory.
        groups = (list(names) for _, names in itertools.groupby(placed, shelf.places.__getitem__))
        encoded = (each for names in groups for each in sorted(shelf.read(names).items()))
        write_encoded(encoded, pictures, folder)
    masks = {pane.mask_id for pane in panes if pane.mask_id is not None}
    _write_masks(dataset, pictures, masks, folder)


def write_encoded(
    encoded: Iterable[tuple[str, bytes]], pictures: Pictures, folder: "Folder"
) -> None:
    def write(image_id: str, data: bytes) -> None:
        if file := pictures.file(image_id):
            folder.put(file, lambda: data)
        try:
            folder.put(f"thumbnails/{_below(image_id)}.jpg", lambda: _thumbnail(data))
        except (BadImage, TooManyPixels):
            pictures.bad.add(image_id)

    left = iter(encoded)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        while group := list(itertools.islice(left, _AT_ONCE)):
            list(threads.map(write, *zip(*group, strict=True)))


def _thumbnail(data: bytes) -> bytes:
    image = open_rgb(data)
    image.thumbnail((THUMBNAIL_PX, THUMBNAIL_PX), Image.Resampling.BICUBIC)
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=80)
    return stream.getvalue()


def _write_masks(dataset: Dataset, pictures: Pictures, wanted: set[str], folder: "Folder") -> None:
    for mask_id, data in _encoded(dataset, "masks", "mask_id", wanted) if wanted else ():
        if file := pictures.mask(mask_id):
            try:
                folder.put(file, partial(coloured, data))
            except (BadImage, TooManyPixels) as error:
                raise InputError(f"{dataset.folder}: mask {name_of(mask_id)}: {error}") from error


def coloured(mask: bytes) -> bytes:
    """Colour a PNG mask by its object numbers; 0 becomes transparent."""
    with opened(mask, formats=("PNG",)) as found:
        numbers = np.asarray(found if found.mode in ("L", "P") else found.convert("L"))
    palette = [0, 0, 0]
    for number in range(255):
        palette += _COLOURS[number % len(_COLOURS)]
    image = Image.fromarray(numbers)
    image.putpalette(palette)  # converts the image to mode P
    stream = io.BytesIO()
    image.save(stream, "PNG", transparency=0)
    return stream.getvalue()


def _encoded(
    dataset: Dataset, table: str, key: str, wanted: set[str] | None = None
) -> Iterator[tuple[str, bytes]]:
    for file in dataset.files(table):
        for group in dataset.groups(file.path, [key, "image"]):
            for batch in group.to_batches(100):
                ids = batch.column(0).to_pylist()
                rows = [n for n, each in enumerate(ids) if wanted is None or each in wanted]
                for row in batch.take(rows).to_pylist() if rows else ():
                    yield row[key], (row["image"] or {}).get("bytes") or b""
