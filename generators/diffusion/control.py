"""Plans what is replaced of the second image's attention in each call of the network.

A replaced cross-attention map is a sum of two linear maps of the attention of both images,
`first @ mapper + second * own`, mixed by word with the second's own map and scaled by word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eqforge.generators.diffusion.alignment import (
    Alignment,
    refinement,
    replacement,
)
from eqforge.generators.diffusion.prompt_tokens import tokenize
from eqforge.generators.diffusion.published_alignment import (
    published_refinement,
    published_replacement,
)
from eqforge.generators.diffusion.records import EditControl, WordName
from eqforge.generators.diffusion.schedules import cross_schedule, span_bounds, steps_of

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
    """Returns what is replaced and read in which call of the network.

    Args:
      prompts: those of the first and the second image.
      control: how the first guides the second.
      tokenizer: tokenizer of the model.
      calls: how often the scheduler calls the network per image.
      steps: requested denoising steps.
      latents: any latents of the pair, [2, channels, side, side], for their dtype and device.
      sides: of the network's cross-attention maps at this size; the one nearest to 16, or to a
        quarter of a larger latent, is used. Without them exactly that side is.

    Raises:
      InputError: prompts, words or spans do not fit; see `alignment` and `schedules`.
    """
    alignment = align(prompts, control, tokenizer)
    length = steps_of(calls, steps)
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
    """Aligns two prompts as the control says.

    Raises:
      InputError: they do not fit together; see `alignment`.
    """
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
    """Returns float32 [tokens]: the factor of every token of the second prompt, by default 1.

    Source: `get_equalizer` of prompt-to-prompt.
    """
    factors = np.ones(len(alignment.own), dtype=np.float32)
    for word, factor in reweight.items():
        factors[list(alignment.find[1](word))] = factor
    return factors


def _call_plans(
    alignment: Alignment, control: EditControl, alpha: np.ndarray, latents: "torch.Tensor"
) -> tuple[CallPlan, ...]:
    """Returns the plans of all calls; alpha is [calls, tokens]. Equal calls share one plan."""
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
    """Mixes the replaced attention and the second image's own by word.

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
    """Returns float32 [2, tokens, 1], 1 for the tokens of either prompt that the blend reads."""
    words = np.zeros((2, len(alignment.own), 1), dtype=np.float32)
    if control.blend is not None:
        for picture, names in enumerate(control.blend.words):
            for name in names:
                words[picture, list(alignment.find[picture](name))] = 1
    return words
