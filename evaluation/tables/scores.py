"""Scores of samples, from a folder of `eqforge score` or a file, and the join by key."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.visible import counted
from eqforge.evaluation.tables.samples import text_array
from eqforge.evaluation.tables.score_files import (
    FILE_SUFFIXES,
    Layout,
    check_shape,
    from_array,
    from_parquet,
    from_records,
    rectangle,
)
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.score_tables import ScoresFolder, open_scores
from eqforge.sources.benchmarks.items import parse_columns

LARGEST_SCORE = 1e100
"""Squares of larger scores, and sums of them, would overflow."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SampleScores:
    """Scores of samples by one model.

    Attributes:
      keys: ids of the samples [n], unique.
      values: the scores [n, scores a sample]; a sample with a NaN counts as missing.
      quantity: `cosine`, `logit` or `probability`; None if unknown.
      failures: number of samples that were not scored, by reason.
    """

    model: str
    keys: NDArray[Any]
    values: NDArray[np.floating[Any]]
    quantity: str | None
    failures: dict[str, int]
    warnings: tuple[str, ...] = ()

    @property
    def is_unknown(self) -> NDArray[np.bool_]:
        """Which samples have a NaN [n]."""
        return np.asarray(np.isnan(self.values).any(axis=1))

    def without(self, ids: Collection[str]) -> "SampleScores":
        left = ~np.isin(self.keys, np.array(sorted(ids), dtype=object))
        return replace(self, keys=self.keys[left], values=self.values[left])


def open_scores_of(folder: str, dataset: Dataset) -> ScoresFolder:
    scores, found = open_scores(folder), dataset.sha256
    if scores.manifest.dataset_sha256 != found:
        raise InputError(
            f"{scores.folder} contains scores for {scores.manifest.dataset} (SHA-256 "
            f"{scores.manifest.dataset_sha256[:12]}), but {dataset.folder} is a different dataset "
            f"or version (SHA-256 {found[:12]}); score the dataset again"
        )
    return scores


def read_folder(
    folder: str, dataset: Dataset, images: Sequence[str], captions: Sequence[str]
) -> SampleScores:
    scores = open_scores_of(folder, dataset)
    manifest = scores.manifest
    if (manifest.images, manifest.captions) != (list(images), list(captions)):
        raise InputError(
            f"{folder}: expected scores for the columns {', '.join([*images, *captions])}; found "
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
            values=rectangle(folder, [batch.column(1) for batch in batches], layout),
            quantity=manifest.quantity,
            failures=dict(sorted(reasons.items())),
            warnings=tuple(manifest.warnings),
        ),
    )


def read_file(
    path: Path,
    images: Sequence[str],
    captions: Sequence[str],
    quantity: str | None = None,
    names: Sequence[str] = (),
    dataset: Dataset | None = None,
) -> SampleScores:
    """Read a file of scores that any program wrote, one row per sample.

    Args:
      path: `.csv`, `.parquet`, `.jsonl`, `.json` or `.npz` with `sample_id` and either a column for
        each score (`c1_i0` is caption 1 with image 0) or `values`, a list of all; `.json` can also
        be an object of values by id; `.npy` or `.npz`, one array [samples, scores] or [samples,
        images, captions], with the ids in `.ids.txt`, in a text array of the `.npz`, or nowhere.
      names: columns with other names, such as `c0_i0=left`.
      dataset: the scored dataset; arrays without ids have its samples, in its order.
    """
    if path.is_dir():
        raise InputError(
            f"{path} is a folder. If eqforge score wrote it, pass its dataset first: eqforge "
            "metrics DATASET SCORES. Otherwise, pass a file with one of these endings: "
            f"{', '.join(FILE_SUFFIXES)}"
        )
    if path.suffix not in FILE_SUFFIXES:
        raise InputError(
            f"{path}: unknown file type. Pass a folder written by eqforge score, or a file with "
            f"one of these endings: {', '.join(FILE_SUFFIXES)}. Answers from lmms-eval "
            "(*_samples_*.jsonl) and VLMEvalKit (.xlsx) also work"
        )
    layout = Layout(images, captions, dataset=dataset)
    layout = layout._replace(names=parse_columns(names, layout.fields))
    warnings: tuple[str, ...] = ()
    values: NDArray[np.floating[Any]]
    if path.suffix in (".npy", ".npz"):
        ids, values = from_array(path, layout)
        keys = layout.ids(len(values)) if ids is None else ids
        if ids is None:
            check_shape(path, values, layout, len(keys))
            order = "numbered" if dataset is None else "joined with the dataset's samples in order"
            warnings = (f"{len(keys):,} rows without ids were {order}.",)
    else:
        read = from_parquet if path.suffix == ".parquet" else from_records
        keys, values = read(path, layout)
    return _checked(
        str(path),
        SampleScores(
            model=path.stem,
            keys=text_array(keys),
            values=values.reshape(-1, layout.width),
            quantity=quantity,
            failures={},
            warnings=warnings,
        ),
    )


def _checked(where: str, scores: SampleScores) -> SampleScores:
    unique, counts = np.unique(scores.keys, return_counts=True)
    if len(unique) < len(scores.keys):
        raise InputError(f"{where}: the sample {str(unique[counts > 1][0])!r} appears twice")
    too_large = np.abs(scores.values.astype(np.float64)) > LARGEST_SCORE
    if (bad := np.asarray(too_large.any(axis=1))).any():
        raise InputError(
            f"{where}: the scores for {str(scores.keys[bad][0])!r} must be finite and between "
            f"-{LARGEST_SCORE:g} and {LARGEST_SCORE:g}"
        )
    outside = (scores.values < 0) | (scores.values > 1)
    if scores.quantity == "probability" and (bad := np.asarray(outside.any(axis=1))).any():
        raise InputError(
            f"{where}: the scores for {str(scores.keys[bad][0])!r} are not probabilities (0 to 1)"
        )
    return scores


def places_of(
    expected: NDArray[Any], scores: SampleScores, where: str, *, allow_missing: bool
) -> NDArray[np.int64]:
    """Return the row of each expected sample's scores, -1 if there are none or one is NaN."""
    is_unknown = scores.is_unknown
    if is_unknown.any() and not allow_missing:
        raise InputError(
            f"{where}: found NaN, empty or null scores for "
            f"{counted(int(is_unknown.sum()), 'samples')} (first: "
            f"{str(scores.keys[is_unknown][0])!r}); pass --allow-missing to skip them"
        )
    if is_unknown.all():
        raise InputError(f"{where} contains no scores")
    places = places_in(expected, scores.keys)
    places[is_unknown[places] & (places >= 0)] = -1
    strange = np.setdiff1d(scores.keys, expected)
    if len(strange) == len(scores.keys):
        raise InputError(
            f"{where}: none of its ids, such as {str(strange[0])!r}, is in the dataset; pass "
            "scores for this dataset"
        )
    if len(strange):
        raise InputError(
            f"{where}: found scores for {counted(len(strange), 'samples')} outside the dataset, "
            f"such as {str(strange[0])!r}"
        )
    missing = expected[places < 0]
    if len(missing) and not allow_missing:
        why = ", ".join(f"{count:,} {reason}" for reason, count in scores.failures.items())
        raise InputError(
            f"{where}: {len(missing):,} of {len(expected):,} samples have no score, for example "
            f"{str(missing[0])!r}{f' ({why})' if why else ''}; pass --allow-missing to skip them"
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
