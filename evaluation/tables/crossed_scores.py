"""Reads scores of all images with all captions: a dual encoder's vectors, or a grid."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.tables.sample_scores import check_dataset
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.score_tables import ScoresFolder, open_scores

# A row has the scores of all captions: 10 rows of 25,000 captions are some 15 MB of text.
_GRID_ROWS = 10
# In a full grid all rows name the same captions, which are then looked up once.
_NO_TEXTS = pa.array([], pa.string())


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Keyed:
    """Vectors under their keys.

    Attributes:
      keys: ids or texts, unique and sorted Python objects [n].
      vectors: float32 [n, d], unit length.
    """

    keys: NDArray[Any]
    vectors: NDArray[np.float32]

    def places(self, wanted: NDArray[Any]) -> NDArray[np.int64]:
        """Returns the row of each wanted key, -1 where it has no vector."""
        return _places(pa.array(wanted, pa.string()), self.keys)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CrossedScores:
    """One model's scores of images and captions.

    Attributes:
      model: name of the model.
      images, captions: their vectors; None for a grid.
      grid: scores by image and caption; None for vectors.
      failures: number of images and captions that were not scored, by reason.
      warnings: warnings of `eqforge score`.
    """

    model: str
    images: Keyed | None
    captions: Keyed | None
    grid: "Grid | None"
    failures: dict[str, int]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Grid:
    """A labelled matrix in memory: 0.5 GB for 5,000 images and 25,000 captions.

    Attributes:
      images: their ids, unique and sorted Python objects [images].
      captions: their texts, likewise [captions].
      scores: [images, captions], -inf where a pair was not scored.
    """

    images: NDArray[Any]
    captions: NDArray[Any]
    scores: NDArray[np.float32]

    def rows(self, wanted: NDArray[Any]) -> NDArray[np.int64]:
        """Returns the row of each wanted image, -1 if it has none."""
        return _places(pa.array(wanted, pa.string()), self.images)

    def columns(self, wanted: NDArray[Any]) -> NDArray[np.int64]:
        """Returns the column of each wanted caption, -1 if it has none."""
        return _places(pa.array(wanted, pa.string()), self.captions)


def read_crossed(folder: str, dataset: Dataset) -> CrossedScores:
    """Reads the scores that `eqforge score` wrote of all images with all captions of a dataset.

    Raises:
      InputError: it is not such a folder, is of another dataset, or is damaged.
    """
    scores = open_scores(folder)
    check_dataset(scores, dataset)
    tables = scores.manifest.tables
    if "image_vectors" in tables and "caption_vectors" in tables:
        images = _read_vectors(scores, "image_vectors", "image_id")
        captions, grid = _read_vectors(scores, "caption_vectors", "caption"), None
        if images.vectors.shape[1] != captions.vectors.shape[1]:
            raise InputError(f"{folder}: vectors of images and captions differ in length")
        return _crossed(scores, images, captions, grid)
    if "grid" in tables:
        return _crossed(scores, None, None, _read_grid(scores))
    raise InputError(
        f"{folder}: expected vectors or a grid of scores; it has {', '.join(tables) or 'no tables'}"
    )


def _crossed(
    scores: ScoresFolder, images: Keyed | None, captions: Keyed | None, grid: Grid | None
) -> CrossedScores:
    reasons: Counter[str] = Counter()
    for batch in scores.batches("failures", ["table", "reason"]):
        reasons.update(f"{row['table']}: {row['reason']}" for row in batch.to_pylist())
    return CrossedScores(
        model=scores.manifest.model.name,
        images=images,
        captions=captions,
        grid=grid,
        failures=dict(sorted(reasons.items())),
        warnings=tuple(scores.manifest.warnings),
    )


def _read_vectors(scores: ScoresFolder, table: str, key: str) -> Keyed:
    batches = list(scores.batches(table, [key, "vector"]))
    if not batches:
        raise InputError(f"{scores.folder}: its table of {table} is empty")
    names = [name for batch in batches for name in batch.column(0).to_pylist()]
    keys = np.array(names, dtype=object)
    vectors = np.concatenate([_matrix(batch.column(1)) for batch in batches])
    order = np.argsort(keys)
    keys, vectors = keys[order], vectors[order]
    twice = np.flatnonzero(keys[1:] == keys[:-1])
    if len(twice):
        raise InputError(f"{scores.folder}: two vectors of {str(keys[twice[0]])!r}")
    if not np.isfinite(vectors).all():
        raise InputError(f"{scores.folder}: a vector in {table} is not finite")
    return Keyed(keys=keys, vectors=vectors)


def _matrix(column: pa.FixedSizeListArray) -> NDArray[np.float32]:
    flat = column.flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
    return flat.reshape(len(column), -1)


def _read_grid(scores: ScoresFolder) -> Grid:
    images, captions = _grid_names(scores)
    if not len(images) or not len(captions):
        raise InputError(f"{scores.folder}: its grid is empty")
    found = np.full((len(images), len(captions)), -np.inf, dtype=np.float32)
    known, places = _NO_TEXTS, np.empty(0, dtype=np.int64)
    for batch in scores.batches("grid", ["image_id", "captions", "values"], _GRID_ROWS):
        names, texts, values = batch.columns
        if texts.value_lengths() != values.value_lengths():
            raise InputError(f"{scores.folder}: a row of its grid has not a score for each caption")
        sizes = texts.value_lengths().to_numpy(zero_copy_only=False)
        cells = values.flatten().to_numpy(zero_copy_only=False)
        if np.isnan(cells).any():
            raise InputError(f"{scores.folder}: a score in the grid is not a number")
        encoded = texts.flatten().dictionary_encode()
        if not encoded.dictionary.equals(known):
            known, places = encoded.dictionary, _places(encoded.dictionary, captions)
        columns = places[encoded.indices.to_numpy(zero_copy_only=False)]
        found[np.repeat(_places(names, images), sizes), columns] = cells
    return Grid(images=images, captions=captions, scores=found)


def _grid_names(scores: ScoresFolder) -> tuple[NDArray[Any], NDArray[Any]]:
    """Returns the ids of the images and the captions of a grid, each once and sorted."""
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
    """Returns for each wanted text its place among unique keys, -1 where it is not there."""
    found = pc.index_in(wanted, value_set=pa.array(keys, pa.string()))
    places: NDArray[np.int64] = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return places
