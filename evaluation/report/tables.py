"""Writes the items of a table as data of the pages, and gathers what they can be found by."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from eqforge.evaluation.report.columns import Facet, Gathered, Numbers
from eqforge.evaluation.report.folder import Folder, for_page
from eqforge.evaluation.report.items import Item
from eqforge.evaluation.report.kinds import spread_places
from eqforge.evaluation.report.pictures import Pictures

CHUNK: Final = 100
"""So many items are in a file of the report."""

SEARCHED: Final = 5_000
"""So many items are in a file of what is searched."""


Shown = tuple[Item, Sequence[dict[str, Any]]]
"""An item, with the rows whose columns it is found by."""


@dataclass(kw_only=True, slots=True)
class Written:
    """What was written of a table.

    Attributes:
      items: how many.
      starts: the ids of the first items of the files.
      facets, numbers: what they can be found by.
      strip: some of them, from all over, as the pages read them.
    """

    items: int = 0
    starts: list[str] = field(default_factory=list)
    facets: list[Facet] = field(default_factory=list)
    numbers: list[Numbers] = field(default_factory=list)
    strip: list[dict[str, Any]] = field(default_factory=list)


class Overlay(Protocol):
    """Something that is laid over the items, such as the answers of a model."""

    def add(self, gathered: Gathered, number: int, name: str) -> None:
        """Adds what is known of an item, by its number and id."""

    def found_in(self, written: Written) -> dict[str, Any] | None:
        """Returns where its columns are among those of the table; None if it has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TablePage:
    """A table of a report.

    Attributes:
      name: of its data, such as `samples`.
      thing: what an item is called.
      total: how many items there are, for the strip.
      again: the command that makes one anew, without its id; empty if there is none.
    """

    name: str
    thing: str
    total: int
    again: str = ""


def write_table(
    folder: Folder,
    page: TablePage,
    items: Iterable[Shown],
    pictures: Pictures,
    overlays: Sequence[Overlay] = (),
    strip: int = 0,
) -> Written:
    """Writes the items of a table.

    Args:
      folder: the report's.
      page: which table.
      items: what is shown.
      pictures: of the dataset.
      overlays: what models answered.
      strip: how many items to return, from all over.
    """
    gathered, written = Gathered(pictures), Written()
    shown: list[dict[str, Any]] = []
    rows: list[Any] = []
    texts: list[str] = []
    places = spread_places(page.total, strip)
    for number, (item, found) in enumerate(items):
        gathered.add(found)
        for overlay in overlays:
            overlay.add(gathered, number, item.id)
        if not shown:
            written.starts.append(item.id)
        shown.append(for_page(item, pictures))
        rows.append(item.rows)
        texts.append(_searched(item))
        if number in places:
            written.strip.append(shown[-1])
        if len(shown) == CHUNK:
            _flush(folder, page.name, number // CHUNK, shown, rows)
        if len(texts) == SEARCHED:
            _flush_texts(folder, page.name, number // SEARCHED, texts)
    if shown:
        _flush(folder, page.name, (gathered.items - 1) // CHUNK, shown, rows)
    if texts:
        _flush_texts(folder, page.name, (gathered.items - 1) // SEARCHED, texts)
    written.items = gathered.items
    written.facets, written.numbers = gathered.done()
    _index(folder, page, written, overlays)
    return written


def _flush(folder: Folder, name: str, number: int, shown: list[Any], rows: list[Any]) -> None:
    folder.give(f"{name}/items/{number}", shown)
    folder.give(f"{name}/rows/{number}", rows)
    shown.clear()
    rows.clear()


def _flush_texts(folder: Folder, name: str, number: int, texts: list[str]) -> None:
    folder.give(f"{name}/texts/{number}", texts)
    texts.clear()


def _searched(item: Item) -> str:
    """Returns what a search looks at: the id, the facts and the texts, in lower case."""
    said = [item.id, *(value for _, value in item.facts)]
    said += [text.plain for text in item.all_texts()]
    if item.why is not None:
        said += [item.why.reason, item.why.detail]
    return "\n".join(said).lower()


def _index(folder: Folder, page: TablePage, written: Written, overlays: Sequence[Overlay]) -> None:
    for place, facet in enumerate(written.facets):
        folder.give(f"{page.name}/facets/{place}", facet.data())
    for place, number in enumerate(written.numbers):
        folder.give(f"{page.name}/numbers/{place}", number.data())
    index = {
        "rows": written.items,
        "chunk": CHUNK,
        "search_chunk": SEARCHED,
        "thing": page.thing,
        "again": page.again,
        "starts": written.starts,
        "sorted": written.starts == sorted(written.starts),
        "facets": [_facet(facet) for facet in written.facets],
        "numbers": [_number(number) for number in written.numbers],
        "models": [found for each in overlays if (found := each.found_in(written)) is not None],
    }
    folder.give(f"{page.name}/index", index)


def _facet(facet: Facet) -> dict[str, Any]:
    values, counts = list(facet.places), facet.counts()
    return {"title": facet.title, "values": values, "counts": counts, "many": facet.is_many}


def _number(number: Numbers) -> dict[str, Any]:
    values = number.values()
    finite = values[np.isfinite(values)]
    return {
        "title": number.title,
        "group": number.group,
        "least": float(finite.min()),
        "most": float(finite.max()),
    }
