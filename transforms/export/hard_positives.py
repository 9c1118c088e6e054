"""Writes rows that eqforge built or imported in the format of the published hard positives.

Source: Kamath et al. 2024; github.com/amitakamath/hard_positives, data/ and swapped_data/.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import PurePosixPath
from typing import Any, Final

from eqforge.schemas.dataset.reader import Dataset
from eqforge.sources.benchmarks import replace_swap
from eqforge.sources.benchmarks.form import source_order
from eqforge.transforms.export.formats import Writer
from eqforge.transforms.export.names import is_safe, key_of
from eqforge.transforms.export.published import rows_by
from eqforge.transforms.export.target import Export, ExportStream

_OWN: Final = "hard-positives"
_IMPORTED: Final = "replace-swap"
_NAMES: Final = {
    "vl-checklist/attribute": "vl_checklist_attributes",
    "vl-checklist/relation": "vl_checklist_relations",
}
_TRUE: Final = ("caption", "hard_positive")
_COLUMNS: Final = ("image", "box", *_TRUE, "hard_negative")
_OWN_COLUMNS: Final = (*_COLUMNS, "hard_negative_kind", "source_order")
_IMPORTED_COLUMNS: Final = (*_COLUMNS, "dataset", "kind", "annotation")

Row = dict[str, Any]


def _refusal(dataset: Dataset, table: str) -> str:
    name = dataset.manifest.dataset
    if name == _IMPORTED:
        return ""
    if missing := sorted({"sample_id", *_OWN_COLUMNS} - set(dataset.columns(table))):
        if name != _OWN:
            return f"expected a hard-positives or {_IMPORTED} dataset, found {name}"
        return (
            f"its samples have no column {missing[0]!r}; build the dataset again with this "
            "version of eqforge"
        )
    return ""


def _write(export: Export) -> None:
    is_imported = export.dataset.manifest.dataset == _IMPORTED
    with ExitStack() as files:
        opened: dict[str, list[ExportStream]] = {}
        for name, records in (_imported if is_imported else _own)(export):
            if name not in opened:
                paths = [f"{folder}/{name}.json" for folder in replace_swap.FOLDERS]
                opened[name] = [files.enter_context(export.file(path)) for path in paths]
            for stream, record in zip(opened[name], records, strict=True):
                stream.write((b", " if stream.rows else b"[") + json.dumps(record).encode())
                stream.rows += 1
        for streams in opened.values():
            for stream in streams:
                stream.write(b"]")


def _imported(export: Export) -> Iterator[tuple[str, list[Row]]]:
    for row in rows_by(export, _IMPORTED_COLUMNS, lambda row: f"{source_order(row):012d}"):
        name = row["kind"] if is_safe(f"data/{row['kind']}.json") else key_of(row["kind"])
        yield name, [replace_swap.write(row, row[column]) for column in _TRUE]


def _own(export: Export) -> Iterator[tuple[str, list[Row]]]:
    def place(row: Row) -> str:
        return "/".join([*(f"{number:012d}" for number in row["source_order"]), row["sample_id"]])

    for row in rows_by(export, _OWN_COLUMNS, place):
        kind, image, box = row["hard_negative_kind"], row["image"], row["box"]
        pairs = "text_pairs" if kind.split("/")[0] == "source" else "captions"
        fields: Row = {
            "false_caption": row["hard_negative"],
            "image_path": f"data/{image}" if kind in _NAMES else image,
        }
        if box is not None:
            fields |= {"bbox_x": box["x0"], "bbox_y": box["y0"]}
            fields |= {"bbox_w": box["x1"] - box["x0"], "bbox_h": box["y1"] - box["y0"]}
        image_id = PurePosixPath(image).stem
        yield (
            _NAMES.get(kind, pairs),
            [{"image_id": image_id, "true_caption": row[column], **fields} for column in _TRUE],
        )


WRITERS: Final = {"vl-checklist": Writer(_write, _refusal)}
