"""The files of a report: pages, and data in scripts: a page on disk may read nothing else."""

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from eqforge.core.files import storage
from eqforge.core.visible import escaped_json
from eqforge.evaluation.report.items import Item, Pane
from eqforge.evaluation.report.pictures import Pictures, shown


class Folder:
    """Writes the files of a report.

    Args:
      root: its folder.
    """

    def __init__(self, root: str) -> None:
        self.root = root

    def give(self, name: str, value: Any) -> None:
        """Writes a value as a script that hands it to the page.

        Args:
          name: the path below `data`, without its suffix; the page asks for it by this name.
          value: what JSON can say; of numbers that it cannot, null.
        """
        text = msgspec.json.encode(_plain(value)).decode("utf-8", "replace")
        # Such a script stands in a file of its own, but might be copied into a page.
        harmless = escaped_json(text).replace("<", "\\u003c")
        script = f"eqforge.take({msgspec.json.encode(name).decode()}, {harmless});\n"
        self.write(f"data/{name}.js", script)

    def write(self, path: str, text: str) -> None:
        """Writes a text file."""
        storage.write_bytes(storage.join(self.root, path), text.encode(), synced=False)


_MOST: Final = 2**53
"""JavaScript's numbers are exact up to here."""


def _plain(value: Any) -> Any:
    """Returns a value that pages read as it is.

    What is not finite becomes null, text whole, and numbers that JavaScript would round texts.
    """
    if type(value) is int and abs(value) > _MOST:
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_plain(str(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in value]
    return value


def for_page(item: Item, pictures: Pictures) -> dict[str, Any]:
    """Returns an item as the pages read it: boxes as shares of the picture, pictures as files."""
    return {
        "id": item.id,
        "facts": item.facts,
        "panes": [_pane(pane, pictures) for pane in item.panes],
        "texts": _texts(item.texts),
        "why": None if item.why is None else msgspec.to_builtins(item.why),
        "comparable": item.comparable,
    }


def _pane(pane: Pane, pictures: Pictures) -> dict[str, Any]:
    place = shown(pane.image_id, pictures)
    said = next((text.plain for text in pane.texts), "")
    return {
        "name": pane.name,
        "alt": f"{pane.name}: {said}" if said else pane.name or "picture",
        "texts": _texts(pane.texts),
        "boxes": _boxes(pane, place["width"], place["height"]),
        "mask": pictures.mask(pane.mask_id),
        **place,
    }


def _texts(texts: Any) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(text) for text in texts]


def _boxes(pane: Pane, width: int | None, height: int | None) -> list[dict[str, Any]]:
    """Returns the boxes of a picture, [0, 1]; none without a size, or without an area inside."""
    if not width or not height:
        return []
    found = []
    for box in pane.boxes:
        left, top = max(0.0, box.x / width), max(0.0, box.y / height)
        right = min(1.0, (box.x + box.width) / width)
        bottom = min(1.0, (box.y + box.height) / height)
        if left < right and top < bottom:
            found.append(
                {
                    "label": box.label,
                    "tone": box.tone,
                    **{"x": left, "y": top, "width": right - left, "height": bottom - top},
                }
            )
    return found
