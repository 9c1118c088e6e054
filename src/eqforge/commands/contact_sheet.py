"""Draws a contact sheet of a dataset: its pictures, and the texts that belong to them."""

import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image, ImageDraw

from eqforge.commands.fonts import Lettering, advice
from eqforge.commands.sheet_lines import whole, wrapped
from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import name_of
from eqforge.core.files.pictures import BadImage, TooManyPixels, open_rgb
from eqforge.evaluation.report.items import Box, Item, Pane, Text
from eqforge.evaluation.report.kinds import some_items
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.shelf import make_shelf

SIDE_PX: Final = 224
GAP_PX: Final = 6
TEXT_PX: Final = 13
LINE_PX: Final = TEXT_PX + 4
CAPTION_LINES: Final = 6
"""The most lines of a caption below its picture; an id or a reason has as many as it takes."""

TEXT_GAP_PX: Final = 2
WIDTH_PX: Final = 1_440
"""About how wide a sheet is; cells are as wide as their pictures side by side."""

MOST_PANES: Final = 4
BACKGROUND, INK, FAINT, BOX = (255, 255, 255), (20, 20, 20), (120, 120, 120), (255, 220, 0)
DIFFERENCE: Final = "difference"


def draw_sheet(
    dataset: Dataset, rows: int, boxes: bool, file: Path, only: str | None = None
) -> int:
    """Draws samples from all over a dataset, in the order of their ids; returns how many.

    Args:
      dataset: one with pictures.
      rows: the most samples, or groups of them that belong together.
      boxes: whether to draw the boxes of the objects.
      file: the picture to write; its suffix gives the format.
      only: the id of the one sample to draw; None draws from all over.

    Raises:
      InputError: the dataset has no pictures or no boxes, or the file cannot be written.
    """
    found = some_items(dataset, rows, only)
    items = [item for item in found if any(pane.image_id for pane in item.panes)]
    if not items:
        why = f"holds no pictures to draw; {dataset.remedy}"
        raise InputError(f"{dataset.folder}: {why if found else 'has no samples to draw'}")
    if boxes and not any(pane.boxes for item in items for pane in item.panes):
        raise InputError(f"{dataset.folder}: its samples have no boxes")
    return draw_items(dataset, items, _read(dataset, items), file, boxes)


def draw_items(
    dataset: Dataset,
    items: Sequence[Item],
    pictures: Mapping[str, bytes],
    file: Path,
    boxes: bool = False,
) -> int:
    """Draws items; returns how many.

    Args:
      dataset: whose they are.
      items: what is drawn.
      pictures: the encoded pictures by their ids.
      file: the picture to write; its suffix gives the format.
      boxes: whether to draw the boxes of the objects.

    Raises:
      InputError: a picture does not decode, or the file cannot be written.
    """
    images = {name: _opened(dataset, name, data) for name, data in pictures.items()}
    lettering = Lettering(TEXT_PX)
    cells = [_cell(item, images, boxes, lettering) for item in items]
    if lettering.missing:
        print(advice(lettering.missing), file=sys.stderr)
    # An existing sheet stays until this one is complete; the suffix gives the format.
    temporary = file.with_name(f"{storage.TEMPORARY_PREFIX}{uuid.uuid4().hex}{file.suffix}")
    try:
        _sheet(cells).save(temporary)
        temporary.replace(file)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{file}: cannot be written: {why}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return len(cells)


def _read(dataset: Dataset, items: Sequence[Item]) -> dict[str, bytes]:
    wanted = {pane.image_id for item in items for pane in item.panes[:MOST_PANES]} - {None}
    found = make_shelf(dataset).read(wanted)
    if lost := wanted - found.keys():
        raise InputError(
            f"{dataset.folder}: no image {name_of(min(map(str, lost)))}; eqforge verify finds all "
            "damage"
        )
    return found


def _opened(dataset: Dataset, name: str, data: bytes) -> Image.Image:
    try:
        return open_rgb(data)
    except (BadImage, TooManyPixels) as error:
        raise InputError(f"{dataset.folder}: image {name_of(name)}: {error}") from error


@dataclass(frozen=True, kw_only=True, slots=True)
class _Panel:
    """A picture of a cell, and the texts below it."""

    picture: Image.Image
    texts: tuple[Text, ...] = ()


def _cell(
    item: Item, images: Mapping[str, Image.Image], boxes: bool, lettering: Lettering
) -> Image.Image:
    """Draws pictures side by side with their texts below them, or one with its texts beside it.

    The id and the reason are drawn whole, in as many lines as they take.
    """
    panels = list(_panels(item, images, boxes))
    beside = len(panels) == 1
    width = max(2, len(panels)) * (SIDE_PX + GAP_PX) - GAP_PX
    texts = [*panels[0].texts, *item.texts] if beside else list(item.texts)
    most = max(SIDE_PX // LINE_PX if beside else CAPTION_LINES, 3 * len(texts))
    below = [
        _lines(panel.texts, SIDE_PX, CAPTION_LINES, lettering)
        for panel in ([] if beside else panels)
    ]
    title = whole(_title(item), width, lettering)
    common = _lines(texts, SIDE_PX if beside else width, most, lettering)
    top = max(panel.picture.height for panel in panels)
    common_px = LINE_PX * len(common)
    first_px = max(top, common_px) if beside else top
    parts_px = [first_px + TEXT_GAP_PX, LINE_PX * len(title), 0 if beside else common_px]
    parts_px += [LINE_PX * max(map(len, below), default=0), GAP_PX]
    cell = Image.new("RGB", (width, sum(parts_px)), BACKGROUND)
    for number, panel in enumerate(panels):
        cell.paste(panel.picture, (number * (SIDE_PX + GAP_PX), 0))
    _write(cell, (0, parts_px[0]), title, lettering, FAINT)
    where = (SIDE_PX + GAP_PX, 0) if beside else (0, sum(parts_px[:2]))
    _write(cell, where, common, lettering)
    for number, lines in enumerate(below):
        _write(cell, (number * (SIDE_PX + GAP_PX), sum(parts_px[:3])), lines, lettering)
    return cell


def _panels(item: Item, images: Mapping[str, Image.Image], boxes: bool) -> Iterable[_Panel]:
    """Yields the pictures of an item, and what differs between two that can be compared."""
    there = [pane for pane in item.panes if pane.image_id in images][:MOST_PANES]
    for pane in there:
        drawn = _with_boxes(images[pane.image_id or ""], pane.boxes if boxes else ())
        yield _Panel(picture=_fitted(drawn), texts=_texts_of(pane, item))
    if item.comparable and len(there) == 2:
        first, second = (_fitted(images[pane.image_id or ""]) for pane in there)
        yield _Panel(
            picture=difference(first, second),
            texts=(Text(parts=(DIFFERENCE,)),),
        )


def _texts_of(pane: Pane, item: Item) -> tuple[Text, ...]:
    """Returns the texts of a picture; among more than two it is named."""
    named = (Text(parts=(pane.name,)),) if len(item.panes) > 2 and pane.name else ()
    return (*named, *pane.texts)


def difference(first: Image.Image, second: Image.Image) -> Image.Image:
    """Returns where two pictures differ, the darker the more, in any of the three channels.

    Args:
      first: a picture, RGB.
      second: another; if its size differs it is scaled to that of the first.
    """
    scaled = second.resize(first.size, Image.Resampling.BICUBIC)
    pixels = [np.asarray(image, dtype=np.int16) for image in (first, scaled)]
    differing = np.abs(pixels[0] - pixels[1]).max(axis=2)
    # A third of the full range is black already: most changes are faint.
    shades = np.clip(255 - 3 * differing, 0, 255).astype(np.uint8)
    return Image.fromarray(shades).convert("RGB")


def _title(item: Item) -> str:
    shown = (value for name, value in item.facts if name not in ("dataset", "split"))
    return "  ".join([item.id, " ".join(shown)]).strip()


def _lines(texts: Sequence[Text], width_px: int, most: int, lettering: Lettering) -> list[str]:
    said = [f"{text.role}: {text.plain}" if text.role else text.plain for text in texts]
    return wrapped(said, width_px, most, lettering)


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


def _with_boxes(picture: Image.Image, boxes: Sequence[Box]) -> Image.Image:
    drawn = picture.copy()
    for box in boxes:
        if min(box.width, box.height) > 0:
            corners = (box.x, box.y, box.x + box.width - 1, box.y + box.height - 1)
            if corners[2] >= corners[0] and corners[3] >= corners[1]:
                ImageDraw.Draw(drawn).rectangle(corners, outline=BOX)
    return drawn


def _fitted(picture: Image.Image) -> Image.Image:
    """Returns a picture scaled so that its longer side is SIDE_PX."""
    scale = SIDE_PX / max(picture.size)
    size = tuple(max(1, round(side * scale)) for side in picture.size)
    return picture.resize((size[0], size[1]), Image.Resampling.BICUBIC)


def _sheet(cells: Sequence[Image.Image]) -> Image.Image:
    """Places each cell below the shortest column, so that no column has gaps."""
    width = max(cell.width for cell in cells) + 2 * GAP_PX
    columns = min(len(cells), max(1, WIDTH_PX // width))
    ends = [GAP_PX] * columns
    places = []
    for cell in cells:
        column = ends.index(min(ends))
        places.append((column * width + GAP_PX, ends[column]))
        ends[column] += cell.height + 2 * GAP_PX
    sheet = Image.new("RGB", (columns * width, max(ends)), BACKGROUND)
    for cell, place in zip(cells, places, strict=True):
        sheet.paste(cell, place)
    return sheet
