"""Reads scores of samples that `eqforge score` wrote, and joins scores with a dataset by key."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.tables.samples import text_array
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.score_tables import ScoresFolder, open_scores

LARGEST_SCORE = 1e100
"""Squares of larger scores, and sums of them, would overflow."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SampleScores:
    """Scores of samples by one model.

    Attributes:
      model: name of the model.
      keys: ids of the samples [n], unique.
      values: the scores [n, scores a sample], finite.
      quantity: `cosine`, `logit` or `probability`; None if unknown.
      failures: number of samples that were not scored, by reason.
      warnings: warnings of `eqforge score`.
    """

    model: str
    keys: NDArray[Any]
    values: NDArray[np.floating[Any]]
    quantity: str | None
    failures: dict[str, int]
    warnings: tuple[str, ...] = ()


def check_dataset(scores: ScoresFolder, dataset: Dataset) -> None:
    """Checks that scores are of this dataset.

    Raises:
      InputError: they were made of another, or of another build of it.
    """
    found = dataset.sha256
    if scores.manifest.dataset_sha256 != found:
        raise InputError(
            f"{scores.folder}: these are scores of {scores.manifest.dataset} whose manifest is "
            f"{scores.manifest.dataset_sha256[:12]}; that of {dataset.folder} is {found[:12]}: "
            "score it again"
        )


def read_folder(
    folder: str, dataset: Dataset, images: Sequence[str], captions: Sequence[str]
) -> SampleScores:
    """Reads the scores that `eqforge score` wrote of a dataset's samples.

    Args:
      folder: folder of the scores.
      dataset: the scored dataset.
      images: the columns of images that are expected, in order.
      captions: the columns of captions that are expected, in order.

    Raises:
      InputError: it is not such a folder, or is of another dataset or task.
    """
    scores = open_scores(folder)
    check_dataset(scores, dataset)
    manifest = scores.manifest
    if (manifest.images, manifest.captions) != (list(images), list(captions)):
        raise InputError(
            f"{folder}: expected scores of the columns {', '.join([*images, *captions])}; found "
            f"{', '.join([*manifest.images, *manifest.captions]) or 'none'}"
        )
    batches = list(scores.batches("scores", ["sample_id", "values"]))
    width = len(images) * len(captions)
    reasons: Counter[str] = Counter()
    for batch in scores.batches("failures", ["table", "reason"]):
        rows = batch.to_pylist()
        reasons.update(row["reason"] for row in rows if row["table"] == "samples")
    return checked(
        folder,
        SampleScores(
            model=manifest.model.name,
            keys=text_array([key for batch in batches for key in batch.column(0).to_pylist()]),
            values=rectangle(folder, [batch.column(1) for batch in batches], width),
            quantity=manifest.quantity,
            failures=dict(sorted(reasons.items())),
            warnings=tuple(manifest.warnings),
        ),
    )


def checked(where: str, scores: SampleScores) -> SampleScores:
    """Returns the scores after checking them.

    Raises:
      InputError: a key is repeated, or a score is not finite.
    """
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


def rectangle(where: str, columns: Sequence[Any], width: int) -> NDArray[np.floating[Any]]:
    """Returns lists of Arrow as an array [rows, width].

    Raises:
      InputError: a list has another length.
    """
    parts = []
    for column in columns:
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        if (lengths != width).any():
            raise InputError(
                f"{where}: expected {width} scores a sample; found {lengths[lengths != width][0]}"
            )
        parts.append(column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width))
    return np.concatenate(parts) if parts else np.zeros((0, width), dtype=np.float32)


def places_of(
    expected: NDArray[Any], scores: SampleScores, where: str, *, allow_missing: bool
) -> NDArray[np.int64]:
    """Returns for each expected sample the row of its scores, -1 where there is none.

    Args:
      expected: ids of the samples [n].
      scores: what there is.
      where: name of the scores, for messages.
      allow_missing: whether samples may have no scores.

    Raises:
      InputError: scores are missing though not allowed to be, or of unknown samples.
    """
    if not len(scores.keys):
        raise InputError(f"{where}: holds no score at all")
    places = places_in(expected, scores.keys)
    strange = np.setdiff1d(scores.keys, expected)
    if len(strange) == len(scores.keys):
        raise InputError(
            f"{where}: not one of its {len(strange):,} scores is of a sample that the dataset has, "
            f"such as {str(strange[0])!r}: are they of another dataset?"
        )
    if len(strange):
        raise InputError(
            f"{where}: {len(strange):,} scores are of samples that the dataset does not have, such "
            f"as {str(strange[0])!r}"
        )
    missing = expected[places < 0]
    if len(missing) and not allow_missing:
        why = ", ".join(f"{count:,} {reason}" for reason, count in scores.failures.items())
        raise InputError(
            f"{where}: {len(missing):,} of {len(expected):,} samples have no score, such as "
            f"{str(missing[0])!r}{f' ({why})' if why else ''}; --allow-missing leaves them out"
        )
    return places


def places_in(wanted: NDArray[Any], keys: NDArray[Any]) -> NDArray[np.int64]:
    """Returns for each wanted key its place among unique keys, -1 where it is not there."""
    if not len(keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(keys)
    near = np.searchsorted(keys, wanted, sorter=order).clip(max=len(keys) - 1)
    found = order[near]
    return np.where(keys[found] == wanted, found, -1)
