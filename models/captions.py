"""Tokenizes captions for a model, padded to a length that does not depend on the batch.

A batch is padded to its longest caption, so the last bits of a caption's results depend on its
neighbours: sums over more padding round differently. A caller who wants scores that depend on image
and caption alone counts the tokens first, batches captions of similar length together and names the
length they are padded to.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CaptionTokenizer:
    """A tokenizer and the form in which a model takes captions.

    Attributes:
      tokenizer: a transformers tokenizer.
      max_tokens: longer captions are truncated to this many, special tokens included.
      inputs: the names of the model's inputs.
      fill: whether every caption is padded to `max_tokens`, as the model was trained.
    """

    tokenizer: Any
    max_tokens: int
    inputs: tuple[str, ...] = ("input_ids", "attention_mask")
    fill: bool = False

    def count(self, captions: Sequence[str]) -> list[int]:
        """Returns how many tokens the model reads of each caption, padding not counted."""
        if self.fill:
            return [self.max_tokens] * len(captions)
        tokens = self.tokenizer(list(captions), truncation=True, max_length=self.max_tokens)
        return [len(ids) for ids in tokens["input_ids"]]

    def encode(
        self, captions: Sequence[str], device: str = "cpu", length: int | None = None
    ) -> Any:
        """Returns the model's inputs by name, tensors of shape (captions, tokens) on a device.

        Args:
          captions: the texts of a batch.
          device: as torch names it.
          length: tokens that each caption is padded or truncated to; None pads to the longest.
        """
        if self.fill:
            length = None
        tokens = self.tokenizer(
            list(captions),
            padding="longest" if length is None and not self.fill else "max_length",
            truncation=True,
            max_length=self.max_tokens if length is None else min(length, self.max_tokens),
            return_tensors="pt",
        ).to(device)
        return {name: tokens[name] for name in self.inputs}
