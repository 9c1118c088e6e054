"""Writes the report of a comparison: what was added, removed and changed, with the pictures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from eqforge.core.errors import InputError
from eqforge.core.versions import version
from eqforge.core.visible import json_text, shortened
from eqforge.evaluation.report.differing import differing_words
from eqforge.evaluation.report.folder import Folder
from eqforge.evaluation.report.items import Item, Pane, Text, marked, plain
from eqforge.evaluation.report.kinds import Row, kind_of, rows_of
from eqforge.evaluation.report.links import link
from eqforge.evaluation.report.pictures import Pictures, read_pictures, write_some
from eqforge.evaluation.report.place import Note, check_place, finish, take_place
from eqforge.evaluation.report.site import write_assets, write_page
from eqforge.evaluation.report.tables import TablePage, Written, write_table
from eqforge.schemas.dataset.compare import compare_tables
from eqforge.schemas.dataset.differences import TableDifference, compare_manifests
from eqforge.schemas.dataset.reader import Dataset

COLUMNS: Final = "changed columns"
_TABLE: Final = "samples"
_STRIP: Final = 8
_THINGS: Final = {
    "added": "samples that B adds",
    "removed": "samples of A alone",
    "changed": "changed samples",
}
_SHOWN: Final = 300
"""So many characters of a value that is no text are shown; the whole rows are one click away."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The report of a comparison.

    Attributes:
      page: its first page.
      added, removed, changed: how many samples each list has.
    """

    page: str
    added: int
    removed: int
    changed: int


def write_comparison(
    a: Dataset, b: Dataset, output: str, *, only: Sequence[str] = (), overwrite: bool
) -> Comparison:
    """Writes which samples B adds, lacks and changes.

    Args:
      a: the first dataset.
      b: the second dataset.
      output: folder of the report.
      only: the columns that are compared; all if empty.
      overwrite: whether a report of something else in the folder is replaced.

    Raises:
      InputError: the folder holds something else, the samples have no common key, or a file of a
        dataset cannot be read.
    """
    for dataset in (a, b):
        if not dataset.files(_TABLE):
            raise InputError(f"{dataset.folder}: has no samples to show")
    if only and not any(set(only) & set(dataset.columns(_TABLE)) for dataset in (a, b)):
        raise InputError(f"--report shows samples, which have no column {' or '.join(only)}")
    most = sum(each.manifest.num_rows(_TABLE) for each in (a, b))
    found = compare_tables(a, b, _TABLE, only, most)
    note = Note(
        dataset=b.manifest.dataset,
        sha256=[a.sha256, b.sha256],
        made_of={"eqforge": version("eqforge"), "only": sorted(only)},
    )
    check_place(output, note, overwrite=overwrite, option="--report")
    pictures = _pictures(a, b)
    items = {
        "added": list(_alone(b, found.added_examples)),
        "removed": list(_alone(a, found.removed_examples)),
        "changed": list(_changed(a, b, found, only)),
    }
    take_place(output, note, overwrite=overwrite, option="--report")
    folder = Folder(output)
    write = _Writer(folder, pictures, (a, b), output)
    lists = {name: write.table(name, some) for name, some in items.items()}
    _pages(folder, (a, b), found, lists)
    finish(output, note)
    return Comparison(
        page=f"{output.rstrip('/')}/index.html",
        added=found.added,
        removed=found.removed,
        changed=found.changed,
    )


def _pictures(a: Dataset, b: Dataset) -> Pictures:
    """Returns the pictures of both; equal ids are equal pictures."""
    pictures = read_pictures(a, whole=True)
    others = read_pictures(b, whole=True)
    pictures.stored |= others.stored
    pictures.scores |= others.scores
    pictures.masks |= others.masks
    return pictures


class _Writer:
    """Writes lists of items, and the pictures that they show."""

    def __init__(
        self, folder: Folder, pictures: Pictures, both: Sequence[Dataset], output: str
    ) -> None:
        self._folder, self._pictures, self._both = folder, pictures, both
        self._output = output

    def table(self, name: str, items: Sequence[tuple[Item, list[Row]]]) -> Written:
        """Writes a list, the pictures of its items first."""
        for dataset in self._both:
            panes = (pane for item, _ in items for pane in item.panes)
            write_some(dataset, panes, self._pictures, self._output)
        page = TablePage(name=name, thing=_THINGS[name], total=len(items))
        return write_table(self._folder, page, items, self._pictures, (), _STRIP)


def _alone(dataset: Dataset, keys: Sequence[str]) -> Iterator[tuple[Item, list[Row]]]:
    """Yields the samples that only one dataset has."""
    make = _maker(dataset)
    for row in _rows(dataset, keys):
        yield make(row), [row]


def _maker(dataset: Dataset) -> Callable[[Row], Item]:
    """Returns what shows one sample by itself."""
    make = kind_of(dataset).make(dataset)
    return lambda row: msgspec.structs.replace(make([row]), id=row["sample_id"])


def _rows(dataset: Dataset, keys: Sequence[str]) -> Iterator[Row]:
    """Yields the samples with some ids, in their order."""
    wanted = pa.array(sorted(keys), pa.string())
    batches = [
        batch.filter(pc.is_in(batch.column("sample_id"), value_set=wanted))
        for batch in dataset.batches(_TABLE, rows=10_000)
    ]
    if batches:
        yield from rows_of(pa.Table.from_batches(batches).sort_by("sample_id"))


def _changed(
    a: Dataset, b: Dataset, found: TableDifference, only: Sequence[str]
) -> Iterator[tuple[Item, list[Row]]]:
    columns = {record.key: record.columns for record in found.changed_examples}
    makers = _maker(a), _maker(b)
    rows = (_rows(dataset, list(columns)) for dataset in (a, b))
    for row_a, row_b in zip(*rows, strict=True):
        name = row_b["sample_id"]
        item = _both(makers[0](row_a), makers[1](row_b), columns[name], only)
        whole = (("in A", dict(row_a)), ("in B", dict(row_b)))
        shown = msgspec.structs.replace(item, rows=whole)
        yield shown, [{**row_b, COLUMNS: sorted(columns[name])}]


def _both(
    a: Item, b: Item, columns: Mapping[str, tuple[Any, Any]], only: Sequence[str] = ()
) -> Item:
    """Returns what two versions of a sample differ in: pictures that changed, and values.

    Where some columns alone are compared, pictures have changed whose ids stand in one of these.
    """
    pairs = [
        (one, other)
        for one, other in zip(a.panes, b.panes, strict=False)
        if one.image_id != other.image_id
    ]
    if only:
        said = [value for values in columns.values() for value in values]
        pairs = [both for both in pairs if any(pane.image_id in said for pane in both)]
    panes = [pane for one, other in pairs for pane in (_of("A", one), _of("B", other))]
    texts = [text for name, values in columns.items() for text in _told(name, *values)]
    return Item(
        id=b.id,
        facts=b.facts,
        panes=tuple(panes) or b.panes,
        texts=tuple(texts),
        comparable=all(pane.image_id for pane in panes) if panes else b.comparable,
    )


def _of(side: str, pane: Pane) -> Pane:
    return msgspec.structs.replace(pane, name=f"{pane.name} in {side}")


def _told(column: str, a: Any, b: Any) -> Iterator[Text]:
    """Yields the values of a column in A and in B, with the words of texts that differ marked."""
    if isinstance(a, str) and isinstance(b, str):
        spans = differing_words(a, b)
        yield marked(a, spans[0], f"{column} in A")
        yield marked(b, spans[1], f"{column} in B")
    else:
        yield plain(_short(a), f"{column} in A")
        yield plain(_short(b), f"{column} in B")


def _short(value: Any) -> str:
    return shortened(json_text(value), _SHOWN)


def _pages(
    folder: Folder, both: Sequence[Dataset], found: TableDifference, lists: Mapping[str, Written]
) -> None:
    a, b = (dataset.manifest for dataset in both)
    nav = [("Overview", "index.html")]
    nav += [(name.capitalize(), f"{name}.html") for name, each in lists.items() if each.items]
    title = a.dataset if a.dataset == b.dataset else f"{a.dataset} and {b.dataset}"
    report = {
        "title": f"What changed in {title}" if a.dataset == b.dataset else f"{title} compared",
        "a": {"name": a.dataset, "sha256": both[0].sha256},
        "b": {"name": b.dataset, "sha256": both[1].sha256},
        "equal": found.equal,
        "lists": [
            {"name": name, "items": each.items, "page": f"{name}.html", "strip": each.strip}
            for name, each in lists.items()
        ],
        "columns": [
            {"name": name, "count": count, "page": link("changed.html", **{COLUMNS: name})}
            for name, count in found.columns.items()
        ],
        "only": [("A", found.only_in_a), ("B", found.only_in_b)],
        "manifest": [
            (name, _short(values[0]), _short(values[1]))
            for name, values in compare_manifests(a, b).items()
        ],
        "reported_with": f"eqforge {version('eqforge')}",
    }
    shared = {"name": report["title"], "report": report, "nav": nav}
    write_assets(folder)
    write_page(folder, "differences.html", "index.html", here="index.html", **shared)
    for name, each in lists.items():
        if each.items:
            page = f"{name}.html"
            table = {"name": name, "title": f"{name} samples", "rows": each.items}
            write_page(folder, "rows.html", page, here=page, table=table, **shared)
