"""Draws a contact sheet of a dataset: its pictures, and the texts that belong to them."""

import math
import re
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from PIL import Image, ImageDraw

from eqforge.commands.fonts import Lettering, advice
from eqforge.commands.sheet_entries import Entry, read_entries
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
LINES = 5
"""Lines of text below two pictures: the id and what differs, and the captions, wrapped."""

MAX_CHARACTERS = 2_000
"""How much of a text is read; no cell has room for more."""

COLUMNS = 3
BACKGROUND, INK, FAINT, BOX = (255, 255, 255), (20, 20, 20), (120, 120, 120), (255, 220, 0)
# A line may break after a space, and around every character of Chinese, Japanese and Thai.
_ALONE: Final = (
    r"\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u0e01-\u0e30\u0e40-\u0e46\U00020000-\U0003ffff"
)
_MARKS: Final = r"[\u0e31-\u0e3a\u0e47-\u0e4e\u3001\u3002\uff0c]*"
_PIECE: Final = re.compile(rf"[{_ALONE}]{_MARKS}|\s+|[^\s{_ALONE}]+")


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
    below = LINES if any(len(entry.pictures) > 1 for entry in entries) else 1
    cells = [_cell(entry, images, below, lettering) for entry in entries]
    if lettering.missing:
        print(advice(lettering.missing), file=sys.stderr)
    # An existing sheet stays until this one is complete; the suffix gives the format.
    temporary = file.with_name(f"{storage.TEMPORARY_PREFIX}{uuid.uuid4().hex}{file.suffix}")
    try:
        _grid(cells).save(temporary)
        temporary.replace(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be written: {error}") from error
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


def _cell(
    entry: Entry, images: dict[str, Image.Image], below: int, lettering: Lettering
) -> Image.Image:
    """Draws two pictures with their texts below them, or one with its texts beside it.

    Args:
      entry: what is drawn.
      images: the pictures by their keys.
      below: lines of text below the pictures.
      lettering: draws the texts.
    """
    width, height = 2 * SIDE_PX + GAP_PX, SIDE_PX + below * LINE_PX + GAP_PX
    cell = Image.new("RGB", (width, height), BACKGROUND)
    right = SIDE_PX + GAP_PX
    for x, name, boxes in zip((0, right), entry.pictures, entry.boxes, strict=False):
        cell.paste(_fitted(_with_boxes(images[name], boxes)), (x, 0))
    (title, *_) = _wrapped((entry.title,), width, 1, lettering)
    lettering.draw(cell, (0, SIDE_PX + 2), title, FAINT)
    if len(entry.pictures) == 1:
        _write(cell, (right, 0), entry.texts[0], SIDE_PX // LINE_PX, lettering)
    else:
        for x, texts in zip((0, right), entry.texts, strict=False):
            _write(cell, (x, SIDE_PX + 2 + LINE_PX), texts, below - 1, lettering)
    return cell


def _write(
    cell: Image.Image,
    place: tuple[int, int],
    texts: Sequence[str],
    lines: int,
    lettering: Lettering,
) -> None:
    x, y = place
    for number, line in enumerate(_wrapped(texts, SIDE_PX, lines, lettering)):
        lettering.draw(cell, (x, y + number * LINE_PX), line, INK)


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


def _wrapped(texts: Sequence[str], width_px: int, lines: int, lettering: Lettering) -> list[str]:
    """Returns texts as lines that fit a width; if there are too many, the last ends in `…`."""
    beginnings = [text[:MAX_CHARACTERS] for text in texts[: lines + 1]]
    found = [line for text in beginnings for line in ("", *_lines(text, width_px, lettering))][1:]
    if len(found) <= lines:
        return found
    last = found[lines - 1]
    while last and lettering.width(f"{last}…") > width_px:
        last = last[:-1]
    return [*found[: lines - 1], f"{last}…"]


def _lines(text: str, width_px: int, lettering: Lettering) -> Iterator[str]:
    line = ""
    for piece in _pieces(text, width_px, lettering):
        if line and lettering.width((line + piece).rstrip()) > width_px:
            yield line.rstrip()
            line = ""
        line = (line + piece).lstrip()
    yield line.rstrip()


def _pieces(text: str, width_px: int, lettering: Lettering) -> Iterator[str]:
    """Yields the unbreakable pieces of a text: words, spaces, and the letters of overlong words."""
    for piece in _PIECE.findall(text):
        if piece.isspace():
            yield " "
        elif lettering.width(piece) > width_px:
            yield from piece
        else:
            yield piece


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
