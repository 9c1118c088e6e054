"""What counts how often a model is asked."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np


class Counting:
    """Passes everything on to a scorer and counts what it is asked, repetitions of a batch aside.

    Batches that are filled up repeat their last row: the same object, or the same text.
    """

    def __init__(self, scorer: Any, stop_after: int | None = None) -> None:
        self._scorer = scorer
        self._left = stop_after
        self.images = 0
        self.captions: Counter[str] = Counter()
        self.pairs: Counter[tuple[int, str]] = Counter()
        self.sizes: set[tuple[str, int]] = set()

    def __getattr__(self, name: str) -> Any:
        if name in ("encode_captions", "compare") and not hasattr(self._scorer, name):
            raise AttributeError(name)
        return getattr(self._scorer, name)

    def encode_images(self, prepared: Any) -> Any:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise KeyboardInterrupt
        rows = np.array([np.asarray(one) for one in prepared])
        self.images += len(np.unique(rows.reshape(len(rows), -1), axis=0))
        self.sizes.add(("images", len(rows)))
        return self._scorer.encode_images(prepared)


class CountingDual(Counting):
    """Counts captions of a dual encoder."""

    def encode_captions(self, captions: Sequence[str], **padded: Any) -> Any:
        self.captions.update(dict.fromkeys(captions, 1))
        self.sizes.add(("captions", len(captions)))
        return self._scorer.encode_captions(captions, **padded)


class CountingFusion(Counting):
    """Counts pairs of a fusion encoder."""

    def match(self, images: Any, captions: Sequence[str], pairs: Any, **padded: Any) -> Any:
        asked = {(id(images[image]), captions[place]) for image, place in pairs}
        self.pairs.update(dict.fromkeys(asked, 1))
        self.captions.update(caption for _, caption in asked)
        self.sizes.add(("pairs", len(pairs)))
        return self._scorer.match(images, captions, pairs, **padded)
