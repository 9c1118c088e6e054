"""Files of scores that any program wrote: their columns, lists and arrays."""

import contextlib
import itertools
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, load_json, names_of, read_text_lines
from eqforge.core.files.foreign_tables import column_types, csv_rows, read_parquet
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.core.visible import counted
from eqforge.evaluation.tables.samples import read_columns
from eqforge.models.arrays import read_array, read_arrays
from eqforge.schemas.dataset.reader import Dataset
from eqforge.sources.benchmarks.items import Columns

FILE_SUFFIXES = (".parquet", ".csv", ".jsonl", ".json", ".npy", ".npz")


class Layout(NamedTuple):
    """How a file holds scores of the images and captions of a sample.

    Attributes:
      images, captions: names of a sample's images and captions.
      names: the user's names of the columns.
      dataset: the dataset whose samples are scored; None if the file stands alone.
    """

    images: Sequence[str]
    captions: Sequence[str]
    names: Columns = Columns()
    dataset: Dataset | None = None

    @property
    def width(self) -> int:
        return len(self.images) * len(self.captions)

    @property
    def columns(self) -> list[str]:
        """Column of each score, such as `c1_i0` for caption 1 with image 0, in a list's order."""
        places = itertools.product(range(len(self.images)), range(len(self.captions)))
        return [f"c{caption}_i{image}" for image, caption in places]

    def __str__(self) -> str:
        scored = [f"{caption} with {image}" for image in self.images for caption in self.captions]
        return ", ".join(map(" is ".join, zip(self.columns, scored, strict=True)))

    @property
    def fields(self) -> list[str]:
        """Names that a column can have, for `--columns`."""
        return ["sample_id", *self.columns, "values", "cluster", "subset"]

    def ids(self, count: int) -> list[str]:
        """Return ids for rows that have none: the dataset's, in its order, or row numbers."""
        if self.dataset is None:
            return [f"row {number:,}" for number in range(count)]
        return read_columns(self.dataset, "samples", ["sample_id"])["sample_id"]

    def named(self, path: Path, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row with eqforge's names of its columns."""
        found: dict[str, Any] = self.names.named(dict(row))
        self.names.check({*row, *(c for f, c in self.names.names if f in found)}, path)
        return found

    def chosen(self, path: Path, names: Collection[str]) -> list[str]:
        """Return the columns that hold the scores: one of lists, or one for each score."""
        numbered = [f"value_{number}" for number in range(self.width)]
        forms = [self.columns, numbered, ["values"]]
        form = max(forms, key=lambda form: len({*form} & {*names}) / len(form))
        expected = f"Expected columns: sample_id, {', '.join(self.columns)} ({self})"
        if wrong := [name for name in ("sample_id", *form) if name not in names]:
            raise InputError(
                f"{path}: missing columns: {', '.join(wrong)}. {expected}. Alternatively, a "
                "column named 'values' can hold a list of the scores in this order. Example row: "
                f"{self._example(path)}. For columns with other names, pass --columns "
                f"{wrong[0]}=NAME"
            )
        if more := [name for name in names if _IS_SCORE.fullmatch(name) and name not in form]:
            raise InputError(f"{path}: unexpected column {more[0]!r}; remove it. {expected}")
        return form

    def _example(self, path: Path) -> str:
        sample_id = self.ids(1)[0] if self.dataset else "a/1"
        scores = [round(0.31 - 0.02 * number, 2) for number in range(self.width)]
        row = {"sample_id": sample_id, **dict(zip(self.columns, scores, strict=True))}
        return (
            json.dumps(row)
            if path.suffix != ".csv"
            else f"{','.join(row)} / {','.join(map(str, row.values()))}"
        )


_IS_SCORE = re.compile(r"c\d+_i\d+|value_\d+")


def rectangle(where: str, columns: Sequence[Any], layout: Layout) -> NDArray[np.floating[Any]]:
    """Convert Arrow lists to an array [rows, width]."""
    parts, width = [], layout.width
    for column in columns:
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        if (lengths != width).any():
            found = lengths[lengths != width][0]
            raise InputError(
                f"{where}: expected {width} scores for each sample ({layout}); found {found}"
            )
        parts.append(column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width))
    return np.concatenate(parts) if parts else np.zeros((0, width), dtype=np.float32)


def read_labels(
    path: Path, name: Literal["cluster", "subset"], names: Sequence[str] = ()
) -> list[str] | None:
    column = dict(one.split("=", 1) for one in names).get(name, name)
    found: list[Any] = []
    if path.suffix == ".parquet":
        if column in column_types(path):
            expected = f"text in the column {column}"
            found = read_parquet(path, {column: pa.string()}, expected)[column].to_list()
    elif path.suffix not in (".npy", ".npz"):
        found = [row.value.get(column) for row in _rows(path)]
    if all(value is None for value in found):
        return None
    if not all(isinstance(value, str) for value in found):
        raise InputError(f"{path}: expected text in the column {column!r} of every row")
    return found


def from_parquet(path: Path, layout: Layout) -> tuple[list[str], NDArray[np.floating[Any]]]:
    types = column_types(path)
    column_of = layout.named(path, {name: name for name in types})
    chosen = [column_of[name] for name in layout.chosen(path, column_of)]
    kinds: dict[str, pa.DataType] = dict.fromkeys(chosen, pa.float64())
    nested = False
    if chosen == [column_of.get("values")]:
        kind = types[chosen[0]]
        nested = pa.types.is_nested(kind) and pa.types.is_nested(kind.value_type)
        kinds = {chosen[0]: pa.list_(pa.list_(pa.float64()) if nested else pa.float64())}
    expected = "text in sample_id, numbers in the other columns, and lists of numbers in values"
    ids = column_of["sample_id"]
    found = read_parquet(path, {ids: pa.string(), **kinds}, expected)
    keys = found.pop(ids).to_list()
    is_list = pa.types.is_nested(kinds[chosen[0]])
    if None in keys or (is_list and found[chosen[0]].null_count):
        raise InputError(f"{path}: a row has no sample_id or no list of scores")
    if not is_list:
        return keys, np.column_stack(
            [found[name].to_numpy(zero_copy_only=False) for name in chosen]
        )
    (column,) = found.values()
    return keys, rectangle(str(path), [_flat(path, column, layout) if nested else column], layout)


def _flat(path: Path, column: Any, layout: Layout) -> Any:
    """Convert lists of a list for each image to lists of all scores."""
    shape = len(layout.images), len(layout.captions)
    inner = column.flatten()
    if (column.value_lengths().to_numpy() != shape[0]).any() or (
        inner.value_lengths().to_numpy(zero_copy_only=False) != shape[1]
    ).any():
        raise InputError(
            f"{path}: expected {counted(shape[0], 'lists')} of {shape[1]} scores for each sample "
            f"({layout})"
        )
    return pa.FixedSizeListArray.from_arrays(inner.flatten(), layout.width).cast(
        pa.list_(pa.float64())
    )


def from_array(path: Path, layout: Layout) -> tuple[list[str] | None, NDArray[np.float64]]:
    """Return ids, None if the file has none, and scores."""
    keys = None
    if path.suffix == ".npy":
        values = read_array(path)
    else:
        arrays = layout.named(path, read_arrays(path))
        numbers = [array for array in arrays.values() if array.dtype.kind in "fiu"]
        texts = [array for array in arrays.values() if array.dtype.kind == "U" and array.ndim == 1]
        keys = arrays.get("sample_id", texts[0] if len(texts) == 1 else None)
        if any(map(_IS_SCORE.fullmatch, arrays)):
            columns = [arrays[name] for name in layout.chosen(path, {*arrays, "sample_id"})]
            if len({array.shape for array in columns}) > 1 or columns[0].ndim != 1:
                raise InputError(f"{path}: expected columns of the same length, one number per row")
            values = np.column_stack(columns)
        elif len(numbers) == 1 and len(arrays) == len(numbers) + len(texts) and len(texts) < 2:
            (values,) = numbers
        else:
            raise InputError(
                f"{path}: found {counted(len(arrays), 'arrays')}: {names_of(arrays)}. "
                f"Expected arrays: sample_id, {', '.join(layout.columns)} ({layout}). Otherwise, "
                "pass one array of numbers, with or without a text array of ids"
            )
        keys = None if keys is None else keys.tolist()
    ids = path.with_suffix(".ids.txt")
    if keys is None and ids.is_file():
        keys = read_text_lines(ids)
    if keys is not None:
        check_shape(path, values, layout, len(keys))
    return keys, values.astype(np.float64)


def check_shape(path: Path, values: NDArray[Any], layout: Layout, count: int) -> None:
    shapes = (count, layout.width), (count, len(layout.images), len(layout.captions))
    if values.shape not in shapes:
        raise InputError(
            f"{path}: expected an array of shape {shapes[0]} or {shapes[1]}, with {layout.width} "
            f"scores for each id; found the shape {values.shape}. Order of the scores: "
            f"{layout}. Put the ids into {path.stem}.ids.txt, one per line, or into a text array "
            "of an .npz file. Without ids, the rows must follow the order of the dataset's samples"
        )


def from_records(path: Path, layout: Layout) -> tuple[list[str], NDArray[np.float64]]:
    keys, values, chosen = [], [], None
    for raw in _rows(path):
        row = replace(raw, value=layout.named(path, raw.mapping()))
        if chosen is None:
            chosen = layout.chosen(path, row.value)
        keys.append(row["sample_id"].text())
        cells = [row[name] for name in chosen]
        if path.suffix == ".csv":
            cells = [replace(cell, value=_parsed(cell.value)) for cell in cells]
        numbers = [number for cell in cells for number in _numbers(cell)]
        if len(numbers) == 1 and math.isnan(numbers[0]):
            numbers *= layout.width  # no list
        if (found := len(numbers)) != layout.width:
            expected = f"expected {layout.width} scores, found {found}. Their order: {layout}"
            raise InputError(f"{path}: {row.where}: {expected}")
        values.append(numbers)
    if path.suffix == ".csv" and not keys:
        raise InputError(f"{path} contains no rows")
    return keys, np.array(values, dtype=np.float64).reshape(-1, layout.width)


def _rows(path: Path) -> Iterator[Node]:
    """Yield the rows of a CSV or JSON file as objects."""
    if path.suffix == ".csv":
        for number, cells in enumerate(csv_rows(path), start=2):
            if None in cells.values():
                raise InputError(f"{path}: line {number} has fewer cells than the header")
            named = {name: cell for name, cell in cells.items() if name is not None}
            yield Node(path.name, f"line {number}", named)
    elif path.suffix == ".jsonl":
        for number, data in read_lines(path):
            where = f"line {number}"
            yield Node(path.name, where, decode(data, dict[str, Any], str(path), where))
    elif isinstance((document := load_json(path)).value, dict):
        for sample_id, node in document.items():
            row = node.value if isinstance(node.value, dict) else {"values": node.value}
            yield replace(node, value={"sample_id": sample_id, **row})
    else:
        for number, entry in enumerate(document.elements(), start=1):
            yield Node(path.name, f"entry {number}", entry.value)


def _parsed(cell: str | None) -> Any:
    """Return the number (NaN if empty) or the list in a cell of a CSV file, or the cell itself."""
    with contextlib.suppress(TypeError, ValueError):
        return float(cell or "nan")
    with contextlib.suppress(ValueError, RecursionError):
        return msgspec.json.decode(cell or "")
    return cell


def _numbers(node: Node) -> list[float]:
    """Return a number (NaN for null), or the numbers of a list or of a list for each image."""
    if isinstance(node.value, list):
        return [number for element in node.elements() for number in _numbers(element)]
    is_unknown = node.value is None or node.value != node.value
    return [math.nan if is_unknown else node.number()]
