"""The folder of a report: pages, data in scripts, and a note of its sources."""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.owned import (
    LISTING,
    Listing,
    check_owned,
    delete_files,
    files_below,
    remove_half_written,
)
from eqforge.core.visible import escaped_json
from eqforge.evaluation.report.items import Item, Pane
from eqforge.evaluation.report.pictures import Pictures

NOTE: Final = "eqforge-report.json"
_SITE: Final = Path(__file__).parent / "site"


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A report's sources: manifests, by SHA-256, and everything else it depends on."""

    dataset: str
    sha256: list[str]
    made_of: dict[str, object]
    complete: bool = False


def check_place(
    output: str, note: Note, *, overwrite: bool, option: str = "--output"
) -> Sequence[str]:
    """Check that a report may be written; return the files of the old report that it replaces."""
    paths = [path for path in files_below(output) if path not in (NOTE, LISTING)]
    try:
        with storage.open_below(output, NOTE) as stream:
            there = msgspec.json.decode(stream.read(), type=Note)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError) as error:
        if paths or NOTE in storage.list_names(output):
            raise InputError(
                f"{option} {output} contains files that do not belong to a report; choose a "
                "different folder"
            ) from error
        return ()
    is_other = _encoded(there, complete=False) != _encoded(note, complete=False)
    if is_other and not overwrite:
        raise InputError(
            f"{option} {output} contains a different report (for {there.dataset}); choose another "
            "folder, or add --overwrite to replace it"
        )
    check_owned(output, paths, Listing(output).files, option)
    return paths if is_other else ()


def prepare_folder(output: str, note: Note, replaced: Sequence[str]) -> "Folder":
    """Prepare a folder for a report; delete replaced and half-written files."""
    delete_files(output, replaced)
    storage.write_bytes(storage.join(output, NOTE), _encoded(note, complete=False))
    remove_half_written(output)
    listing, there = Listing(output), set(files_below(output))
    listing.files = {file for file in listing.files if file[0] in there}
    listing.save()
    return Folder(listing)


def finish(folder: "Folder", note: Note) -> None:
    folder.listing.save()  # sorted, as threads finish in any order
    place = storage.join(folder.listing.folder, NOTE)
    storage.write_bytes(place, _encoded(note, complete=True))


def _encoded(note: Note, *, complete: bool) -> bytes:
    data = msgspec.json.encode(msgspec.structs.replace(note, complete=complete), order="sorted")
    return msgspec.json.format(data, indent=2) + b"\n"


@dataclass(frozen=True, slots=True)
class Folder:
    """Writes the files of a report, at paths that begin with `below`."""

    listing: Listing
    below: str = ""

    def write_data(self, name: str, value: Any) -> None:
        """Write a value as a script: pages opened from disk may load scripts but no other data."""
        text = msgspec.json.encode(_plain(value)).decode("utf-8", "replace")
        # The script has its own file, but might be copied into a page.
        harmless = escaped_json(text).replace("<", "\\u003c")
        script = f"eqforge.take({msgspec.json.encode(name).decode()}, {harmless});\n"
        self.write(f"data/{name}.js", script)

    def write(self, path: str, text: str) -> None:
        self.listing.write(self.below + path, text.encode())

    def put(self, path: str, make: Callable[[], bytes]) -> None:
        if not os.path.exists(storage.join(self.listing.folder, self.below + path)):
            self.listing.write(self.below + path, make())


def _plain(value: Any) -> Any:
    """Convert a value for JavaScript: NaN and infinity become null, inexact integers text."""
    if type(value) is int and abs(value) > 2**53:
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
    """Return an item in the format of the pages: boxes as shares of the image, images as files."""
    return {
        "id": item.id,
        "facts": item.facts,
        "panes": [_pane(pane, pictures) for pane in item.panes],
        "texts": msgspec.to_builtins(item.texts),
        "why": msgspec.to_builtins(item.why),
        "comparable": item.comparable,
    }


def _pane(pane: Pane, pictures: Pictures) -> dict[str, Any]:
    found = pictures.stored.get(pane.image_id or "")
    width, height = (None, None) if found is None else (found.width_px, found.height_px)
    first = next((text.plain for text in pane.texts), "")
    return {
        "name": pane.name,
        "alt": f"{pane.name}: {first}" if first else pane.name or "picture",
        "texts": msgspec.to_builtins(pane.texts),
        "boxes": _boxes(pane, width, height),
        "mask": pictures.mask(pane.mask_id),
        "thumb": pictures.thumbnail(pane.image_id),
        "file": pictures.file(pane.image_id),
        "width": width,
        "height": height,
    }


def _boxes(pane: Pane, width: int | None, height: int | None) -> list[dict[str, Any]]:
    """Return boxes in [0, 1]; skip boxes outside, and all boxes if the size is unknown."""
    if not width or not height:
        return []
    found = []
    for box in pane.boxes:
        left, top = max(0.0, box.x / width), max(0.0, box.y / height)
        right = min(1.0, (box.x + box.width) / width)
        bottom = min(1.0, (box.y + box.height) / height)
        if left < right and top < bottom:
            sides = {"x": left, "y": top, "width": right - left, "height": bottom - top}
            found.append({"label": box.label, "tone": box.tone, **sides})
    return found


def link(page: str, **facets: str) -> str:
    values = "&".join(f"facet.{quote(k, safe='')}={quote(v, safe='')}" for k, v in facets.items())
    return f"{page}#{values}" if values else page


def write_page(folder: Folder, template: str, path: str, **context: Any) -> None:
    folder.write(path, rendered(template, **context))


def rendered(template: str, **context: Any) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_SITE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return str(environment.get_template(template).render(**context))


def write_assets(folder: Folder) -> None:
    for file in (_SITE / "assets").rglob("*"):
        if file.is_file():
            folder.write(file.relative_to(_SITE).as_posix(), file.read_text("utf-8"))


def write_pages(
    folder: Folder, first: str, report: dict[str, Any], lists: Sequence[tuple[str, str, int]]
) -> None:
    """Write pages and data.

    Args:
      lists: name, title and number of items of each list page.
    """
    nav = [("Overview", "index.html")]
    nav += [(title.capitalize(), f"{name}.html") for name, title, _ in lists]
    shared = {"name": report["title"], "report": report, "nav": nav}
    write_assets(folder)
    write_page(folder, first, "index.html", here="index.html", **shared)
    for name, title, items in lists:
        page, table = f"{name}.html", {"name": name, "title": title, "rows": items}
        write_page(folder, "rows.html", page, here=page, table=table, **shared)
