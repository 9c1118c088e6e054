"""Tells files of harnesses from other files, by their first record."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from eqforge.core.files.foreign_tables import csv_rows
from eqforge.core.files.typed_json import read_bytes, read_lines

Form = Literal["lmms-eval", "vlmevalkit", "clip-benchmark", "bivlc"]


def form_of_file(path: Path) -> Form | None:
    """Returns which harness wrote a file; None if none did.

    Raises:
      InputError: it cannot be read.
    """
    if path.is_dir():
        return None
    if path.suffix in (".xlsx", ".tsv"):
        return "vlmevalkit"
    if path.suffix == ".csv":
        return _of_record(next(csv_rows(path), {}))
    if path.suffix == ".jsonl":
        return _of_json(next((data for _, data in read_lines(path)), b""))
    return _of_json(read_bytes(path)) if path.suffix == ".json" else None


def _of_json(data: bytes) -> Form | None:
    try:
        found = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return None  # who reads it as something else says what is wrong
    first = found[0] if isinstance(found, list) and found else found
    return _of_record(first) if isinstance(first, dict) else None


def _of_record(record: dict[str, Any]) -> Form | None:
    if {"filtered_resps", "doc_id"} <= record.keys():
        return "lmms-eval"
    if "prediction" in record:
        return "vlmevalkit"
    if {"pretrained", "task", "metrics"} <= record.keys():
        return "clip-benchmark"
    return "bivlc" if {"text_score_i0", "image_score_c0"} <= record.keys() else None
