"""Dual encoders: CLIP, SigLIP and their like, and the cosine between image and caption.

CLIP's own softmax gives the share of one caption among those of a batch, not a probability that
a caption is true. Here P(match) = sigmoid(scale * (cosine - centre)): `scale` is by default the
model's own, 100 in the published ones, and `centre` the cosine at which P is one half. Its default
is 0.3, the threshold that LAION-400M (Schuhmann et al. 2021, section 2) chose by human inspection
for ViT-B/32; other models need another. SigLIP is trained with a sigmoid for each pair (Zhai et al.
2023, section 3.2), whose scale and bias come with its weights.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from eqforge.core.errors import InputError
from eqforge.core.late import numpy as np
from eqforge.models.dual_encoders import ARCHITECTURES, Architecture
from eqforge.models.pretrained import (
    Preprocessor,
    Weights,
    check_vocabulary,
    import_torch,
    load_model,
    load_preprocessor,
    prepare_pixels,
    stack_pixels,
)
from eqforge.models.scorer import (
    Identity,
    IndexPairs,
    Matches,
    Picture,
    Vectors,
    match_vectors,
    sigmoid,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

CENTRE = 0.3


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Sigmoid:
    """P(match) = sigmoid(scale * cosine + bias)."""

    scale: float
    bias: float

    def __str__(self) -> str:
        """Returns the formula."""
        return f"sigmoid({self.scale:.9g} * cosine {self.bias + 0.0:+.9g})"


def compare_vectors(calibration: Sigmoid, images: Vectors, captions: Vectors) -> Matches:
    """Scores image i with caption i, for two arrays of equal shape."""
    cosines = np.einsum("nd,nd->n", images, captions, dtype=np.float32)
    # The sum is in float64: the scale is large and the bias nearly cancels it.
    exact = calibration.scale * cosines.astype(np.float64) + calibration.bias
    return Matches(logits=exact.astype(np.float32), probabilities=sigmoid(exact), cosines=cosines)


class ContrastiveScorer:
    """A dual encoder from transformers.

    Args:
      kind: a key of ARCHITECTURES.
      weights: the pretrained model.
      scale, centre: of the sigmoid; None takes the model's own scale, and the model's own bias if
        it has one (SigLIP), otherwise a centre of 0.3.

    Raises:
      InputError: the model cannot be loaded, or the scale is not above 0.
      MissingExtra: torch or transformers is not installed.
    """

    reads_pixels = True

    def __init__(
        self,
        kind: str,
        weights: Weights,
        scale: float | None = None,
        centre: float | None = None,
    ) -> None:
        self._torch = import_torch()
        self._weights = weights
        self._called = ARCHITECTURES[kind]
        preprocessor = load_preprocessor(weights)
        self._model = load_model(weights, self._called.model)
        text = self._model.config.text_config
        check_vocabulary(weights.source, len(preprocessor.tokenizer), text.vocab_size)
        self._captions = self._called.tokenizer(preprocessor.tokenizer, text)
        self.preparer: Callable[[Picture], NDArray[np.float32]] = partial(
            prepare_pixels, preprocessor.image
        )
        with self._torch.no_grad():
            self.calibration = _calibration(self._called, self._model, scale, centre)
        self.identity = _identity(kind, weights, preprocessor, self.calibration)

    def prepare(self, picture: Picture) -> NDArray[np.float32]:
        """Returns the resized and normalised image, float32 of shape (3, height, width)."""
        return self.preparer(picture)

    def encode_images(self, prepared: Sequence[Any]) -> list[NDArray[np.float32]]:
        """Returns a unit vector for each image, float32 of shape (dimensions,)."""
        with self._torch.inference_mode():
            pixels = stack_pixels(prepared, self._weights.device, self._model.dtype)
            return list(self._unit(self._called.image(self._model, pixels)))

    def count_tokens(self, captions: Sequence[str]) -> list[int]:
        """Returns how many tokens the model reads of each caption."""
        return self._captions.count(captions)

    def encode_captions(self, captions: Sequence[str], length: int | None = None) -> Vectors:
        """Returns unit vectors, float32 of shape (captions, dimensions).

        Args:
          captions: the texts, in one batch.
          length: tokens that each is padded to; None pads to the longest.
        """
        with self._torch.inference_mode():
            tokens = self._captions.encode(captions, self._weights.device, length)
            return self._unit(self._called.text(self._model, tokens))

    def compare(self, images: Vectors, captions: Vectors) -> Matches:
        """Scores image i with caption i."""
        return compare_vectors(self.calibration, images, captions)

    def match(self, images: Sequence[Any], captions: Sequence[str], pairs: IndexPairs) -> Matches:
        """Scores pairs of encoded images and captions."""
        return match_vectors(self, images, captions, pairs)

    def _unit(self, features: Any) -> Vectors:
        unit = self._torch.nn.functional.normalize(features.float(), dim=-1)
        vectors: Vectors = unit.cpu().numpy()
        return vectors


def _calibration(
    called: Architecture, model: Any, scale: float | None, centre: float | None
) -> Sigmoid:
    scale = float(called.scale(model)) if scale is None else scale
    if not scale > 0:
        raise InputError(f"scale={scale}: expected more than 0")
    own_bias = getattr(model, "logit_bias", None)
    if centre is None and own_bias is not None:
        return Sigmoid(scale=scale, bias=own_bias.detach().float().item())
    return Sigmoid(scale=scale, bias=-scale * (CENTRE if centre is None else centre))


def _identity(kind: str, weights: Weights, made: Preprocessor, calibration: Sigmoid) -> Identity:
    return Identity(
        kind=kind,
        family=ARCHITECTURES[kind].family,
        model=weights.name,
        revision=weights.digest(),
        precision=weights.precision,
        preprocessing=made.digest,
        calibration=str(calibration),
    )
