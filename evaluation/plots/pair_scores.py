"""Scores of minimal pairs by several models, with a measure of each pair from the dataset."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.ties import Flags
from eqforge.evaluation.tables.report import model_names
from eqforge.evaluation.tables.samples import read_columns, text_array
from eqforge.evaluation.tables.scores import SampleScores, places_of, read_file, read_folder
from eqforge.evaluation.tasks.samples import TASKS
from eqforge.schemas.dataset.reader import Dataset

PAIRS = TASKS["pairs"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PairScores:
    """One model's scores of the pairs it has scored.

    Attributes:
      model: name of the model.
      scores: sample, image, caption [n, 2, 2].
      clusters: the source of each sample [n].
      measured: a column of the dataset [n], NaN for null.
      quantity: what a score is; None if unknown.
    """

    model: str
    scores: NDArray[np.floating[Any]]
    clusters: NDArray[Any]
    measured: NDArray[np.float64]
    quantity: str | None


def read_pair_scores(
    dataset: Dataset,
    paths: Sequence[Path],
    column: str | None,
    *,
    allow_missing: bool,
    quantity: str | None = None,
) -> list[PairScores]:
    """Reads the scores of some models.

    Args:
      dataset: a dataset of pairs.
      paths: a folder or file of scores for each model.
      column: a numeric column of the samples to read too; None for none.
      allow_missing: whether samples may have no scores.
      quantity: what a score in a file is; None if unknown. Folders say it themselves.

    Raises:
      InputError: the dataset has no pairs or no such column, or scores are missing.
    """
    names = dataset.columns("samples")
    wanted = ["sample_id", PAIRS.cluster, *([] if column is None else [column])]
    for name in (*PAIRS.images, *PAIRS.captions, *wanted):
        if name not in names:
            raise InputError(
                f"{dataset.folder}: its samples have no column {name!r}; there are "
                f"{', '.join(names) or 'none'}"
            )
    if not paths:
        raise InputError(f"name scores of {dataset.folder} after it; eqforge score makes them")
    rows = read_columns(dataset, "samples", wanted)
    keys = text_array(rows["sample_id"])
    measured = np.full(len(keys), np.nan) if column is None else _numbers(column, rows[column])
    found = [_read(path, dataset, quantity) for path in paths]
    models = model_names([scores.model for scores in found], list(paths))
    read = []
    for path, name, scores in zip(paths, models, found, strict=True):
        places = places_of(keys, scores, str(path), allow_missing=allow_missing)
        has: Flags = places >= 0
        read.append(
            PairScores(
                model=name,
                scores=scores.values[places[has]].reshape(-1, 2, 2),
                clusters=text_array(rows[PAIRS.cluster])[has],
                measured=measured[has],
                quantity=scores.quantity,
            )
        )
    return read


def _numbers(column: str, values: Sequence[Any]) -> NDArray[np.float64]:
    try:
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"--measure {column}: expected a column of numbers: {error}") from error


def _read(path: Path, dataset: Dataset, quantity: str | None) -> SampleScores:
    if path.is_dir():
        return read_folder(str(path), dataset, PAIRS.images, PAIRS.captions)
    return read_file(path, PAIRS.width, quantity)
