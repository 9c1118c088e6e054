"""Scores of samples: folders of `eqforge score`, files of any program, and the join by key."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, load_json, read_text_lines, shown
from eqforge.core.files.foreign_tables import column_names, csv_rows, read_parquet
from eqforge.core.files.typed_json import decode, read_lines
from eqforge.evaluation.tables.samples import text_array
from eqforge.models.arrays import read_array, read_named_array
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.score_tables import ScoresFolder, open_scores

LARGEST_SCORE = 1e100
"""Squares of larger scores, and sums of them, would overflow."""

FILE_SUFFIXES = (".parquet", ".csv", ".jsonl", ".json", ".npy", ".npz")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SampleScores:
    """Scores of samples by one model.

    Attributes:
      keys: ids of the samples [n], unique.
      values: the scores [n, scores a sample], finite.
      quantity: `cosine`, `logit` or `probability`; None if unknown.
      failures: number of samples that were not scored, by reason.
    """

    model: str
    keys: NDArray[Any]
    values: NDArray[np.floating[Any]]
    quantity: str | None
    failures: dict[str, int]
    warnings: tuple[str, ...] = ()

    def without(self, gone: Collection[str]) -> "SampleScores":
        left = ~np.isin(self.keys, np.array(sorted(gone), dtype=object))
        return replace(self, keys=self.keys[left], values=self.values[left])


def open_scores_of(folder: str, dataset: Dataset) -> ScoresFolder:
    scores, found = open_scores(folder), dataset.sha256
    if scores.manifest.dataset_sha256 != found:
        raise InputError(
            f"{scores.folder}: these are scores of {scores.manifest.dataset} whose manifest is "
            f"{scores.manifest.dataset_sha256[:12]}; that of {dataset.folder} is {found[:12]}: "
            "score it again"
        )
    return scores


def read_folder(
    folder: str, dataset: Dataset, images: Sequence[str], captions: Sequence[str]
) -> SampleScores:
    scores = open_scores_of(folder, dataset)
    manifest = scores.manifest
    if (manifest.images, manifest.captions) != (list(images), list(captions)):
        raise InputError(
            f"{folder}: expected scores of the columns {', '.join([*images, *captions])}; found "
            f"{', '.join([*manifest.images, *manifest.captions]) or 'none'}"
        )
    batches = list(scores.batches("scores", ["sample_id", "values"]))
    layout = Layout(images, captions)
    reasons: Counter[str] = Counter()
    for batch in scores.batches("failures", ["table", "reason"]):
        rows = batch.to_pylist()
        reasons.update(row["reason"] for row in rows if row["table"] == "samples")
    return _checked(
        folder,
        SampleScores(
            model=manifest.model.name,
            keys=text_array([key for batch in batches for key in batch.column(0).to_pylist()]),
            values=_rectangle(folder, [batch.column(1) for batch in batches], layout),
            quantity=manifest.quantity,
            failures=dict(sorted(reasons.items())),
            warnings=tuple(manifest.warnings),
        ),
    )


class Layout(NamedTuple):
    """The images and captions of a sample; each image has a score with each caption, in order."""

    images: Sequence[str]
    captions: Sequence[str]

    @property
    def width(self) -> int:
        return len(self.images) * len(self.captions)

    @property
    def columns(self) -> list[str]:
        return [f"value_{number}" for number in range(self.width)]

    def __str__(self) -> str:
        scored = [f"{image} with {caption}" for image in self.images for caption in self.captions]
        return ", ".join(map(" is ".join, zip(self.columns, scored, strict=True)))


def read_file(
    path: Path, images: Sequence[str], captions: Sequence[str], quantity: str | None = None
) -> SampleScores:
    """Read a file of scores that any program wrote, one row per sample.

    Args:
      path: `.parquet` or `.jsonl` with the columns `sample_id`, a text, and `values`, a list;
        `.json`, an array of such records or an object of values by id; `.csv` or `.parquet` with
        `sample_id` and `value_0`, `value_1`, …; `.npy` or `.npz`, an array [samples, scores] or
        [samples, images, captions], with the ids in `.ids.txt` or in an array of the `.npz`.
    """
    if path.is_dir():
        raise InputError(
            f"{path}: is a folder; expected a file that ends in {', '.join(FILE_SUFFIXES)}. To "
            "measure a folder of eqforge score, pass its dataset first: eqforge metrics "
            "DATASET SCORES"
        )
    if path.suffix not in FILE_SUFFIXES:
        raise InputError(
            f"{path}: expected a folder of eqforge score, a file that ends in "
            f"{', '.join(FILE_SUFFIXES)}, or what lmms-eval (*_samples_*.jsonl) or VLMEvalKit "
            "(.xlsx) wrote for each question"
        )
    readers = {".parquet": _from_parquet, ".csv": _from_csv}
    readers |= dict.fromkeys((".npy", ".npz"), _from_array)
    keys, values = readers.get(path.suffix, _from_records)(path, Layout(images, captions))
    return _checked(
        str(path),
        SampleScores(
            model=path.stem, keys=text_array(keys), values=values, quantity=quantity, failures={}
        ),
    )


def _checked(where: str, scores: SampleScores) -> SampleScores:
    unique, counts = np.unique(scores.keys, return_counts=True)
    if len(unique) < len(scores.keys):
        raise InputError(f"{where}: the sample {str(unique[counts > 1][0])!r} appears twice")
    bad = np.flatnonzero(~(np.abs(scores.values.astype(np.float64)) <= LARGEST_SCORE).all(axis=1))
    if len(bad):
        raise InputError(
            f"{where}: a score of {str(scores.keys[bad[0]])!r} is not a finite number, or is "
            f"beyond {LARGEST_SCORE:g}"
        )
    return scores


def _rectangle(where: str, columns: Sequence[Any], layout: Layout) -> NDArray[np.floating[Any]]:
    """Convert Arrow lists to an array [rows, width]."""
    parts, width = [], layout.width
    for column in columns:
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        if (lengths != width).any():
            found = lengths[lengths != width][0]
            raise InputError(f"{where}: expected {width} scores a sample ({layout}); found {found}")
        parts.append(column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width))
    return np.concatenate(parts) if parts else np.zeros((0, width), dtype=np.float32)


class _Line(msgspec.Struct):
    sample_id: str
    values: list[float]
    cluster: str | None = None
    subset: str | None = None


def read_labels(path: Path, name: Literal["cluster", "subset"]) -> list[str] | None:
    found: list[Any] = []
    if path.suffix == ".parquet":
        if name in column_names(path):
            expected = f"the column {name}, a text"
            found = read_parquet(path, {name: pa.string()}, expected)[name].to_list()
    elif path.suffix == ".csv":
        found = [row.get(name) for row in csv_rows(path)]
    elif path.suffix not in (".npy", ".npz"):
        found = [getattr(line, name) for _, line in _records(path)]
    if all(value is None for value in found):
        return None
    if not all(isinstance(value, str) for value in found):
        raise InputError(f"{path}: expected a text in the column {name!r} of every row")
    return found


def _from_parquet(path: Path, layout: Layout) -> tuple[list[str], NDArray[np.floating[Any]]]:
    names = column_names(path)
    kinds = dict.fromkeys(layout.columns, pa.float64())
    if "values" in names:
        kinds = {"values": pa.list_(pa.float64())}
    _check_columns(path, names, kinds, layout)
    expected = "sample_id, a text, and numbers, or values, a list of numbers"
    found = read_parquet(path, {"sample_id": pa.string(), **kinds}, expected)
    keys = found.pop("sample_id").to_list()
    if None in keys or any(column.null_count for column in found.values()):
        raise InputError(f"{path}: a row has no sample_id or no values")
    if "values" in found:
        return keys, _rectangle(str(path), [found["values"]], layout)
    return keys, np.column_stack([column.to_numpy() for column in found.values()])


def _check_columns(
    path: Path, names: Collection[str], values: Iterable[str], layout: Layout
) -> None:
    if wrong := [name for name in ("sample_id", *values) if name not in names]:
        raise InputError(
            f"{path}: expected the columns sample_id, {', '.join(values)} ({layout}); there is no "
            f"{', '.join(wrong)}"
        )
    if (more := f"value_{layout.width}") in names:
        raise InputError(
            f"{path}: expected {layout.width} scores a sample ({layout}); there is a {more} too"
        )


def _from_csv(path: Path, layout: Layout) -> tuple[list[str], NDArray[np.float64]]:
    rows = list(csv_rows(path))
    if not rows:
        raise InputError(f"{path}: holds no rows")
    _check_columns(path, rows[0], layout.columns, layout)
    values = []
    for line, row in enumerate(rows, start=2):
        try:
            values.append([float(row[column]) for column in layout.columns])
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{path}: line {line}: expected a number in each of {', '.join(layout.columns)}; "
                f"found {', '.join(shown(row[column] or '') for column in layout.columns)}"
            ) from error
    return [row["sample_id"] for row in rows], np.array(values).reshape(-1, layout.width)


def _from_array(path: Path, layout: Layout) -> tuple[list[str], NDArray[np.float64]]:
    values, keys = read_named_array(path) if path.suffix == ".npz" else (read_array(path), None)
    ids = path.with_suffix(".ids.txt")
    if keys is None and not ids.is_file():
        raise InputError(f"{path}: expected the ids of its rows in {ids}, one per line")
    keys = read_text_lines(ids) if keys is None else keys
    shapes = (layout.width,), (len(layout.images), len(layout.captions))
    if values.shape not in [(len(keys), *shape) for shape in shapes]:
        raise InputError(
            f"{path}: expected {layout.width} scores ({layout}) for each of the {len(keys):,} ids, "
            f"found an array of shape {values.shape}"
        )
    return keys, values.astype(np.float64).reshape(-1, layout.width)


def _from_records(path: Path, layout: Layout) -> tuple[list[str], NDArray[np.float64]]:
    keys, values = [], []
    for where, line in _records(path):
        if (found := len(line.values)) != layout.width:
            expected = f"{layout.width} scores a sample ({layout})"
            raise InputError(f"{path}: {where}: expected {expected}; found {found}")
        keys.append(line.sample_id)
        values.append(line.values)
    return keys, np.array(values, dtype=np.float64).reshape(-1, layout.width)


def _records(path: Path) -> Iterator[tuple[str, _Line]]:
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


def places_of(
    expected: NDArray[Any], scores: SampleScores, where: str, *, allow_missing: bool
) -> NDArray[np.int64]:
    """Return the row of each expected sample's scores, -1 if there are none."""
    if not len(scores.keys):
        raise InputError(f"{where}: contains no scores")
    places = places_in(expected, scores.keys)
    strange = np.setdiff1d(scores.keys, expected)
    if len(strange) == len(scores.keys):
        raise InputError(
            f"{where}: none of its {len(strange):,} scores belongs to a sample of the dataset; "
            f"one has the id {str(strange[0])!r}: are they from a different dataset?"
        )
    if len(strange):
        raise InputError(
            f"{where}: {len(strange):,} scores are for samples that the dataset does not have, "
            f"such as {str(strange[0])!r}"
        )
    missing = expected[places < 0]
    if len(missing) and not allow_missing:
        why = ", ".join(f"{count:,} {reason}" for reason, count in scores.failures.items())
        raise InputError(
            f"{where}: {len(missing):,} of {len(expected):,} samples have no score, such as "
            f"{str(missing[0])!r}{f' ({why})' if why else ''}; pass --allow-missing to leave "
            "them out"
        )
    return places


def places_in(wanted: NDArray[Any], keys: NDArray[Any]) -> NDArray[np.int64]:
    """Return the index of each wanted key among unique keys, -1 if absent."""
    if not len(keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(keys)
    near = np.searchsorted(keys, wanted, sorter=order).clip(max=len(keys) - 1)
    found = order[near]
    return np.where(keys[found] == wanted, found, -1)
