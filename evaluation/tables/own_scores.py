"""Reads files of scores that any program wrote, one row per sample."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eqforge.evaluation.tables.sample_scores import SampleScores, checked, rectangle
from eqforge.evaluation.tables.samples import text_array
from eqforge.schemas.errors import InputError
from eqforge.schemas.io.foreign_tables import column_names, csv_rows, read_parquet
from eqforge.schemas.io.typed_json import decode, read_lines

FILE_SUFFIXES = (".parquet", ".csv", ".jsonl")


class _Line(msgspec.Struct):
    sample_id: str
    values: list[float]
    cluster: str | None = None
    subset: str | None = None


def read_file(path: Path, width: int, quantity: str | None = None) -> SampleScores:
    """Reads a file of scores that any program wrote, a row a sample.

    Args:
      path: `.parquet` or `.jsonl` with the columns `sample_id`, a text, and `values`, a list; or
        `.csv` with `sample_id` and `value_0`, `value_1`, ….
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
            f"{path}: expected a folder of eqforge score, or a file that ends in "
            f"{', '.join(FILE_SUFFIXES)}"
        )
    reader = {".parquet": _from_parquet, ".csv": _from_csv, ".jsonl": _from_lines}[path.suffix]
    keys, values = reader(path, width)
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
    else:
        found = [getattr(line, name) for _, line in _parsed_lines(path)]
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
    wrong = {"sample_id", *columns} - set(rows[0] if rows else [])
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


def _from_lines(path: Path, width: int) -> tuple[list[str], NDArray[np.float64]]:
    keys, values = [], []
    for number, line in _parsed_lines(path):
        if len(line.values) != width:
            raise InputError(
                f"{path}: line {number}: expected {width} scores; found {len(line.values)}"
            )
        keys.append(line.sample_id)
        values.append(line.values)
    return keys, np.array(values, dtype=np.float64).reshape(-1, width)


def _parsed_lines(path: Path) -> Iterator[tuple[int, _Line]]:
    for number, data in read_lines(path):
        yield number, decode(data, _Line, str(path), f"line {number}")
