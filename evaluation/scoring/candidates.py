"""Chooses the image-caption pairs that a fusion encoder scores, by a dual encoder's vectors.

Scoring all pairs is too expensive for a fusion encoder: 5,000 images and 25,000 captions make 125
million pairs. As usual in retrieval with such models (Li et al. 2021, ALBEF, section 6.1), it
scores only a dual encoder's top candidates of each image and of each caption.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.scoring.index import Index, Pairs
from eqforge.models.scorer import Vectors
from eqforge.schemas.dataset.score_tables import ScoresFolder, open_scores

_CELLS = 8_000_000


def candidate_pairs(folder: str, dataset_sha256: str, index: Index, top: int) -> Pairs:
    """Returns the union of the `top` captions of each image and the `top` images of each caption.

    Args:
      folder: folder of a dual encoder's vectors.
      dataset_sha256: digest of the manifest of the dataset that the vectors must be of.
      index: the images and captions; one without a vector has only the pairs that others choose.
      top: how many to take, at least 1; ties go to lower numbers.

    Raises:
      InputError: the folder holds no vectors, or those of another dataset.
    """
    scores = open_scores(folder)
    if "image_vectors" not in scores.manifest.tables:
        raise InputError(f"--candidates {folder}: holds no vectors; expected a dual encoder's")
    if scores.manifest.dataset_sha256 != dataset_sha256:
        raise InputError(f"--candidates {folder}: the scores are of another dataset")
    images, image_vectors = _vectors(scores, "image", index.image_numbers())
    captions, caption_vectors = _vectors(scores, "caption", index.caption_numbers())
    width = len(index.captions)
    keys = [np.empty(0, np.int64)]
    for start, best in _best(image_vectors, caption_vectors, top):
        keys.append((images[start : start + len(best), None] * width + captions[best]).ravel())
    for start, best in _best(caption_vectors, image_vectors, top):
        keys.append((images[best] * width + captions[start : start + len(best), None]).ravel())
    rows, columns = np.divmod(np.unique(np.concatenate(keys)), width)
    starts = np.searchsorted(rows, np.arange(len(index.images) + 1)).astype(np.int64)
    return Pairs(starts=starts, captions=columns.astype(np.int32))


def _vectors(
    scores: ScoresFolder, kind: str, numbers: dict[str | None, int]
) -> tuple[NDArray[np.int64], Vectors]:
    """Returns the numbers, ascending, and the vectors of the keys in `numbers`."""
    key = "image_id" if kind == "image" else "caption"
    found: list[NDArray[np.int64]] = []
    vectors: list[Any] = []
    for batch in scores.batches(f"{kind}_vectors"):
        known = np.array([numbers.get(name, -1) for name in batch.column(key).to_pylist()])
        column = batch.column("vector")
        wide = column.type.list_size
        values = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, wide)
        found.append(known[known >= 0])
        vectors.append(values[known >= 0])
    if not found:
        raise InputError(f"{scores.folder}: holds no {kind} vectors")
    order = np.argsort(np.concatenate(found))
    return np.concatenate(found)[order], np.concatenate(vectors)[order]


def _best(rows: Vectors, columns: Vectors, top: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yields, for blocks of rows, the first row and the top columns of each [rows, top]."""
    step = max(1, _CELLS // max(1, len(columns)))
    for start in range(0, len(rows), step):
        cosines = rows[start : start + step] @ columns.T
        yield start, np.argsort(-cosines, axis=1, kind="stable")[:, :top]
