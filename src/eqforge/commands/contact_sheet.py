"""Draw samples of a dataset as a grid of images with their texts below them."""

import contextlib
import functools
import importlib.util
import textwrap
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import name_of
from eqforge.core.files.pictures import BadImage, TooManyPixels, open_rgb
from eqforge.core.files.table_file import ADVICE
from eqforge.evaluation.report.items import Item, Text
from eqforge.evaluation.report.kinds import some_items
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.shelf import make_shelf

SIDE_PX: Final = 224
GAP_PX: Final = 6
TEXT_PX: Final = 13
WIDTH_PX: Final = 1_440
"""Approximate width of a sheet."""

MOST_PANES: Final = 4
BACKGROUND, INK, BOX = (255, 255, 255), (20, 20, 20), (255, 220, 0)


def draw_sheet(
    dataset: Dataset, rows: int, boxes: bool, file: Path, only: str | None = None
) -> int:
    """Draw up to `rows` samples spread over a dataset, or only one; return their number."""
    found = some_items(dataset, rows, only)
    items = [item for item in found if any(pane.image_id for pane in item.panes)]
    if not items:
        why = f"contains no images to draw; {dataset.remedy}"
        raise InputError(f"{dataset.folder} {why if found else 'has no samples to draw'}")
    if boxes and not any(pane.boxes for item in items for pane in item.panes):
        raise InputError(f"{dataset.folder}: its samples have no boxes; omit --boxes")
    wanted = {pane.image_id for item in items for pane in item.panes[:MOST_PANES]} - {None}
    pictures = make_shelf(dataset).read(wanted)
    if lost := wanted - pictures.keys():
        name = name_of(min(map(str, lost)))
        raise InputError(f"{dataset.folder}: image {name} is missing; {ADVICE}")
    return draw_items(dataset, items, pictures, file, boxes)


def draw_items(
    dataset: Dataset,
    items: Sequence[Item],
    pictures: Mapping[str, bytes],
    file: Path,
    boxes: bool = False,
) -> int:
    """Draw items of a dataset, given encoded images by id; return the number of items drawn."""
    images = {}
    for name, data in pictures.items():
        try:
            images[name] = open_rgb(data)
        except (BadImage, TooManyPixels) as error:
            raise InputError(f"{dataset.folder}: image {name_of(name)}: {error}") from error
    cells = [_cell(item, images, boxes) for item in items]
    width, height = (max(cell.size[axis] for cell in cells) + 2 * GAP_PX for axis in (0, 1))
    columns = min(len(cells), max(1, WIDTH_PX // width))
    sheet = Image.new("RGB", (columns * width, -(-len(cells) // columns) * height), BACKGROUND)
    for number, cell in enumerate(cells):
        row, column = divmod(number, columns)
        sheet.paste(cell, (column * width + GAP_PX, row * height + GAP_PX))
    # An existing sheet stays until this one is complete; the suffix gives the format.
    temporary = file.with_name(f"{storage.TEMPORARY_PREFIX}{uuid.uuid4().hex}{file.suffix}")
    try:
        sheet.save(temporary)
        temporary.replace(file)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{file}: cannot be written: {why}") from error
    finally:
        with contextlib.suppress(OSError):  # the folder may be read-only
            temporary.unlink()
    return len(cells)


def _cell(item: Item, images: Mapping[str, Image.Image], boxes: bool) -> Image.Image:
    """Draw images side by side, each with its texts below it, and the item's texts below all."""
    panels: list[tuple[Image.Image, list[str]]] = []
    for pane in [pane for pane in item.panes if pane.image_id in images][:MOST_PANES]:
        picture = images[pane.image_id or ""].copy()
        for box in pane.boxes if boxes else ():
            right, bottom = box.x + box.width - 1, box.y + box.height - 1
            if right >= box.x and bottom >= box.y:
                ImageDraw.Draw(picture).rectangle((box.x, box.y, right, bottom), outline=BOX)
        named = [pane.name] if len(item.panes) > 2 and pane.name else []
        scale = SIDE_PX / max(picture.size)
        size = max(1, round(scale * picture.width)), max(1, round(scale * picture.height))
        fitted = picture.resize(size, Image.Resampling.BICUBIC)
        panels.append((fitted, named + _lines(pane.texts)))
    if item.comparable and len(panels) == 2:
        panels.append((difference(panels[0][0], panels[1][0]), ["difference"]))
    width = max(2, len(panels)) * (SIDE_PX + GAP_PX) - GAP_PX
    facts = " ".join(value for name, value in item.facts if name not in ("dataset", "split"))
    below = wrapped([f"{item.id}  {facts}".strip(), *_lines(item.texts)], width)
    texts = [wrapped(lines, SIDE_PX) for _, lines in panels]
    top = max(picture.height for picture, _ in panels)
    middle = top + max(map(_height, texts))
    cell = Image.new("RGB", (width, middle + _height(below)), BACKGROUND)
    draw = ImageDraw.Draw(cell)
    for number, (picture, _) in enumerate(panels):
        left = number * (SIDE_PX + GAP_PX)
        cell.paste(picture, (left, 0))
        draw.multiline_text((left, top), texts[number], INK, _font())
    draw.multiline_text((0, middle), below, INK, _font())
    return cell


def _lines(texts: Sequence[Text]) -> list[str]:
    return [f"{text.role}: {text.plain}" if text.role else text.plain for text in texts]


def wrapped(paragraphs: Sequence[str], width_px: int) -> str:
    lines: list[str] = []
    for text in paragraphs:
        if not _is_drawable(text):
            text = "(this font cannot show the text; eqforge report can)"
        characters = len(text) * width_px / max(1.0, _font().getlength(text.replace("\n", " ")))
        lines += textwrap.wrap(text, max(8, int(0.95 * characters)))
    return "\n".join(lines)


def _is_drawable(text: str) -> bool:
    """Return True if the font has every character of a text; missing ones would be boxes."""
    missing = _font().getmask("\uffff")
    return not any(
        bytes(_font().getmask(character)) == bytes(missing)
        for character in set(text)
        if character.isprintable() and not character.isspace()
    )


@functools.cache
def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return DejaVu Sans from matplotlib or the machine; Pillow's own font has only ASCII."""
    plots = importlib.util.find_spec("matplotlib")
    folders = plots.submodule_search_locations if plots is not None else None
    places = [f"{folder}/mpl-data/fonts/ttf/" for folder in folders or ()]
    for place in (*places, ""):
        with contextlib.suppress(OSError):
            return ImageFont.truetype(f"{place}DejaVuSans.ttf", TEXT_PX)
    return ImageFont.load_default(TEXT_PX)


def _height(text: str) -> int:
    return (text.count("\n") + 1) * (TEXT_PX + 6) if text else 0


def difference(first: Image.Image, second: Image.Image) -> Image.Image:
    """Shade where two images differ in any channel; darker is more."""
    scaled = second.resize(first.size, Image.Resampling.BICUBIC)
    pixels = [np.asarray(image, dtype=np.int16) for image in (first, scaled)]
    differing = np.abs(pixels[0] - pixels[1]).max(axis=2)
    # A third of the full range is black already: most changes are faint.
    shades = np.clip(255 - 3 * differing, 0, 255).astype(np.uint8)
    return Image.fromarray(shades).convert("RGB")
