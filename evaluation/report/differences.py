"""Write the report of a comparison: added, removed and changed samples, with their images."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from eqforge.core.errors import InputError
from eqforge.core.identity import version
from eqforge.core.visible import json_text, shortened
from eqforge.evaluation.report.folder import (
    Note,
    check_place,
    finish,
    link,
    prepare_folder,
    write_pages,
)
from eqforge.evaluation.report.items import Item, Text, differing_words, marked, plain
from eqforge.evaluation.report.kinds import Row, kind_of, rows_of
from eqforge.evaluation.report.pictures import read_pictures, write_some
from eqforge.evaluation.report.tables import Shown, TablePage, Written, write_table
from eqforge.schemas.dataset.compare import compare_tables
from eqforge.schemas.dataset.differences import TableDifference, compare_manifests
from eqforge.schemas.dataset.reader import Dataset

COLUMNS: Final = "changed columns"
_TABLE: Final = "samples"
_THINGS: Final = {
    "added": "samples only in B",
    "removed": "samples only in A",
    "changed": "changed samples",
}
_SHOWN: Final = 300
"""Maximum number of characters shown of a value that is not text; a click shows the whole row."""


def write_comparison(
    a: Dataset, b: Dataset, output: str, *, only: Sequence[str] = (), overwrite: bool
) -> str:
    """Write what B adds, lacks and changes, by default in all columns; return the page."""
    for dataset in (a, b):
        if not dataset.files(_TABLE):
            raise InputError(f"{dataset.folder} has no samples to show")
    if only and not any(set(only) & set(dataset.columns(_TABLE)) for dataset in (a, b)):
        raise InputError(f"--report: the samples have no column {' or '.join(only)}")
    most = sum(each.manifest.num_rows(_TABLE) for each in (a, b))
    found = compare_tables(a, b, _TABLE, only, most)
    note = Note(
        dataset=b.manifest.dataset,
        sha256=[a.sha256, b.sha256],
        made_of={"eqforge": version("eqforge"), "only": sorted(only)},
    )
    replaced = check_place(output, note, overwrite=overwrite, option="--report")
    pictures, pictures_b = (read_pictures(dataset, whole=True) for dataset in (a, b))
    pictures.stored |= pictures_b.stored  # images with equal ids are equal
    pictures.scores |= pictures_b.scores
    pictures.masks |= pictures_b.masks
    items: dict[str, list[Shown]] = {
        "added": [(item, [row]) for item, row in _items(b, found.added_examples)],
        "removed": [(item, [row]) for item, row in _items(a, found.removed_examples)],
        "changed": list(_changed(a, b, found, only)),
    }
    folder, lists = prepare_folder(output, note, replaced), {}
    for name, samples in items.items():
        for dataset in (a, b):
            panes = (pane for item, _ in samples for pane in item.panes)
            write_some(dataset, panes, pictures, folder)
        page = TablePage(name=name, thing=_THINGS[name], total=len(samples))
        lists[name] = write_table(folder, page, samples, pictures, strip=8)
    shown = [(name, f"{name} samples", each.items) for name, each in lists.items() if each.items]
    write_pages(folder, "differences.html", _summary(a, b, found, lists), shown)
    finish(folder, note)
    return f"{output.rstrip('/')}/index.html"


def _items(dataset: Dataset, keys: Sequence[str]) -> Iterator[tuple[Item, Row]]:
    make, wanted = kind_of(dataset).make(dataset), pa.array(sorted(keys), pa.string())
    batches = [
        batch.filter(pc.is_in(batch.column("sample_id"), value_set=wanted))
        for batch in dataset.batches(_TABLE, rows=10_000)
    ]
    if batches:
        for row in rows_of(pa.Table.from_batches(batches).sort_by("sample_id")):
            yield msgspec.structs.replace(make([row]), id=row["sample_id"]), row


def _changed(
    a: Dataset, b: Dataset, found: TableDifference, only: Sequence[str]
) -> Iterator[Shown]:
    columns = {record.key: record.columns for record in found.changed_examples}
    sides = (_items(dataset, list(columns)) for dataset in (a, b))
    for (item_a, row_a), (item_b, row_b) in zip(*sides, strict=True):
        changes = columns[row_b["sample_id"]]
        whole = (("in A", dict(row_a)), ("in B", dict(row_b)))
        item = msgspec.structs.replace(_both(item_a, item_b, changes, only), rows=whole)
        yield item, [{**row_b, COLUMNS: sorted(changes)}]


def _both(
    a: Item, b: Item, columns: Mapping[str, tuple[Any, Any]], only: Sequence[str] = ()
) -> Item:
    """Show two versions of a sample; with `only`, ignore changed images in other columns."""
    pairs = [
        (one, other)
        for one, other in zip(a.panes, b.panes, strict=False)
        if one.image_id != other.image_id
    ]
    if only:
        changed = [value for values in columns.values() for value in values]
        pairs = [both for both in pairs if any(pane.image_id in changed for pane in both)]
    panes = [
        msgspec.structs.replace(pane, name=f"{pane.name} in {side}")
        for both in pairs
        for side, pane in zip("AB", both, strict=True)
    ]
    texts = [text for name, values in columns.items() for text in _versions(name, *values)]
    return Item(
        id=b.id,
        facts=b.facts,
        panes=tuple(panes) or b.panes,
        texts=tuple(texts),
        comparable=all(pane.image_id for pane in panes) if panes else b.comparable,
    )


def _versions(column: str, a: Any, b: Any) -> Iterator[Text]:
    if isinstance(a, str) and isinstance(b, str):
        spans = differing_words(a, b)
        yield marked(a, spans[0], f"{column} in A")
        yield marked(b, spans[1], f"{column} in B")
    else:
        yield plain(_short(a), f"{column} in A")
        yield plain(_short(b), f"{column} in B")


def _short(value: Any) -> str:
    return shortened(json_text(value), _SHOWN)


def _summary(
    a: Dataset, b: Dataset, found: TableDifference, lists: Mapping[str, Written]
) -> dict[str, Any]:
    names = [dataset.manifest.dataset for dataset in (a, b)]
    is_same = names[0] == names[1]
    return {
        "title": f"What changed in {names[0]}" if is_same else f"{' and '.join(names)} compared",
        "a": {"name": names[0], "sha256": a.sha256},
        "b": {"name": names[1], "sha256": b.sha256},
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
            for name, values in compare_manifests(a.manifest, b.manifest).items()
        ],
        "reported_with": f"eqforge {version('eqforge')}",
    }
