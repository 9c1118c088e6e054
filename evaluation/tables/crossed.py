"""Scores of all images with all captions: a dual encoder's vectors, or a grid."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.tables.scores import open_scores_of
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.score_tables import ScoresFolder

# A row has the scores of all captions: 10 rows of 25,000 captions are about 15 MB of text.
_GRID_ROWS = 10
# In a full grid all rows name the same captions, which are looked up only once.
_NO_TEXTS = pa.array([], pa.string())

What: TypeAlias = Literal["images", "captions"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CrossedScores:
    """One model's scores of images and captions, as vectors or as a grid.

    Attributes:
      images, captions: ids and texts, unique and sorted Python objects [n].
      vectors: float32 [n, d] of each, of unit length; empty for a grid.
      grid: scores [images, captions], -inf where a pair was not scored: 0.5 GB for 5,000 images and
        25,000 captions; None for vectors.
      failures: number of images and captions that were not scored, by reason.
    """

    model: str
    images: NDArray[Any]
    captions: NDArray[Any]
    vectors: dict[What, NDArray[np.float32]]
    grid: NDArray[np.float32] | None
    failures: dict[str, int]
    warnings: tuple[str, ...]

    def places(self, kind: What, wanted: NDArray[Any]) -> NDArray[np.int64]:
        """Return the row or column of each wanted image or caption, -1 if absent."""
        known = self.images if kind == "images" else self.captions
        return _places(pa.array(wanted, pa.string()), known)

    @property
    def why(self) -> str:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.failures.items())
        return f" ({reasons})" if reasons else ""


def read_crossed(folder: str, dataset: Dataset) -> CrossedScores:
    scores = open_scores_of(folder, dataset)
    tables = scores.manifest.tables
    vectors: dict[What, NDArray[np.float32]] = {}
    grid = None
    if "image_vectors" in tables and "caption_vectors" in tables:
        images, vectors["images"] = _read_vectors(scores, "image_vectors", "image_id")
        captions, vectors["captions"] = _read_vectors(scores, "caption_vectors", "caption")
        if vectors["images"].shape[1] != vectors["captions"].shape[1]:
            raise InputError(f"{folder}: image vectors and caption vectors differ in length")
    elif "grid" in tables:
        images, captions = _grid_names(scores)
        grid = _read_grid(scores, images, captions)
    else:
        raise InputError(
            f"{folder}: expected vectors or a grid of scores; found "
            f"{', '.join(tables) or 'no tables'}"
        )
    reasons: Counter[str] = Counter()
    for batch in scores.batches("failures", ["table", "reason"]):
        reasons.update(f"{row['table']}: {row['reason']}" for row in batch.to_pylist())
    return CrossedScores(
        model=scores.manifest.model.name,
        images=images,
        captions=captions,
        vectors=vectors,
        grid=grid,
        failures=dict(sorted(reasons.items())),
        warnings=tuple(scores.manifest.warnings),
    )


def _read_vectors(
    scores: ScoresFolder, table: str, key: str
) -> tuple[NDArray[Any], NDArray[np.float32]]:
    batches = list(scores.batches(table, [key, "vector"]))
    if not batches:
        raise InputError(f"{scores.folder}: the table `{table}` is empty")
    names = [name for batch in batches for name in batch.column(0).to_pylist()]
    keys = np.array(names, dtype=object)
    vectors = np.concatenate([_matrix(batch.column(1)) for batch in batches])
    order = np.argsort(keys)
    keys, vectors = keys[order], vectors[order]
    twice = np.flatnonzero(keys[1:] == keys[:-1])
    if len(twice):
        raise InputError(f"{scores.folder} has two vectors for {str(keys[twice[0]])!r}")
    if not np.isfinite(vectors).all():
        raise InputError(f"{scores.folder}: a vector in {table} is not finite")
    return keys, vectors


def _matrix(column: pa.FixedSizeListArray) -> NDArray[np.float32]:
    flat = column.flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
    return flat.reshape(len(column), -1)


def _read_grid(
    scores: ScoresFolder, images: NDArray[Any], captions: NDArray[Any]
) -> NDArray[np.float32]:
    if not len(images) or not len(captions):
        raise InputError(f"{scores.folder}: the table `grid` is empty")
    found = np.full((len(images), len(captions)), -np.inf, dtype=np.float32)
    known, places = _NO_TEXTS, np.empty(0, dtype=np.int64)
    for batch in scores.batches("grid", ["image_id", "captions", "values"], _GRID_ROWS):
        names, texts, values = batch.columns
        if texts.value_lengths() != values.value_lengths():
            raise InputError(
                f"{scores.folder}: a row of the table `grid` has fewer scores than captions"
            )
        sizes = texts.value_lengths().to_numpy(zero_copy_only=False)
        cells = values.flatten().to_numpy(zero_copy_only=False)
        if np.isnan(cells).any():
            raise InputError(f"{scores.folder}: a score in the grid is not a number")
        encoded = texts.flatten().dictionary_encode()
        if not encoded.dictionary.equals(known):
            known, places = encoded.dictionary, _places(encoded.dictionary, captions)
        columns = places[encoded.indices.to_numpy(zero_copy_only=False)]
        found[np.repeat(_places(names, images), sizes), columns] = cells
    return found


def _grid_names(scores: ScoresFolder) -> tuple[NDArray[Any], NDArray[Any]]:
    images: set[str] = set()
    captions: set[str] = set()
    known = _NO_TEXTS
    for batch in scores.batches("grid", ["image_id", "captions"], _GRID_ROWS):
        images.update(batch.column(0).to_pylist())
        texts = batch.column(1).flatten().unique()
        if not texts.equals(known):
            captions.update(texts.to_pylist())
            known = texts
    return np.array(sorted(images), dtype=object), np.array(sorted(captions), dtype=object)


def _places(wanted: pa.Array, keys: NDArray[Any]) -> NDArray[np.int64]:
    found = pc.index_in(wanted, value_set=pa.array(keys, pa.string()))
    places: NDArray[np.int64] = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return places
