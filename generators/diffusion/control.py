"""Plan the replacement of the second image's attention in each call of the network.

A replaced cross-attention map is a sum of two linear maps of the attention of both images, `first @
mapper + second * own`, mixed by word with the second's own map and scaled by word.

Source: `get_time_words_attention_alpha` and `AttentionControlEdit` of prompt-to-prompt. The table
of steps has one row more than the steps, because the authors' first scheduler (PNDM) calls the
network once more. Its bounds are `int(fraction * rows)`, for self-attention `int(fraction *
steps)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from eqforge.generators.diffusion.alignment import (
    Alignment,
    published_refinement,
    published_replacement,
    refinement,
    replacement,
    tokenize,
)
from eqforge.generators.diffusion.prompts import PromptPair
from eqforge.generators.diffusion.settings import EditSettings

if TYPE_CHECKING:
    import torch

_MIN_SIDE = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class CallPlan:
    """The replacements and readings in one call of the network, in its dtype and on its device.

    Attributes:
      mapper, own: the second image's cross-attention is `first @ mapper + second * own`; [tokens,
        tokens] and [tokens, 1]. No mapper if it keeps its own map, no own if that is not used.
      words: [2, tokens, 2], factors of each image's attention; the sum of both products is how much
        the first and the second attend to their words of the local blend.
    """

    mapper: "torch.Tensor | None"
    own: "torch.Tensor | None"
    words: "torch.Tensor"


Row = Literal["plain first", "plain second", "first", "second"]
"""A row of the network's batch: either image; `plain` ones are without prompt."""


@dataclass(kw_only=True, slots=True)
class AttentionControl:
    """The replacements and readings per network call, shared by the layers of one pair.

    Attributes:
      calls: plans of cross-attention by call.
      self_calls: number of first calls in which self-attention is replaced.
      pixels: self-attention maps of up to this many pixels are replaced, cross-attention maps of
        this many are read.
      is_blended: whether there is a local blend, for which they are read.
      heat: float32 [2, pixels], the attention of either image to the words of the local blend,
        summed over all layers and calls so far.
      number: number of the network's call, from 0.
      rows: the rows in the network's current batch.
    """

    calls: tuple[CallPlan, ...]
    self_calls: int
    pixels: int
    is_blended: bool
    heat: "torch.Tensor"
    number: int = 0
    rows: tuple[Row, ...] = ()

    @property
    def call(self) -> CallPlan:
        return self.calls[self.number]


def plan_control(
    pair: PromptPair,
    edit: EditSettings,
    tokenizer: Any,
    calls: int,
    steps: int,
    latents: "torch.Tensor",
    sides: Sequence[int],
) -> AttentionControl:
    """Return the replacements and readings for each call of the network.

    Args:
      calls: how often the scheduler calls the network per image, over all `steps`.
      latents: any latents of the pair, [2, channels, side, side], for their dtype and device.
      sides: of the network's cross-attention maps at this size. The one nearest to 16, as in the
        authors' code, or to a quarter of a larger latent, is used.
    """
    import torch

    alignment = align(pair, edit, tokenizer)
    # A scheduler of second order calls more than once a step; the authors' table ends there, ours
    # counts calls.
    length = max(steps, calls - 1)
    changed = [token for word in pair.changed[1] for token in alignment.find[1](word)]
    factors = np.ones(len(alignment.own), dtype=np.float32)
    factors[changed] = edit.reweight  # Source: `get_equalizer` of prompt-to-prompt.
    is_blended = edit.local_blend and any(pair.blended)
    words = np.zeros((2, len(factors), 1), dtype=np.float32)
    if is_blended:
        for picture, numbers in enumerate(pair.blended):
            for number in numbers:
                words[picture, list(alignment.find[picture](number))] = 1
    alpha = cross_schedule(edit, length, len(factors), changed)[:calls]
    plans = {
        row.tobytes(): _call_plan(alignment, factors, row, words, latents)
        for row in np.unique(alpha, axis=0)
    }
    wanted = max(_MIN_SIDE, latents.shape[-1] // 4)
    pixels = min(sides, key=lambda side: (abs(side - wanted), side)) ** 2
    return AttentionControl(
        calls=tuple(plans[row.tobytes()] for row in alpha),
        self_calls=int(edit.self_replace * length),
        pixels=pixels,
        is_blended=is_blended,
        heat=latents.new_zeros((2, pixels), dtype=torch.float32),
    )


def align(pair: PromptPair, edit: EditSettings, tokenizer: Any) -> Alignment:
    first, second = (tokenize(prompt, tokenizer) for prompt in pair.prompts)
    match pair.control, edit.alignment:
        case "replace", "exact":
            return replacement(first, second)
        case "replace", _:
            return published_replacement(first, second, tokenizer)
        case _, "exact":
            return refinement(first, second, pair.changed)
    return published_refinement(first, second, tokenizer)


def _call_plan(
    alignment: Alignment,
    factors: np.ndarray,
    alpha: np.ndarray,
    words: np.ndarray,
    latents: "torch.Tensor",
) -> CallPlan:
    """Mix the replaced attention and the second image's own by word.

    Args:
      factors: of each token of the second prompt, [tokens].
      alpha: share of the replaced attention of each token, [tokens].
      words: [2, tokens, 1], 1 for the tokens of either prompt that the blend reads.
    """
    mapper = alignment.mapper * factors * alpha
    own = alignment.own * factors * alpha + (1 - alpha)
    first = np.concatenate([words[0], mapper @ words[1]], axis=1)
    second = np.concatenate([np.zeros_like(words[1]), own[:, None] * words[1]], axis=1)
    return CallPlan(
        mapper=latents.new_tensor(mapper) if alpha.any() else None,
        own=latents.new_tensor(own[:, None]) if own.any() else None,
        words=latents.new_tensor(np.stack([first, second])),
    )


def cross_schedule(
    edit: EditSettings, steps: int, tokens: int, changed: Sequence[int]
) -> np.ndarray:
    """Return float32 [steps + 1, tokens]: 1 where a token's cross-attention is replaced, else 0.

    `changed` are the positions of the tokens of words that change.
    """
    alpha = np.zeros((steps + 1, tokens), dtype=np.float32)
    alpha[: int(edit.cross_replace * (steps + 1))] = 1
    if edit.changed_cross_replace is not None:
        rows = np.arange(steps + 1) < int(edit.changed_cross_replace * (steps + 1))
        alpha[:, changed] = rows[:, None]
    return alpha
