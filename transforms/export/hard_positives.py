"""The form of the published hard positives, of rows that eqforge built or imported.

Source: Kamath et al. 2024; github.com/amitakamath/hard_positives, data/ and swapped_data/.
"""

import json
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
_COLUMNS: Final = {
    _OWN: (
        *("image", "caption", "hard_positive", "hard_negative", "hard_negative_kind"),
        *("source_order", "box"),
    ),
    _IMPORTED: (
        *("dataset", "kind", "image", "box", "annotation"),
        *("caption", "hard_positive", "hard_negative"),
    ),
}

Row = dict[str, Any]


def _refusal(dataset: Dataset, table: str) -> str:
    columns, name = dataset.columns(table), dataset.manifest.dataset
    if not {"caption", "hard_positive", "hard_negative"}.issubset(columns):
        return "expected rows with a caption, a hard positive and a hard negative"
    if name == _IMPORTED:
        return ""
    if missing := sorted({"sample_id", *_COLUMNS[_OWN]} - set(columns)):
        if name != _OWN:
            return f"expected a hard-positives or {_IMPORTED} dataset, found {name}"
        return f"its samples have no column {missing[0]!r}: build it again by this version"
    return ""


def _write(export: Export) -> None:
    """Write captions with their negatives into `data`, hard positives into `swapped_data`."""
    is_imported = export.dataset.manifest.dataset == _IMPORTED
    columns = _COLUMNS[_IMPORTED if is_imported else _OWN]
    name_of, record_of = _IMPORTED_FORM if is_imported else _OWN_FORM
    with ExitStack() as files:
        opened: dict[str, list[ExportStream]] = {}
        for row in rows_by(export, columns, _imported_place if is_imported else _own_place):
            if (name := name_of(row)) not in opened:
                paths = [f"{folder}/{name}.json" for folder in replace_swap.FOLDERS]
                opened[name] = [files.enter_context(export.file(path)) for path in paths]
            for stream, column in zip(opened[name], ("caption", "hard_positive"), strict=True):
                text = json.dumps(record_of(row, row[column]))
                stream.write((b", " if stream.rows else b"[") + text.encode())
                stream.rows += 1
        for streams in opened.values():
            for stream in streams:
                stream.write(b"]")


def _own_place(row: Row) -> str:
    """Return a row's place in its source, then its id."""
    return "/".join([*(f"{number:012d}" for number in row["source_order"]), row["sample_id"]])


def _imported_place(row: Row) -> str:
    """Return a row's place in its file; rows of several files come in turn."""
    return f"{source_order(row):012d}"


def _own_name(row: Row) -> str:
    kind = row["hard_negative_kind"]
    if kind.split("/")[0] == "source":
        return "text_pairs"
    return _NAMES.get(kind, "captions")


def _imported_name(row: Row) -> str:
    return row["kind"] if is_safe(f"data/{row['kind']}.json") else key_of(row["kind"])


def _own_record(row: Row, true_caption: str) -> Row:
    is_published = row["hard_negative_kind"] in _NAMES
    record: Row = {
        "image_id": PurePosixPath(row["image"]).stem,
        "true_caption": true_caption,
        "false_caption": row["hard_negative"],
        "image_path": f"data/{row['image']}" if is_published else row["image"],
    }
    if (box := row["box"]) is not None:
        width, height = box["x1"] - box["x0"], box["y1"] - box["y0"]
        corner = {"bbox_x": box["x0"], "bbox_y": box["y0"]}
        record |= {**corner, "bbox_w": width, "bbox_h": height}
    return record


_OWN_FORM: Final = (_own_name, _own_record)
_IMPORTED_FORM: Final = (_imported_name, replace_swap.write)
WRITERS: Final = {"vl-checklist": Writer(_write, _refusal)}
