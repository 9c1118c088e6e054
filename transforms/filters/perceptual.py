"""Measures the perceptual distance of two images by an image encoder; off by default.

It is 1 minus the cosine between the encodings: 0 for equal images. Pixel measures show how much of
an image changed; this shows how different it looks to a network.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files import pictures
from eqforge.core.identity import TraceOf, versions_of
from eqforge.core.ranges import check_range
from eqforge.models.scorer import Identity, Picture
from eqforge.schemas.records.scores import Rejection, Score, compact_json, value_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.models.spec import ImageEncoder, ScorerSpec

DISTANCE = "perceptual_distance"
VERSION = "1"
REASONS = {
    "looks_too_different": "The perceptual distance between the images exceeds --max-perceptual.",
}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PerceptualSettings:
    """Model that measures the perceptual distance between two images, and the maximum distance."""

    perceptual: Annotated[str | None, TraceOf(encoders_named)] = None
    """Model that measures the perceptual distance between the images. Pass `dinov2:MODEL`, or a
    dual encoder in a form that --oracle accepts. The distance is 1 minus the cosine similarity of
    the model's encodings."""

    max_perceptual: float | None = None
    """Maximum perceptual distance, in [0, 2]."""

    def __post_init__(self) -> None:
        check_range("max_perceptual", self.max_perceptual, 0, 2)
        if self.perceptual is not None:
            _spec_of(self.perceptual)
        elif self.max_perceptual is not None:
            raise InputError(
                f"--max-perceptual {self.max_perceptual}: also pass a model, such as "
                "--perceptual dinov2:FOLDER"
            )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Perceptual:
    """The encoder and its limit; sent to workers, which load the model."""

    settings: PerceptualSettings = dataclasses.field(default_factory=PerceptualSettings)
    encoder: Identity | None = None

    @property
    def uses_gpu(self) -> bool:
        name = self.settings.perceptual
        return name is not None and _spec_of(name).device != "cpu"

    def basis(self) -> list[object]:
        """Return everything a distance depends on besides the images and the limit."""
        assert self.encoder is not None
        packages = ("torch", "transformers", "pillow")
        return [
            VERSION,
            pictures.VERSION,
            dataclasses.asdict(self.encoder),
            versions_of(*packages),
        ]

    def score(self, pixels: Sequence[NDArray[np.uint8]]) -> Score:
        """Return 1 minus the cosine of two images' encodings, in [0, 2], to 6 decimals.

        Args:
          pixels: two RGB images, uint8 [height, width, 3].
        """
        assert self.settings.perceptual is not None
        assert self.encoder is not None
        first, second = _encode(_spec_of(self.settings.perceptual), pixels)
        distance = 1 - float(first.astype(np.float64) @ second.astype(np.float64))
        if not np.isfinite(distance):
            raise ValueError(f"{self.encoder.name} returned an encoding that is not finite")
        identity = dataclasses.asdict(self.encoder) | {"perceptual": VERSION}
        return Score(
            name=DISTANCE,
            value=round(max(distance, 0.0), 6),
            scorer=identity.pop("kind"),
            version=identity.pop("revision"),
            settings=compact_json(identity),
        )


_one_at_a_time = threading.Lock()


def _encode(spec: ScorerSpec, pixels: Sequence[NDArray[np.uint8]]) -> list[NDArray[np.float32]]:
    """Encode each image separately, so that its vector does not depend on the other."""
    from eqforge.models.pretrained import torch_threads

    with _one_at_a_time:
        encoder = _loaded(spec)
        prepared = [encoder.prepare(Picture(key="image", pixels=each)) for each in pixels]
        with torch_threads(1):
            return [encoder.encode_images([each])[0] for each in prepared]


@functools.cache
def _loaded(spec: ScorerSpec) -> ImageEncoder:
    from eqforge.models.spec import load_encoder

    return load_encoder(spec)


def prepare_perceptual(settings: PerceptualSettings) -> Perceptual:
    name = settings.perceptual
    encoder = None if name is None else encoders_named(name)[0]
    return Perceptual(settings=settings, encoder=encoder)


@functools.cache
def encoders_named(text: str) -> tuple[Identity, ...]:
    from eqforge.models.spec import identify, load_encoder

    spec = _spec_of(text)
    return (identify(spec, load_encoder),)


def refuse_perceptual(scores: Sequence[Score], settings: PerceptualSettings) -> Rejection | None:
    """Reject a pair whose images look too different."""
    if settings.max_perceptual is None:
        return None
    value = value_of(scores, DISTANCE)
    assert value is not None
    if value <= settings.max_perceptual:
        return None
    return Rejection(
        reason="looks_too_different",
        value=value,
        threshold=settings.max_perceptual,
        detail=DISTANCE,
    )


def _spec_of(text: str) -> ScorerSpec:
    from eqforge.models.spec import ENCODERS, parse_spec

    return parse_spec(text, ENCODERS)
