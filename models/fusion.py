"""What fusion encoders that read pixels have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from eqforge.core.late import numpy as np
from eqforge.models.captions import CaptionTokenizer
from eqforge.models.pretrained import (
    Preprocessor,
    Weights,
    check_vocabulary,
    import_torch,
    load_model,
    load_preprocessor,
    prepare_pixels,
)
from eqforge.models.scorer import Identity, Picture

if TYPE_CHECKING:
    from numpy.typing import NDArray


class PixelFusion:
    """A fusion encoder from transformers with its tokenizer and image processor.

    Args:
      weights: the checkpoint.
      architecture: its class in transformers.
      kind, family: for the identity.
      calibration: how a logit becomes P(match).
      reader: the part of the configuration with the sizes of vocabulary and context; empty for the
        whole.
      vocabulary: how many of the tokenizer's tokens the model has to know.

    Raises:
      InputError: the model cannot be loaded, or is of another architecture.
      MissingExtra: torch or transformers is not installed.
    """

    reads_pixels = True
    gives_log_odds = True

    def __init__(
        self,
        weights: Weights,
        architecture: str,
        *,
        kind: str,
        family: str,
        calibration: str,
        reader: str = "",
        vocabulary: Callable[[Preprocessor], int] = lambda found: len(found.tokenizer),
    ) -> None:
        self._torch = import_torch()
        self._weights = weights
        self._preprocessor = load_preprocessor(weights)
        self._model = load_model(weights, architecture)
        read = getattr(self._model.config, reader) if reader else self._model.config
        check_vocabulary(weights.source, vocabulary(self._preprocessor), read.vocab_size)
        self._captions = CaptionTokenizer(
            tokenizer=self._preprocessor.tokenizer, max_tokens=int(read.max_position_embeddings)
        )
        self.preparer: Callable[[Picture], NDArray[np.float32]] = partial(
            prepare_pixels, self._preprocessor.image
        )
        self.identity = Identity(
            kind=kind,
            family=family,
            model=weights.name,
            revision=weights.digest(),
            precision=weights.precision,
            preprocessing=self._preprocessor.digest,
            calibration=calibration,
        )

    def prepare(self, picture: Picture) -> NDArray[np.float32]:
        """Returns the resized and normalised image, float32 of shape (3, height, width)."""
        return self.preparer(picture)

    def count_tokens(self, captions: Sequence[str]) -> list[int]:
        """Returns how many tokens the model reads of each caption."""
        return self._captions.count(captions)
