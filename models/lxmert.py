"""LXMERT with its matching head, on captions encoded with cross-attention to detected regions."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.identity import fingerprint
from eqforge.models.dual_encoders import CaptionTokenizer
from eqforge.models.fusion import match_classes, run_head
from eqforge.models.pretrained import (
    Weights,
    check_vocabulary,
    import_torch,
    load_auto,
    load_model,
    tokenizer_digest,
)
from eqforge.models.regions import RegionFiles
from eqforge.models.scorer import Identity, IndexPairs, Matches, Picture

if TYPE_CHECKING:
    from numpy.typing import NDArray

REGIONS = 36
"""How many regions of an image LXMERT was trained on."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LxmertImage:
    """The regions of an image, padded with zeros.

    Attributes:
      features: float32 of shape (regions, dimensions).
      boxes: float32 of shape (regions, 4): x1, y1, x2, y2 as shares of width and height.
      attended: float32 of shape (regions,), 1 where there is a region.
    """

    features: NDArray[np.float32]
    boxes: NDArray[np.float32]
    attended: NDArray[np.float32]


class LxmertScorer:
    """LXMERT's cross-modality matching, a fusion encoder (Tan and Bansal 2019, section 3.1).

    The image itself is not read: its key must be in the file of region features. P(match) is the
    softmax over the head's two classes; as log-odds, their difference.

    Args:
      weights: a checkpoint of LxmertForPreTraining.
      features: TSV file as OSCAR reads it; each region's features are followed by its box as shares
        of width and height, x1, y1, x2, y2, and optionally by width and height, which are ignored.
      regions: how many regions are read at most, from the first.
    """

    reads_pixels = False
    gives_log_odds = True

    def __init__(self, weights: Weights, features: Path, regions: int = REGIONS) -> None:
        if regions < 1:
            raise InputError(f"regions={regions}: expected at least 1")
        self._torch = import_torch()
        self._weights, self._features, self._count = weights, features, regions
        self._files = RegionFiles(features, None)
        self._tokenizer = load_auto("AutoTokenizer", weights)
        self._model = load_model(weights, "LxmertForPreTraining")
        config = self._model.config
        check_vocabulary(weights.source, len(self._tokenizer), config.vocab_size)
        self._captions = CaptionTokenizer(
            tokenizer=self._tokenizer, max_tokens=int(config.max_position_embeddings)
        )

    @functools.cached_property
    def identity(self) -> Identity:
        """Which model and which features; computed on first use, since it hashes all of them."""
        detected = storage.digest(str(self._features))[1]
        return self._weights.identity(
            "lxmert",
            "lxmert",
            fingerprint([detected, tokenizer_digest(self._tokenizer), self._count]),
            "softmax of the matching head",
        )

    def prepare(self, picture: Picture) -> LxmertImage:
        """Return the regions listed under the picture's key.

        Raises:
          ValueError: there are none, or this model reads features of another length.
        """
        found = self._files[picture.key].features[: self._count]
        config = self._model.config
        wide = int(config.visual_feat_dim)
        if found.shape[1] not in (wide + 4, wide + 6):
            raise ValueError(
                f"{picture.key}: {found.shape[1]} numbers a region; this model reads {wide} "
                "features and a box of 4, or of 6 with width and height"
            )
        padded = np.zeros((self._count, wide + 4), np.float32)
        padded[: len(found)] = found[:, : wide + 4]
        attended = (np.arange(self._count) < len(found)).astype(np.float32)
        return LxmertImage(features=padded[:, :wide], boxes=padded[:, wide:], attended=attended)

    def encode_images(self, prepared: Sequence[LxmertImage]) -> Sequence[LxmertImage]:
        """Return the regions as they are: the model reads image and caption together."""
        return list(prepared)

    def count_tokens(self, captions: Sequence[str]) -> list[int]:
        return self._captions.count(captions)

    def match(
        self,
        images: Sequence[Any],
        captions: Sequence[str],
        pairs: IndexPairs,
        length: int | None = None,
    ) -> Matches:
        """Score pairs in one batch; for `length`, see ContrastiveScorer.encode_captions."""
        torch, device, dtype = self._torch, self._weights.device, self._model.dtype
        chosen = [images[index] for index in pairs[:, 0]]
        with torch.inference_mode():
            features, boxes, attended = (
                torch.from_numpy(np.stack([getattr(image, name) for image in chosen])).to(
                    device, dtype
                )
                for name in ("features", "boxes", "attended")
            )
            read = [captions[index] for index in pairs[:, 1]]
            fused = self._model.lxmert(
                visual_feats=features,
                visual_pos=boxes,
                visual_attention_mask=attended,
                **self._captions.encode(read, device, length),
            )
            # The head that predicts masked words is skipped.
            head = self._model.cls.seq_relationship
            return match_classes(run_head(head, fused.pooled_output))
