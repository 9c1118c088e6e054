"""Vectors of images and captions that any encoder wrote, and the heads trained on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import name_of, shown
from eqforge.core.identity import fingerprint
from eqforge.core.visible import counted
from eqforge.models.arrays import read_arrays
from eqforge.models.dual_encoders import CENTRE, Sigmoid, VectorScorer
from eqforge.models.scorer import Identity, Picture, Vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

VECTORS: Final = "vectors"


class StoredVectors:
    """The arrays image_ids, image_vectors, captions and caption_vectors of an `.npz` file.

    Attributes:
      images, captions: float32 [items, dimensions]; their dimensions may differ.
      image_rows, caption_rows: the row of each image id and of each caption.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        self.path, self.name, arrays = path, path.name, read_arrays(path)
        self.image_rows, self.images = _read(path, arrays, "image_ids", "image_vectors")
        self.caption_rows, self.captions = _read(path, arrays, "captions", "caption_vectors")

    def digest(self) -> str:
        return f"sha256:{storage.digest(str(self.path))[1]}"

    def check(self, image_ids: Iterable[str], captions: Iterable[str]) -> None:
        """Raise InputError if an image or a caption has no vector."""
        for kind, wanted, known in (
            ("images", image_ids, self.image_rows),
            ("captions", captions, self.caption_rows),
        ):
            if missing := sorted(set(wanted) - known.keys()):
                raise InputError(
                    f"{self.path} has no vectors for {counted(len(missing), kind)} of the dataset, "
                    f"such as {shown(missing[0])}; add all missing vectors"
                )


def _read(
    path: Path, arrays: Mapping[str, NDArray[Any]], keys: str, values: str
) -> tuple[dict[str, int], NDArray[np.float32]]:
    if missing := {keys, values} - arrays.keys():
        raise InputError(f"{path} contains no array {min(missing)!r}; add it with numpy.savez")
    names, vectors = arrays[keys], arrays[values]
    kinds, sizes = names.dtype.kind + vectors.dtype.kind, (names.ndim, vectors.ndim)
    if kinds != "Uf" or sizes != (1, 2) or not vectors.shape[1]:
        raise InputError(
            f"{path}: {keys!r} must contain N strings, and {values!r} N x D floats. Found "
            f"{names.dtype} of shape {names.shape} and {vectors.dtype} of shape {vectors.shape}."
        )
    if len(names) != len(vectors):
        raise InputError(f"{path}: found {len(names):,} {keys!r}, but {len(vectors):,} {values!r}")
    rows = {name: row for row, name in enumerate(names.tolist())}
    if len(rows) < len(names):
        twice = next(name for row, name in enumerate(names.tolist()) if rows[name] != row)
        raise InputError(f"{path}: {keys!r} contains {shown(twice)} twice")
    with np.errstate(over="ignore"):
        single = vectors.astype(np.float32)
    for row in np.flatnonzero(~np.isfinite(single).all(axis=1)).tolist():
        raise InputError(f"{path}: the vector of {shown(str(names[row]))} has a non-finite value")
    return rows, single


class StoredScorer(VectorScorer):
    """Compares stored vectors by their cosine, after the heads in a folder, if there is one."""

    reads_pixels = False
    # CLIP's scale, as in the published models.
    calibration = Sigmoid(scale=100.0, bias=-100.0 * CENTRE)

    def __init__(self, path: Path, heads: Path | None) -> None:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        self.stored = stored = StoredVectors(path)
        self._heads = None if heads is None else heads / "model.safetensors"
        try:
            weights = {} if self._heads is None else load_file(self._heads)
            self._images = _unit(stored.images, stored.image_rows, weights, "image.")
            self._captions = _unit(stored.captions, stored.caption_rows, weights, "text.")
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            with_heads = "" if heads is None else f" with the heads in {heads}"
            raise InputError(f"{path}{with_heads}: {error}") from error
        if self._images.shape[1] != self._captions.shape[1]:
            raise InputError(
                f"{path}: image vectors have {self._images.shape[1]} dimensions, but caption "
                f"vectors have {self._captions.shape[1]}; after the file name, append "
                ",heads=FOLDER, with heads that `eqforge finetune` trained"
            )

    @cached_property
    def identity(self) -> Identity:
        parts = [self.stored.digest()]
        if self._heads is not None:
            parts.append(storage.digest(str(self._heads))[1])
        return Identity(
            kind=VECTORS,
            family=VECTORS,
            model=self.stored.name if self._heads is None else self._heads.resolve().parent.name,
            revision=parts[0] if len(parts) == 1 else f"sha256:{fingerprint(parts)}",
            precision="float32",
            preprocessing="none",
            calibration=str(self.calibration),
        )

    def prepare(self, picture: Picture) -> Any:
        if picture.key not in self.stored.image_rows:
            raise ValueError(f"{self.stored.name} has no vector for the image {picture.key!r}")
        return self.stored.image_rows[picture.key]

    def encode_images(self, prepared: Sequence[int]) -> list[NDArray[np.float32]]:
        return list(self._images[list(prepared)])

    def encode_captions(self, captions: Sequence[str]) -> Vectors:
        self.stored.check((), captions)
        return self._captions[[self.stored.caption_rows[caption] for caption in captions]]


def _unit(
    vectors: NDArray[np.float32],
    rows: Mapping[str, int],
    weights: Mapping[str, NDArray[Any]],
    side: str,
) -> Vectors:
    """Apply the linear layers of a side, with ReLU between them, and scale to unit length.

    Sums are in float64, so the float32 results do not depend on the number of threads.
    """
    found = vectors.astype(np.float64)
    layers = sorted(name for name in weights if name.startswith(side) and name.endswith(".weight"))
    if weights and not layers:
        raise ValueError(f"the folder contains no {side.strip('.')} head")
    for place, name in enumerate(layers):
        weight = weights[name].astype(np.float64)
        found = np.maximum(found, 0) if place else found
        if found.shape[1] != weight.shape[1]:
            raise ValueError(
                f"{side.strip('.')} vectors have {found.shape[1]} dimensions, but their head was "
                f"trained on {weight.shape[1]}"
            )
        found = found @ weight.T + weights[name.replace("weight", "bias")]
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    for name, row in rows.items() if not lengths.all() else ():
        if not lengths[row]:
            raise ValueError(f"the vector of {name_of(name)} is zero")
    return np.asarray(found / lengths, dtype=np.float32)
