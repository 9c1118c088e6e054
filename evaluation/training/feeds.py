"""The tensors that networks take for each batch: pixels and tokens, or frozen vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from eqforge.evaluation.training.batches import Batch, Plan
from eqforge.evaluation.training.examples import Match
from eqforge.evaluation.training.pictures import Pictures, prepare
from eqforge.models.captions import CaptionTokenizer


@dataclass(frozen=True, kw_only=True, slots=True)
class Texts:
    """Which texts of each match are encoded: always its caption, hard texts if needed."""

    negatives: bool
    positives: bool

    def of(self, matches: Sequence[Match]) -> list[str]:
        """Returns all captions, then all hard negatives, then all hard positives.

        A caption replaces its missing hard texts, so that all batches have the same shape.
        """
        texts = [match.caption for match in matches]
        if self.negatives:
            texts += [match.hard_negative or match.caption for match in matches]
        if self.positives:
            texts += [match.hard_positive or match.caption for match in matches]
        return texts


class Feed(Protocol):
    """Makes a network's inputs from some matches."""

    def __call__(self, matches: Sequence[Match]) -> dict[str, Any]:
        """Returns the arguments of the network's `forward`, on the CPU."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PixelFeed:
    """Decodes images and tokenizes texts."""

    pictures: Pictures
    processor: Any
    tokenizer: CaptionTokenizer
    texts: Texts

    def __call__(self, matches: Sequence[Match]) -> dict[str, Any]:
        """Returns `pixels` and `tokens`."""
        import torch

        pixels = prepare(self.processor, self.pictures, [match.image_id for match in matches])
        return {
            "pixels": torch.from_numpy(pixels),
            "tokens": self.tokenizer.encode(self.texts.of(matches)),
        }


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class VectorFeed:
    """Looks up frozen vectors.

    Attributes:
      images, captions: float32 tensors of shape (items, dimensions).
      image_rows, caption_rows: their rows by image id and by text.
      texts: which texts to encode.
    """

    images: Any
    captions: Any
    image_rows: Mapping[str, int]
    caption_rows: Mapping[str, int]
    texts: Texts

    def __call__(self, matches: Sequence[Match]) -> dict[str, Any]:
        """Returns `images` and `texts`."""
        texts = [self.caption_rows[text] for text in self.texts.of(matches)]
        return {
            "images": self.images[[self.image_rows[match.image_id] for match in matches]],
            "texts": self.captions[texts],
        }


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Steps:
    """The batches of a run as torch's DataLoader asks for them, by step.

    Attributes:
      plan: plan of the run.
      feed: makes the inputs.
      rank, processes: index of this process, which makes the inputs of its share of each batch, and
        their number.
    """

    plan: Plan
    feed: Feed
    rank: int
    processes: int

    def __getitem__(self, step: int) -> tuple[Batch, dict[str, Any]]:
        """Returns the whole batch, and the inputs of this process's share."""
        batch = self.plan.batch(step)
        share = np.array_split(np.arange(len(batch.matches)), self.processes)[self.rank]
        return batch, self.feed([batch.matches[place] for place in share])

    def __len__(self) -> int:
        """Returns the number of steps."""
        return self.plan.steps
