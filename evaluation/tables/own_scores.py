"""Reads files of scores that any program wrote, one row per sample."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, load_json, read_text_lines
from eqforge.core.files.foreign_tables import column_names, csv_rows, read_parquet
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.evaluation.tables.sample_scores import SampleScores, checked, rectangle
from eqforge.evaluation.tables.samples import text_array
from eqforge.models.arrays import read_array

FILE_SUFFIXES = (".parquet", ".csv", ".jsonl", ".json", ".npy")
IDS_SUFFIX = ".ids.txt"


class _Line(msgspec.Struct):
    sample_id: str
    values: list[float]
    cluster: str | None = None
    subset: str | None = None


def read_file(path: Path, width: int, quantity: str | None = None) -> SampleScores:
    """Reads a file of scores that any program wrote, a row a sample.

    Args:
      path: `.parquet` or `.jsonl` with the columns `sample_id`, a text, and `values`, a list;
        `.json`, an array of such records or an object of values by id; `.csv` with `sample_id` and
        `value_0`, `value_1`, …; or `.npy`, [samples, width], beside `.ids.txt` with their ids.
      width: number of scores per sample.
      quantity: what a score is; None if unknown.

    Raises:
      InputError: the file is none of these, or a row is malformed.
    """
    if path.is_dir():
        raise InputError(
            f"{path}: is a folder; expected a file that ends in {', '.join(FILE_SUFFIXES)}. What "
            "eqforge score wrote is measured behind its dataset: eqforge metrics DATASET SCORES"
        )
    if path.suffix not in FILE_SUFFIXES:
        raise InputError(
            f"{path}: expected a folder of eqforge score, a file that ends in "
            f"{', '.join(FILE_SUFFIXES)}, or what lmms-eval (*_samples_*.jsonl) or VLMEvalKit "
            "(.xlsx) wrote of each question"
        )
    readers = {".parquet": _from_parquet, ".csv": _from_csv, ".npy": _from_array}
    keys, values = readers.get(path.suffix, _from_records)(path, width)
    return checked(
        str(path),
        SampleScores(
            model=path.stem, keys=text_array(keys), values=values, quantity=quantity, failures={}
        ),
    )


def read_labels(path: Path, name: Literal["cluster", "subset"]) -> list[str] | None:
    """Returns a text column of a file of scores, in row order; None if there is no such column.

    Raises:
      InputError: only some rows have it, or it is not text.
    """
    found: list[Any]
    if path.suffix == ".parquet":
        known = name in column_names(path)
        found = (
            read_parquet(path, {name: pa.string()}, f"the column {name}, a text")[name].to_list()
            if known
            else []
        )
    elif path.suffix == ".csv":
        found = [row.get(name) for row in csv_rows(path)]
    elif path.suffix == ".npy":
        return None
    else:
        found = [getattr(line, name) for _, line in _records(path)]
    if all(value is None for value in found):
        return None
    if not all(isinstance(value, str) for value in found):
        raise InputError(f"{path}: expected a text in the column {name!r} of every row")
    return found


def _from_parquet(path: Path, width: int) -> tuple[list[str], NDArray[np.floating[Any]]]:
    kinds = {"sample_id": pa.string(), "values": pa.list_(pa.float64())}
    expected = "the columns sample_id, a text, and values, a list of numbers"
    found = read_parquet(path, kinds, expected)
    keys, lists = found["sample_id"].to_list(), found["values"]
    if None in keys or lists.null_count:
        raise InputError(f"{path}: a row has no sample_id or no values")
    return keys, rectangle(str(path), [lists], width)


def _from_csv(path: Path, width: int) -> tuple[list[str], NDArray[np.float64]]:
    columns = [f"value_{number}" for number in range(width)]
    rows = list(csv_rows(path))
    if not rows:
        raise InputError(f"{path}: holds no rows")
    wrong = {"sample_id", *columns} - set(rows[0])
    if wrong:
        raise InputError(
            f"{path}: expected the columns sample_id, {', '.join(columns)}; there is no "
            f"{', '.join(sorted(wrong))}"
        )
    if f"value_{width}" in rows[0]:
        raise InputError(f"{path}: expected {width} scores a sample; there is a value_{width} too")
    keys, values = [], []
    for line, row in enumerate(rows, start=2):
        keys.append(row["sample_id"])
        try:
            values.append([float(row[column]) for column in columns])
        except (TypeError, ValueError) as error:
            raise InputError(f"{path}: line {line}: expected {width} numbers: {error}") from error
    return keys, np.array(values).reshape(-1, width)


def _from_array(path: Path, width: int) -> tuple[list[str], NDArray[np.float64]]:
    values, ids = read_array(path), path.with_suffix(IDS_SUFFIX)
    if not ids.is_file():
        raise InputError(f"{path}: expected the ids of its rows in {ids}, a line each")
    keys = read_text_lines(ids)
    if values.shape != (len(keys), width):
        raise InputError(
            f"{path}: expected {width} scores for each of the {len(keys):,} ids in {ids}, found an "
            f"array of shape {values.shape}"
        )
    return keys, values.astype(np.float64)


def _from_records(path: Path, width: int) -> tuple[list[str], NDArray[np.float64]]:
    keys, values = [], []
    for where, line in _records(path):
        if len(line.values) != width:
            raise InputError(f"{path}: {where}: expected {width} scores; found {len(line.values)}")
        keys.append(line.sample_id)
        values.append(line.values)
    return keys, np.array(values, dtype=np.float64).reshape(-1, width)


def _records(path: Path) -> Iterator[tuple[str, _Line]]:
    """Yields the records of JSON lines, or of one JSON document, each with its place."""
    if path.suffix == ".jsonl":
        for number, data in read_lines(path):
            yield f"line {number}", decode(data, _Line, str(path), f"line {number}")
        return
    document = load_json(path)
    if isinstance(document.value, dict):
        for sample_id, node in document.items():
            yield node.where, _Line(sample_id=sample_id, values=_numbers(node))
        return
    for number, entry in enumerate(document.elements(), start=1):
        node = Node(path.name, f"entry {number}", entry.value)
        labels = {name: node.get(name) for name in ("cluster", "subset")}
        yield (
            node.where,
            _Line(
                sample_id=node["sample_id"].text(),
                values=_numbers(node["values"]),
                **{name: label.text() for name, label in labels.items() if label is not None},
            ),
        )


def _numbers(node: Node) -> list[float]:
    return [value.number() for value in node.elements()]
