"""Plans what is replaced of the second image's attention in each call of the network.

A replaced cross-attention map is a sum of two linear maps of the attention of both images,
`first @ mapper + second * own`, mixed by word with the second's own map and scaled by word.

Source: `get_time_words_attention_alpha` and `AttentionControlEdit` of prompt-to-prompt. The table
  of steps has one row more than the steps, because the authors' first scheduler (PNDM) calls the
  network once more. Its bounds are `int(fraction * rows)`; those of self-attention
  `int(fraction * steps)`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.alignment import (
    Alignment,
    published_refinement,
    published_replacement,
    refinement,
    replacement,
    tokenize,
)
from eqforge.generators.diffusion.settings import DEFAULT_WORDS, EditControl, Span, WordName

if TYPE_CHECKING:
    import torch

_MIN_SIDE = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class CallPlan:
    """What is replaced and read in one call of the network; tensors have its dtype and device.

    Attributes:
      mapper, own: the second image's cross-attention is `first @ mapper + second * own`; [tokens,
        tokens] and [tokens, 1]. No mapper if it keeps its own map, no own if that is not used.
      words: [2, tokens, 2], factors of each image's attention; the sum of both products is how
        much the first and the second attend to their words of the local blend.
    """

    mapper: "torch.Tensor | None"
    own: "torch.Tensor | None"
    words: "torch.Tensor"


@dataclass(frozen=True, kw_only=True, slots=True)
class ControlPlan:
    """What is replaced and read in which call of the network.

    Attributes:
      calls: plans of cross-attention by call.
      self_calls: calls in which self-attention is replaced.
      self_pixels: self-attention maps of up to this many pixels are replaced.
      heat_pixels: cross-attention maps of this many pixels are read; None without local blend.
      changed: see `Alignment.changed`.
    """

    calls: tuple[CallPlan, ...]
    self_calls: range
    self_pixels: int
    heat_pixels: int | None
    changed: tuple[tuple[int, ...], tuple[int, ...]]


def plan_control(
    prompts: tuple[str, str],
    control: EditControl,
    tokenizer: Any,
    calls: int,
    steps: int,
    latents: "torch.Tensor",
    sides: Sequence[int] = (),
) -> ControlPlan:
    """Return what is replaced and read in which call of the network.

    Args:
      prompts: those of the first and the second image.
      control: how the first guides the second.
      tokenizer: tokenizer of the model.
      calls: how often the scheduler calls the network per image.
      steps: requested denoising steps.
      latents: any latents of the pair, [2, channels, side, side], for their dtype and device.
      sides: of the network's cross-attention maps at this size; the one nearest to 16, or to a
        quarter of a larger latent, is used. Without them exactly that side is.
    """
    alignment = align(prompts, control, tokenizer)
    # A scheduler of second order calls more than once a step; the authors' table ends there, ours
    # counts calls.
    length = max(steps, calls - 1)
    alpha = cross_schedule(
        control.cross_replace_steps, length, len(alignment.own), alignment.find[1]
    )
    wanted = max(_MIN_SIDE, latents.shape[-1] // 4)
    side = min(sides, key=lambda each: (abs(each - wanted), each), default=wanted)
    heat_side = side if control.heat_side is None else control.heat_side
    return ControlPlan(
        calls=_call_plans(alignment, control, alpha[:calls], latents),
        self_calls=span_bounds(control.self_replace_steps, length),
        self_pixels=(side if control.self_replace_side is None else control.self_replace_side) ** 2,
        heat_pixels=None if control.blend is None else heat_side**2,
        changed=alignment.changed,
    )


def align(prompts: tuple[str, str], control: EditControl, tokenizer: Any) -> Alignment:
    first, second = (tokenize(prompt, tokenizer) for prompt in prompts)
    match control.method, control.alignment:
        case "replace", "exact":
            return replacement(first, second)
        case "replace", _:
            return published_replacement(first, second, tokenizer)
        case _, "exact":
            return refinement(first, second, control.changed)
    return published_refinement(first, second, tokenizer)


def word_factors(reweight: Mapping[WordName, float], alignment: Alignment) -> np.ndarray:
    """Return float32 [tokens]: the factor of every token of the second prompt, by default 1.

    Source: `get_equalizer` of prompt-to-prompt.
    """
    factors = np.ones(len(alignment.own), dtype=np.float32)
    for word, factor in reweight.items():
        factors[list(alignment.find[1](word))] = factor
    return factors


def _call_plans(
    alignment: Alignment, control: EditControl, alpha: np.ndarray, latents: "torch.Tensor"
) -> tuple[CallPlan, ...]:
    """Return the plans of all calls; alpha is [calls, tokens]. Equal calls share one plan."""
    factors = word_factors(control.reweight, alignment)
    words = _read_words(control, alignment)
    plans = {
        row.tobytes(): _call_plan(alignment, factors, row, words, latents)
        for row in np.unique(alpha, axis=0)
    }
    return tuple(plans[row.tobytes()] for row in alpha)


def _call_plan(
    alignment: Alignment,
    factors: np.ndarray,
    alpha: np.ndarray,
    words: np.ndarray,
    latents: "torch.Tensor",
) -> CallPlan:
    """Mix the replaced attention and the second image's own by word.

    Args:
      alignment: alignment of the prompts.
      factors: factor of each token [tokens].
      alpha: share of the replaced attention of each token [tokens].
      words: see `_read_words`.
      latents: give dtype and device.
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


def _read_words(control: EditControl, alignment: Alignment) -> np.ndarray:
    """Return float32 [2, tokens, 1], 1 for the tokens of either prompt that the blend reads."""
    words = np.zeros((2, len(alignment.own), 1), dtype=np.float32)
    if control.blend is not None:
        for picture, names in enumerate(control.blend.words):
            for name in names:
                words[picture, list(alignment.find[picture](name))] = 1
    return words


def span_bounds(span: Span, length: int) -> range:
    """Return the steps of a span as a range in [0, length]."""
    start, end = span if isinstance(span, tuple) else (0.0, span)
    if not 0 <= start <= end <= 1:
        raise InputError(
            f"a span of steps is a fraction, or two in order, each in [0, 1]; found {span!r}"
        )
    return range(int(start * length), int(end * length))


def cross_schedule(
    spans: Span | Mapping[WordName, Span],
    steps: int,
    tokens: int,
    find: Callable[[WordName], Iterable[int]],
) -> np.ndarray:
    """Return float32 [steps + 1, tokens]: 1 where a token's cross-attention is replaced, else 0.

    Args:
      spans: for all words, or by word with `default_` for the rest; without it, the rest is
        replaced in all steps.
      steps: denoising steps.
      tokens: tokens of a padded prompt.
      find: returns the tokens of a word.
    """
    by_word: dict[WordName, Span] = (
        dict(spans) if isinstance(spans, Mapping) else {DEFAULT_WORDS: spans}
    )
    alpha = np.zeros((steps + 1, tokens), dtype=np.float32)
    default = span_bounds(by_word.pop(DEFAULT_WORDS, (0.0, 1.0)), steps + 1)
    alpha[default] = 1
    for word, span in by_word.items():
        columns = list(find(word))
        bounds = span_bounds(span, steps + 1)
        alpha[:, columns] = 0
        alpha[bounds.start : bounds.stop, columns] = 1
    return alpha


Row = Literal["plain first", "plain second", "first", "second"]
"""A row of the network's batch: either image; `plain` ones are without prompt."""


class AttentionControl:
    """The state that the layers of one pair share.

    Args:
      plan: what is replaced and read in which call.

    Attributes:
      number: number of the network's call, from 0.
      rows: the rows in the network's current batch.
      cross_layers, self_layers: names of the layers where attention was replaced.
    """

    def __init__(self, plan: ControlPlan) -> None:
        import torch

        self.plan = plan
        self.number = 0
        self.rows: tuple[Row, ...] = ()
        self.cross_layers: set[str] = set()
        self.self_layers: set[str] = set()
        device = plan.calls[0].words.device
        self._heat = torch.zeros((plan.heat_pixels or 0, 2), dtype=torch.float32, device=device)
        self._maps = 0

    @property
    def call(self) -> CallPlan:
        """What is replaced and read of cross-attention in this call."""
        return self.plan.calls[self.number]

    def replaces_self(self, pixels: int) -> bool:
        """Return whether self-attention maps of `pixels` pixels are replaced in this call."""
        return self.number in self.plan.self_calls and pixels <= self.plan.self_pixels

    def add_heat(self, heat: "torch.Tensor", maps: int) -> None:
        """Add a layer's attention to the words of the local blend.

        Args:
          heat: [pixels, 2], the attention of each image.
          maps: 1 if the second image is in it, so that every layer counts once, else 0.
        """
        self._heat += heat
        self._maps += maps

    def blend_heat(self) -> "torch.Tensor":
        """Return the attention to the words of the local blend so far, [2, pixels]."""
        if not self._maps:
            side = round((self.plan.heat_pixels or 0) ** 0.5)
            raise InputError(
                f"local blend reads {side}x{side} maps of the cross-attention, and the network has "
                "none at this picture's size: choose another side"
            )
        return self._heat.T
