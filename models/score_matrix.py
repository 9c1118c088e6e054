"""A published table of P(match): another model's scores, joined by key.

A matrix, [images x captions], comes as a tensor (`.pt`, such as SIMAT's
`oscar_similarity_matrix.pt`) or an array (`.npy`), with one file that names its rows and one that
names its columns, one key per line; positions are never guessed. A `.parquet` file has a row per
score instead, with the columns `image`, `caption` and `probability`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import read_text_lines, shown
from eqforge.core.identity import fingerprint
from eqforge.core.visible import counted
from eqforge.models.arrays import read_array
from eqforge.models.scorer import Identity, IndexPairs, Matches, Picture

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class MatrixFiles:
    """A .pt, .npy or .parquet file of scores by a model of a family, such as `oscar`.

    Text files name the image of each row and the caption of each column, except for .parquet.
    """

    scores: Path
    rows: Path | None = None
    columns: Path | None = None
    family: str = "unknown"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ScoreTable:
    """Scores in [0, 1] by the indices of their keys.

    `cells` are the scored cells, image * captions + caption, ascending; None for all.
    """

    images: dict[str, int]
    captions: dict[str, int]
    cells: NDArray[np.int64] | None
    probabilities: NDArray[np.floating[Any]]

    def find(self, image: int, caption: str) -> float:
        """Return the score of an image, by its index, and a caption; NaN if there is none."""
        if caption not in self.captions:
            return np.nan
        cell = image * len(self.captions) + self.captions[caption]
        if self.cells is None:
            return float(self.probabilities[cell])
        place = int(np.searchsorted(self.cells, cell))
        there = place < len(self.cells) and self.cells[place] == cell
        return float(self.probabilities[place]) if there else np.nan


class MatrixScorer:
    """Looks up published scores."""

    reads_pixels = False
    gives_log_odds = True

    def __init__(self, files: MatrixFiles) -> None:
        self._files = files
        self._table = read_table(files)

    @functools.cached_property
    def identity(self) -> Identity:
        files = self._files
        keys = [path for path in (files.rows, files.columns) if path is not None]
        return Identity(
            kind="matrix",
            family=files.family,
            model=files.scores.name,
            revision=f"sha256:{storage.digest(str(files.scores))[1]}",
            precision=str(self._table.probabilities.dtype),
            preprocessing=fingerprint([storage.digest(str(path))[1] for path in keys]),
            calibration="as published",
        )

    def prepare(self, picture: Picture) -> int:
        if picture.key not in self._table.images:
            raise ValueError(f"{self._files.scores.name}: no scores for the image {picture.key!r}")
        return self._table.images[picture.key]

    def encode_images(self, prepared: Sequence[int]) -> list[int]:
        return list(prepared)

    def match(self, images: Sequence[Any], captions: Sequence[str], pairs: IndexPairs) -> Matches:
        table = self._table
        found = np.array([table.find(images[image], captions[text]) for image, text in pairs])
        # For finite log-odds, 0 and 1 count as the next numbers of the published type inside.
        zero, one = np.array([0, 1], table.probabilities.dtype)
        within = found.clip(float(np.nextafter(zero, one)), float(np.nextafter(one, zero)))
        logits = (np.log(within) - np.log1p(-within)).astype(np.float32)
        return Matches(logits=logits, probabilities=found)


def read_table(files: MatrixFiles) -> ScoreTable:
    if not files.scores.is_file():
        raise InputError(f"{files.scores}: no such file")
    is_list = files.scores.suffix == ".parquet"
    table = _read_parquet(files.scores) if is_list else _read_matrix(files)
    # The comparisons are false for NaN, too.
    wrong = table.probabilities[~((table.probabilities >= 0) & (table.probabilities <= 1))]
    if len(wrong):
        raise InputError(f"{files.scores}: expected probabilities from 0 to 1, found {wrong[0]:g}")
    return table


def _read_matrix(files: MatrixFiles) -> ScoreTable:
    if files.rows is None or files.columns is None:
        raise InputError(
            f"{files.scores} does not name its images and captions. After the file name, append "
            ",rows=FILE (one image key per line) and ,columns=FILE (one caption per line)."
        )
    images, captions = _read_keys(files.rows), _read_keys(files.columns)
    matrix = read_array(files.scores)
    if files.scores.suffix != ".npy" and matrix.dtype.kind != "f":
        matrix = matrix.astype(np.float32)  # a tensor of 0 and 1
    if matrix.ndim != 2 or not np.issubdtype(matrix.dtype, np.floating):
        raise InputError(
            f"{files.scores}: expected a two-dimensional array of floats, found "
            f"{counted(matrix.ndim, 'dimensions')} of {matrix.dtype}"
        )
    if matrix.shape != (len(images), len(captions)):
        raise InputError(
            f"{files.scores}: expected {len(images)} x {len(captions)} scores, one for each line "
            f"of {files.rows.name} and {files.columns.name}, found "
            f"{len(matrix)} x {matrix.shape[1]}"
        )
    return ScoreTable(images=images, captions=captions, cells=None, probabilities=matrix.ravel())


def _read_keys(path: Path) -> dict[str, int]:
    lines = read_text_lines(path)
    places = {line.strip(): place for place, line in enumerate(lines)}
    if len(places) < len(lines):
        twice = next(line for place, line in enumerate(lines) if places[line.strip()] != place)
        raise InputError(f"{path}: the key {shown(twice.strip())} appears twice")
    return places


def _read_parquet(path: Path) -> ScoreTable:
    import pyarrow as pa

    from eqforge.core.files.foreign_tables import read_parquet

    texts = {"image": pa.string(), "caption": pa.string()}
    table = read_parquet(
        path, texts | {"probability": pa.float64()}, "the columns image, caption, probability"
    )
    if any((table[name].codes < 0).any() for name in texts):
        raise InputError(f"{path}: a row lacks an image or a caption")
    images, captions = (
        {key: place for place, key in enumerate(table[name].known)} for name in texts
    )
    cells = table["image"].codes.astype(np.int64) * len(captions) + table["caption"].codes
    order = np.argsort(cells)
    if (np.diff(cells[order]) == 0).any():
        raise InputError(f"{path}: an image-caption pair appears twice")
    scores = table["probability"].to_numpy(zero_copy_only=False)[order]
    return ScoreTable(images=images, captions=captions, cells=cells[order], probabilities=scores)
