"""How many bytes a report will take, told before it is written by some items from all over."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eqforge.evaluation.report.folder import Folder
from eqforge.evaluation.report.items import Item
from eqforge.evaluation.report.kinds import spread_places
from eqforge.evaluation.report.pictures import (
    Pictures,
    forecast_masks,
    forecast_thumbnails,
)
from eqforge.evaluation.report.site import site_bytes
from eqforge.evaluation.report.tables import TablePage, write_table
from eqforge.schemas.dataset.reader import Dataset

_TRIED: Final = 100
"""So many items of a table are made to tell how long all will be."""

Shown = tuple[Item, Sequence[dict[str, Any]]]
"""An item, with the rows that it was made of."""

_CHART_BYTES: Final = 1_500
"""About so long is a distribution of 40 bins."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A table of a report before it is written.

    Attributes:
      page: what it is called.
      rows: its rows, in their order.
      group: the column whose value the rows of an item share; None where each row is one.
      items: returns the items that some rows make, each with its rows.
    """

    page: TablePage
    rows: pa.Table
    group: str | None
    items: Callable[[pa.Table], Iterable[Shown]]


def forecast(dataset: Dataset, pictures: Pictures, tables: Iterable[Listed]) -> int:
    """Returns about how many bytes the files of a report will have.

    Args:
      dataset: the dataset.
      pictures: its pictures, and those of its rejects that were kept.
      tables: those that will be written.

    Raises:
      InputError: a file of the dataset is missing or damaged.
    """
    data = sum(_table_bytes(each, pictures) for each in tables)
    whole = pictures.num_bytes if pictures.whole else 0
    small = forecast_thumbnails(dataset, pictures)
    return round(data + whole + small + forecast_masks(dataset, pictures) + site_bytes())


def forecast_lists(
    datasets: Iterable[Dataset], pictures: Pictures, lists: Mapping[str, Sequence[Shown]]
) -> int:
    """Returns about how many bytes the files of some lists of items will have.

    Args:
      datasets: whose samples these are.
      pictures: of the datasets; those that no item shows do not count.
      lists: the items of each, with their rows.

    Raises:
      InputError: a file of a dataset is missing or damaged.
    """
    panes = [pane for items in lists.values() for item, _ in items for pane in item.panes]
    named, masked = ({getattr(pane, key) for pane in panes} for key in ("image_id", "mask_id"))
    stored = {name: each for name, each in pictures.stored.items() if name in named}
    seen = replace(pictures, stored=stored, masks=pictures.masks & masked)
    data = sum(_list_bytes(name, items, seen) for name, items in lists.items())
    drawn = max(forecast_thumbnails(each, seen) + forecast_masks(each, seen) for each in datasets)
    return round(data + seen.num_bytes + drawn + site_bytes())


def _list_bytes(name: str, items: Sequence[Shown], pictures: Pictures) -> float:
    page = TablePage(name=name, thing=name, total=len(items))
    some = [items[place] for place in sorted(spread_places(len(items), _TRIED))] if items else []
    return _measured(page, some, len(items), pictures)


def _table_bytes(listed: Listed, pictures: Pictures) -> float:
    some, total = _some(listed)
    return _measured(listed.page, listed.items(some), total, pictures)


def _measured(page: TablePage, some: Iterable[Shown], total: int, pictures: Pictures) -> float:
    """Returns about how long the files of a table are, by some of its items."""
    measured = _Measured("")
    written = write_table(measured, page, some, pictures)
    share = total / written.items if written.items else 0.0
    return share * measured.growing + measured.fixed + _CHART_BYTES * len(written.numbers)


def _some(listed: Listed) -> tuple[pa.Table, int]:
    """Returns the rows of some items, and how many items there are."""
    rows, group = listed.rows, listed.group
    if not rows.num_rows:
        return rows, 0
    if group is None:
        return rows.take(sorted(spread_places(rows.num_rows, _TRIED))), rows.num_rows
    keys = pc.unique(rows.column(group))
    chosen = keys.take(pa.array(sorted(spread_places(len(keys), _TRIED))))
    return rows.filter(pc.is_in(rows.column(group), value_set=chosen)), len(keys)


class _Measured(Folder):
    """Adds up the lengths of files in place of writing them.

    Attributes:
      growing: of those that have a part for each item.
      fixed: of the others.
    """

    growing = 0
    fixed = 0

    def write(self, path: str, text: str) -> None:
        """Adds the length of a file."""
        length = len(text.encode())
        if path.endswith("/index.js"):
            self.fixed += length
        else:
            self.growing += length
