"""The rows of an export in an order of the format's own, in bounded memory."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import msgspec
import pyarrow as pa

from eqforge.transforms.dataset.sorted_runs import Run, RunSorter, merge_runs
from eqforge.transforms.export.target import PIECE_ROWS, Export, Record

_END: Final = "\0"
"""Sorts before every sign of an id."""

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Placed:
    """A row that waits, with the text by which it is sorted."""

    place: str
    row: Row


def records_by(
    export: Export, columns: Sequence[str], place: Callable[[Row], str]
) -> Iterator[Record]:
    """Yields all rows with their pictures; see rows_by."""
    fields = [export.schema.field(name) for name in _names(export, columns)]
    found = rows_by(export, columns, place)
    while rows := list(islice(found, PIECE_ROWS)):
        for piece in export.joined(pa.Table.from_pylist(rows, schema=pa.schema(fields))):
            yield from export.records(piece)


def rows_by(export: Export, columns: Sequence[str], place: Callable[[Row], str]) -> Iterator[Row]:
    """Yields all rows, sorted by their place, then by their ids.

    Args:
      export: whose rows they are.
      columns: the columns of text and structures that are needed, where the rows have them; ids and
        keys of pictures are read besides.
      place: where a row belongs, as a text that sorts.

    Raises:
      InputError: a file is missing or damaged.
    """
    with tempfile.TemporaryDirectory(prefix="eqforge-") as folder:
        runs = _runs(export, _names(export, columns), place, f"{folder}/")
        for _, data in merge_runs(runs):
            yield msgspec.json.decode(data, type=_Placed).row


def _names(export: Export, columns: Sequence[str]) -> list[str]:
    wanted = {*columns, *export.keys, *export.pictures}
    return [name for name in export.schema.names if name in wanted]


def _runs(export: Export, names: list[str], place: Callable[[Row], str], folder: str) -> list[Run]:
    """Returns the rows as sorted runs, which are files of a folder where they are many."""
    sorter = RunSorter(lambda placed: placed.place, 1, folder)
    runs: list[Run] = []
    for split in export.splits:
        for part in export.parts(split):
            for table in part.tables():
                for row in table.select(names).to_pylist():
                    key = _END.join((place(row), *(row[name] for name in export.keys)))
                    runs += [run for _, run in sorter.add(_Placed(place=key, row=row))]
    return [*runs, *(run for _, run in sorter.flush())]
