"""Draws a contact sheet of a dataset of image pairs: both images of a pair, and their captions."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from eqforge.schemas.dataset import Dataset
from eqforge.schemas.errors import InputError
from eqforge.schemas.pictures import open_rgb

SIDE_PX = 224
GAP_PX = 6
TEXT_PX = 13
LINES = 5
"""Lines of text below a pair: its id, what differs, and the captions, wrapped."""

COLUMNS = 3
BACKGROUND, INK, FAINT, BOX = (255, 255, 255), (20, 20, 20), (120, 120, 120), (255, 220, 0)


def draw_sheet(dataset: Dataset, rows: int, boxes: bool, file: Path) -> int:
    """Draws pairs from all over a dataset, in the order of their ids; returns how many.

    Args:
      dataset: one with image pairs.
      rows: at most so many pairs.
      boxes: draw the boxes of the objects, where the dataset has them.
      file: the picture to write, named by its format.

    Raises:
      InputError: the dataset has no image pairs or no boxes, or the file cannot be written.
    """
    samples = _spread(dataset, rows, boxes)
    if not samples:
        raise InputError(f"{dataset.folder}: no samples to draw")
    wanted = {sample[f"image_{side}_id"] for sample in samples for side in (0, 1)}
    images = _images(dataset, wanted)
    cells = [_cell(sample, images, boxes) for sample in samples]
    try:
        _grid(cells).save(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be written: {error}") from error
    return len(cells)


def _spread(dataset: Dataset, rows: int, boxes: bool) -> list[dict[str, Any]]:
    """Returns samples at even distances, the first among them."""
    columns = _columns(dataset, boxes)
    total = dataset.manifest.num_rows("samples")
    chosen = {place * total // rows for place in range(min(rows, total))} if rows < total else None
    found = enumerate(dataset.rows("samples", columns))
    return [sample for place, sample in found if chosen is None or place in chosen]


def _columns(dataset: Dataset, boxes: bool) -> list[str]:
    first = next(dataset.batches("samples", rows=1), None)
    there = set() if first is None else set(first.schema.names)
    wanted = ["sample_id", "image_0_id", "image_1_id", "caption_0", "caption_1"]
    if first is not None and not there.issuperset(wanted):
        raise InputError(f"{dataset.folder}: holds no image pairs, so there is nothing to draw")
    if boxes and "objects_0" not in there:
        raise InputError(f"{dataset.folder}: its samples have no boxes")
    objects = ["objects_0", "objects_1"] if boxes else []
    return [*wanted, *(name for name in ("kind", "change") if name in there), *objects]


def _images(dataset: Dataset, wanted: set[str]) -> dict[str, Image.Image]:
    return {
        row["image_id"]: _opened(row["image"]["bytes"])
        for row in dataset.rows("images", ["image_id", "image"])
        if row["image_id"] in wanted
    }


def _opened(data: bytes) -> Image.Image:
    return open_rgb(data)


def _cell(sample: dict[str, Any], images: dict[str, Image.Image], boxes: bool) -> Image.Image:
    line = TEXT_PX + 3
    cell = Image.new("RGB", (2 * SIDE_PX + GAP_PX, SIDE_PX + LINES * line + GAP_PX), BACKGROUND)
    for side in (0, 1):
        picture = images[sample[f"image_{side}_id"]]
        objects = sample[f"objects_{side}"] if boxes else ()
        shown = _fitted(_with_boxes(picture, objects))
        cell.paste(shown, (side * (SIDE_PX + GAP_PX), 0))
    draw, font = ImageDraw.Draw(cell), ImageFont.load_default(TEXT_PX)
    what = " ".join(sample[name] for name in ("kind", "change") if name in sample)
    draw.text((0, SIDE_PX + 2), f"{sample['sample_id']}  {what}", FAINT, font)
    for side in (0, 1):
        x, y = side * (SIDE_PX + GAP_PX), SIDE_PX + 2 + line
        lines = islice(_wrapped(sample[f"caption_{side}"], font, SIDE_PX), LINES - 1)
        for number, text in enumerate(lines):
            draw.text((x, y + number * line), text, INK, font)
    return cell


def _with_boxes(picture: Image.Image, objects: Sequence[dict[str, Any]]) -> Image.Image:
    drawn = picture.copy()
    for shown in objects:
        if (box := shown["box"]) is not None:
            right, bottom = box["x"] + box["width"] - 1, box["y"] + box["height"] - 1
            ImageDraw.Draw(drawn).rectangle((box["x"], box["y"], right, bottom), outline=BOX)
    return drawn


def _fitted(picture: Image.Image) -> Image.Image:
    """Returns a picture scaled so that its longer side is SIDE_PX."""
    scale = SIDE_PX / max(picture.size)
    size = tuple(max(1, round(side * scale)) for side in picture.size)
    return picture.resize((size[0], size[1]), Image.Resampling.BICUBIC)


def _wrapped(text: str, font: Any, width_px: int) -> Iterator[str]:
    """Yields the lines of a text that fit a width; a longer word is a line of its own."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and font.getlength(longer) > width_px:
            yield line
            longer = word
        line = longer
    yield line


def _grid(cells: Iterable[Image.Image]) -> Image.Image:
    placed = list(cells)
    columns = min(COLUMNS, len(placed))
    width, height = (side + 2 * GAP_PX for side in placed[0].size)
    sheet = Image.new(
        "RGB", (columns * width, math.ceil(len(placed) / columns) * height), BACKGROUND
    )
    for number, cell in enumerate(placed):
        row, column = divmod(number, columns)
        sheet.paste(cell, (column * width + GAP_PX, row * height + GAP_PX))
    return sheet
