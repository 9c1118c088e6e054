"""Encoders of pictures: DINOv2, and the image side of dual encoders.

The cosine between the vectors of two pictures is what DreamBooth's evaluation (Ruiz et al. 2023,
section 4.1) calls DINO and CLIP-I.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files.source_file import unchanged
from eqforge.core.identity import fingerprint
from eqforge.models.dual_encoders import ARCHITECTURES, unit_vectors
from eqforge.models.pretrained import (
    Weights,
    import_torch,
    load_auto,
    load_model,
    stack_pixels,
)
from eqforge.models.scorer import Identity, Picture
from eqforge.models.spec import SCORERS, ScorerSpec, load_scorer, parse_spec

if TYPE_CHECKING:
    from numpy.typing import NDArray

DINOV2 = "dinov2"
OPTIONS: Mapping[str, frozenset[str]] = {
    DINOV2: frozenset({"precision", "device"}),
    **{kind: SCORERS[kind].options - {"scale", "centre"} for kind in (*ARCHITECTURES, "open-clip")},
}
"""The kinds of encoders of pictures, with the options that decide their vectors."""


class ImageEncoder(Protocol):
    """Encodes pictures as unit vectors."""

    @property
    def identity(self) -> Identity:
        """Which model this is."""

    def prepare(self, picture: Picture) -> Any:
        """Return the model's input for one picture."""

    def encode_images(self, prepared: Sequence[Any]) -> Sequence[NDArray[np.float32]]:
        """Return a unit vector for each picture, float32 of shape (dimensions,)."""


def parse_encoder(text: str) -> ScorerSpec:
    """Read `KIND:SOURCE[@COMMIT][,OPTION=VALUE]...`."""
    return parse_spec(text, OPTIONS)


def load_encoder(spec: ScorerSpec) -> ImageEncoder:
    if spec.kind != DINOV2:
        return load_scorer(spec)
    with unchanged([spec.source]):
        return Dinov2Encoder(spec.weights())


class Dinov2Encoder:
    """DINOv2 (Oquab et al. 2023), by its class token."""

    def __init__(self, weights: Weights) -> None:
        self._torch, self._weights = import_torch(), weights
        self._processor = load_auto("AutoImageProcessor", weights)
        self._model = load_model(weights, "Dinov2Model")
        self._side = _side(self._processor, weights)
        self.identity = weights.identity(
            DINOV2, DINOV2, fingerprint([self._processor.to_json_string(), "whole picture"])
        )

    def prepare(self, picture: Picture) -> NDArray[np.float32]:
        """Return the resized and normalised picture, float32 of shape (3, side, side).

        DINOv2's own preparation crops the middle; here the whole picture becomes a square, so that
        what changes at its edge counts.
        """
        from PIL import Image

        if picture.pixels is None:
            raise ValueError(f"{picture.key}: no pixels")
        square = {"height": self._side, "width": self._side}
        image = Image.fromarray(picture.pixels, "RGB")
        values = self._processor(images=image, size=square, do_center_crop=False)["pixel_values"]
        return np.asarray(values[0], dtype=np.float32)

    def encode_images(self, prepared: Sequence[Any]) -> list[NDArray[np.float32]]:
        with self._torch.inference_mode():
            pixels = stack_pixels(prepared, self._weights.device, self._model.dtype)
            return list(unit_vectors(self._model(pixel_values=pixels).pooler_output))


def _side(processor: Any, weights: Weights) -> int:
    """Return the side of the square that the model reads."""
    sizes = (getattr(processor, name, None) or {} for name in ("crop_size", "size"))
    found = next((size["height"] for size in sizes if "height" in size), None)
    if found is None:
        raise InputError(f"{weights.source}: its preprocessor_config.json names no height")
    return int(found)
