"""Draws a contact sheet of a dataset: its pictures, and the texts that belong to them."""

import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from eqforge.commands.fonts import Lettering, advice
from eqforge.commands.sheet_entries import Entry, read_entries
from eqforge.commands.sheet_lines import whole, wrapped
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.shelf import make_shelf
from eqforge.schemas.errors import InputError
from eqforge.schemas.io import storage
from eqforge.schemas.io.checked import name_of
from eqforge.schemas.io.pictures import BadImage, TooManyPixels, open_rgb

SIDE_PX = 224
GAP_PX = 6
TEXT_PX = 13
LINE_PX = TEXT_PX + 4
CAPTION_LINES = 6
"""The most lines of a caption below its picture; an id or a reason has as many as it takes."""

TEXT_GAP_PX = 2
COLUMNS = 3
BACKGROUND, INK, FAINT, BOX = (255, 255, 255), (20, 20, 20), (120, 120, 120), (255, 220, 0)


def draw_sheet(
    dataset: Dataset, rows: int, boxes: bool, file: Path, only: str | None = None
) -> int:
    """Draws samples from all over a dataset, in the order of their ids; returns how many.

    Args:
      dataset: one with pictures.
      rows: the most samples.
      boxes: whether to draw the boxes of the objects.
      file: the picture to write; its suffix gives the format.
      only: the id of the one sample to draw; None draws from all over.

    Raises:
      InputError: the dataset has no pictures or no boxes, or the file cannot be written.
    """
    entries = read_entries(dataset, rows, boxes, only)
    return draw_entries(dataset, entries, _read(dataset, entries), file)


def draw_entries(
    dataset: Dataset, entries: Sequence[Entry], pictures: Mapping[str, bytes], file: Path
) -> int:
    """Draws cells; returns how many.

    Args:
      dataset: whose they are.
      entries: what is drawn.
      pictures: the encoded pictures by their keys.
      file: the picture to write; its suffix gives the format.

    Raises:
      InputError: a picture does not decode, or the file cannot be written.
    """
    images = {name: _opened(dataset, name, data) for name, data in pictures.items()}
    lettering = Lettering(TEXT_PX)
    cells = [_cell(entry, images, lettering) for entry in entries]
    if lettering.missing:
        print(advice(lettering.missing), file=sys.stderr)
    # An existing sheet stays until this one is complete; the suffix gives the format.
    temporary = file.with_name(f"{storage.TEMPORARY_PREFIX}{uuid.uuid4().hex}{file.suffix}")
    try:
        _grid(cells).save(temporary)
        temporary.replace(file)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{file}: cannot be written: {why}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return len(cells)


def _read(dataset: Dataset, entries: Sequence[Entry]) -> dict[str, bytes]:
    wanted = {name for entry in entries for name in entry.pictures}
    found = make_shelf(dataset).read(wanted)
    if lost := wanted - found.keys():
        raise InputError(
            f"{dataset.folder}: no image {name_of(min(lost))}; eqforge verify finds all damage"
        )
    return found


def _opened(dataset: Dataset, name: str, data: bytes) -> Image.Image:
    try:
        return open_rgb(data)
    except (BadImage, TooManyPixels) as error:
        raise InputError(f"{dataset.folder}: image {name_of(name)}: {error}") from error


def _cell(entry: Entry, images: dict[str, Image.Image], lettering: Lettering) -> Image.Image:
    """Draws two pictures with their texts below them, or one with its texts beside it.

    The id and the reason are drawn whole, in as many lines as they take.
    """
    width, right = 2 * SIDE_PX + GAP_PX, SIDE_PX + GAP_PX
    shown = zip(entry.pictures, entry.boxes, strict=False)
    pictures = [_fitted(_with_boxes(images[name], boxes)) for name, boxes in shown]
    is_pair = len(pictures) > 1
    most = CAPTION_LINES if is_pair else SIDE_PX // LINE_PX
    columns = [wrapped(texts, SIDE_PX, most, lettering) for texts in entry.texts[: len(pictures)]]
    titles = [whole(text, width, lettering) for text in (entry.title, entry.why)]
    texts_px = LINE_PX * max(map(len, columns), default=0)
    top = max(picture.height for picture in pictures)
    title_y = TEXT_GAP_PX + (top if is_pair else max(top, texts_px))
    below_y = title_y + LINE_PX * sum(map(len, titles))
    cell = Image.new("RGB", (width, below_y + is_pair * texts_px + GAP_PX), BACKGROUND)
    for x, picture in zip((0, right), pictures, strict=False):
        cell.paste(picture, (x, 0))
    _write(cell, (0, title_y), titles[0], lettering, FAINT)
    _write(cell, (0, title_y + LINE_PX * len(titles[0])), titles[1], lettering)
    for place, lines in zip(((0, below_y), (right, below_y)), columns, strict=False):
        _write(cell, place if is_pair else (right, 0), lines, lettering)
    return cell


def _write(
    cell: Image.Image,
    place: tuple[int, int],
    lines: Sequence[str],
    lettering: Lettering,
    ink: tuple[int, int, int] = INK,
) -> None:
    x, y = place
    for number, line in enumerate(lines):
        lettering.draw(cell, (x, y + number * LINE_PX), line, ink)


def _with_boxes(picture: Image.Image, objects: Sequence[dict[str, Any]]) -> Image.Image:
    drawn = picture.copy()
    for shown in objects:
        box = shown["box"]
        if box is not None and min(box["width"], box["height"]) > 0:
            right, bottom = box["x"] + box["width"] - 1, box["y"] + box["height"] - 1
            ImageDraw.Draw(drawn).rectangle((box["x"], box["y"], right, bottom), outline=BOX)
    return drawn


def _fitted(picture: Image.Image) -> Image.Image:
    """Returns a picture scaled so that its longer side is SIDE_PX."""
    scale = SIDE_PX / max(picture.size)
    size = tuple(max(1, round(side * scale)) for side in picture.size)
    return picture.resize((size[0], size[1]), Image.Resampling.BICUBIC)


def _grid(cells: Sequence[Image.Image]) -> Image.Image:
    """Places cells in rows, each as high as its highest cell."""
    rows = [cells[first : first + COLUMNS] for first in range(0, len(cells), COLUMNS)]
    heights = [max(cell.height for cell in row) + 2 * GAP_PX for row in rows]
    width = cells[0].width + 2 * GAP_PX
    sheet = Image.new("RGB", (len(rows[0]) * width, sum(heights)), BACKGROUND)
    y = GAP_PX
    for row, height in zip(rows, heights, strict=True):
        for column, cell in enumerate(row):
            sheet.paste(cell, (column * width + GAP_PX, y))
        y += height
    return sheet
