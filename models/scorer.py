"""The interface of models that match images with captions.

A scorer has three steps, so that a caller decides where and how often each runs:

1. `prepare` turns one decoded image into the model's input; an image that cannot be prepared
   affects no other. It needs no accelerator and its result can be pickled.
2. `encode_images` computes what depends on an image alone, once for any number of captions.
3. `match` scores (image, caption) pairs on those encodings.

A `DualEncoder` also encodes captions alone, so that comparing everything with everything runs
each encoder once per distinct image and caption.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

import numpy as np

from eqforge.schemas.records.scores import Identity as Identity

if TYPE_CHECKING:
    from numpy.typing import NDArray

IndexPairs: TypeAlias = "NDArray[np.int64]"
"""Pairs to score, int64 of shape (pairs, 2): the index of an image, the index of a caption."""

Vectors: TypeAlias = "NDArray[np.float32]"
"""Embeddings of unit length, float32 of shape (items, dimensions)."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Picture:
    """One image to be scored; precomputed features or scores are looked up by its key.

    `pixels` are uint8 of shape (height, width, 3), RGB.
    """

    key: str
    pixels: NDArray[np.uint8] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Matches:
    """Scores of image-caption pairs.

    Attributes:
      logits: float32 of shape (pairs,), log-odds of a match; without log-odds, any number that is
        higher for a better match.
      probabilities: float64 of shape (pairs,), P(match) in [0, 1].
      cosines: float32 of shape (pairs,), in [-1, 1]; None if the model has none.
    """

    logits: NDArray[np.float32]
    probabilities: NDArray[np.float64]
    cosines: NDArray[np.float32] | None = None


class Identified(Protocol):
    """A loaded model."""

    @property
    def identity(self) -> Identity: ...


class Scorer(Identified, Protocol):
    """Scores how well captions match images."""

    @property
    def reads_pixels(self) -> bool:
        """Whether `prepare` reads the pixels rather than only the key."""

    def prepare(self, picture: Picture) -> Any:
        """Return the model's input for one image.

        Raises:
          ValueError: the image cannot be used, or its key is unknown.
        """

    def encode_images(self, prepared: Sequence[Any]) -> Sequence[Any]:
        """Return what the model computes from each image alone, in order."""

    def match(self, images: Sequence[Any], captions: Sequence[str], pairs: IndexPairs) -> Matches:
        """Score pairs of encoded images and captions, in one batch."""


class DualEncoder(Scorer, Protocol):
    """A scorer that encodes images and captions separately as unit vectors and compares them.

    `encode_images` returns a vector for each image, float32 of shape (dimensions,).
    """

    def encode_captions(self, captions: Sequence[str]) -> Vectors:
        """Return the captions' vectors, in one batch."""

    def compare(self, images: Vectors, captions: Vectors) -> Matches:
        """Score image i with caption i, for two arrays of equal shape."""


class CountsTokens(Protocol):
    """A scorer that pads captions to a length chosen by the caller.

    Its `encode_captions` or `match` takes a last argument `length`, the padded number of tokens per
    caption. A score then does not depend on the other captions in its batch.
    """

    def count_tokens(self, captions: Sequence[str]) -> Sequence[int]:
        """Return the number of tokens of each caption, without padding."""


class SendsPreparer(Protocol):
    """A scorer whose image preparation can be sent to other processes, without the model."""

    @property
    def preparer(self) -> Callable[[Picture], Any]:
        """Do the same as `prepare`; small and picklable."""


# isinstance() would look past what a scorer hands on by `__getattr__`, since Python 3.12.


def is_dual_encoder(scorer: Scorer) -> TypeGuard[DualEncoder]:
    return hasattr(scorer, "encode_captions") and hasattr(scorer, "compare")


def gives_log_odds(scorer: Scorer) -> bool:
    """Return True if a scorer's logits are log-odds: 0 separates true from false."""
    return bool(getattr(scorer, "gives_log_odds", False))


def counts_tokens(scorer: Scorer | CountsTokens) -> TypeGuard[CountsTokens]:
    return hasattr(scorer, "count_tokens")


def sends_preparer(scorer: Scorer | SendsPreparer) -> TypeGuard[SendsPreparer]:
    return hasattr(scorer, "preparer")


def sigmoid(logits: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Return 1 / (1 + exp(-x)) in float64, without overflow."""
    exact = logits.astype(np.float64)
    small = np.exp(-np.abs(exact))
    return np.where(exact >= 0, 1 / (1 + small), small / (1 + small))
