"""Decode in batches in which no record depends on its neighbours.

A sampled record draws from its own generator, on the CPU. A matrix product of a different shape may
sum in a different order. So every batch has the full number of rows, prompts are padded to a length
that depends only on their own, and logits are rounded before a token is chosen. On one device and
library version, results do not depend on order, neighbours or batch size, except for logits within
rounding of each other.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_BUCKET_TOKENS = 32
_LOGIT_DECIMALS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A prompt to complete.

    Attributes:
      prompt_ids: the tokens of the prompt, at least one.
      seed: of the record's generator, in [0, 2**63); None always takes the likeliest token.
    """

    prompt_ids: tuple[int, ...]
    seed: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodingSettings:
    """How tokens are chosen, and when a completion ends.

    Attributes:
      temperature: divides the logits of sampled records; above 0.
      top_p: samples from the fewest likeliest tokens with at least this total probability, in (0,
        1].
      pad_id: the token that pads prompts; it is never attended to.
    """

    max_new_tokens: int
    batch_size: int
    temperature: float
    top_p: float
    end_ids: frozenset[int]
    pad_id: int


def complete(
    model: Any,
    requests: Sequence[Request],
    settings: DecodingSettings,
    is_done: Callable[[list[int]], bool],
) -> list[list[int]]:
    """Return the new tokens of each request, in order, without the token that ended it.

    Args:
      model: a causal language model of transformers, in evaluation mode.
      is_done: decides from a completion's tokens so far whether it ends there.
    """
    results: list[list[int]] = [[] for _ in requests]
    size = settings.batch_size
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, request in enumerate(requests):
        buckets = -(-len(request.prompt_ids) // _BUCKET_TOKENS)
        by_length[buckets * _BUCKET_TOKENS].append(index)
    batches = (
        (length, indices[start : start + size])
        for length, indices in sorted(by_length.items())
        for start in range(0, len(indices), size)
    )
    for length, indices in batches:
        rows = [requests[index] for index in indices]
        padded = [*rows, *[rows[0]] * (size - len(rows))]
        completions = _complete_batch(model, padded, length, settings, is_done)
        for index, tokens in zip(indices, completions, strict=False):
            results[index] = tokens
    return results


def _complete_batch(
    model: Any,
    rows: Sequence[Request],
    length: int,
    settings: DecodingSettings,
    is_done: Callable[[list[int]], bool],
) -> list[list[int]]:
    import torch

    pads = [length - len(row.prompt_ids) for row in rows]
    ids = [[settings.pad_id] * pad + list(r.prompt_ids) for r, pad in zip(rows, pads, strict=True)]
    tokens = torch.tensor(ids, device=model.device)
    mask = torch.tensor([[0] * pad + [1] * (length - pad) for pad in pads], device=model.device)
    generators = [
        None if row.seed is None else torch.Generator(device="cpu").manual_seed(row.seed)
        for row in rows
    ]
    completions: list[list[int]] = [[] for _ in rows]
    open_rows = set(range(len(rows)))
    cache = None
    with torch.inference_mode():
        for _ in range(settings.max_new_tokens):
            logits, cache = _step(model, tokens, mask, cache)
            chosen = [
                _choose(row, generator, settings)
                for row, generator in zip(logits, generators, strict=True)
            ]
            for index in sorted(open_rows):
                if chosen[index] in settings.end_ids:
                    open_rows.discard(index)
                    continue
                completions[index].append(chosen[index])
                if is_done(completions[index]):
                    open_rows.discard(index)
            if not open_rows:
                break
            tokens = torch.tensor([[token] for token in chosen], device=model.device)
            mask = torch.cat([mask, mask.new_ones((len(rows), 1))], dim=1)
    return completions


def _step(
    model: Any, tokens: "torch.Tensor", mask: "torch.Tensor", cache: Any
) -> tuple["torch.Tensor", Any]:
    """Run the model on new tokens; return logits [rows, vocabulary] in float64 and the cache."""
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
    output = model(
        input_ids=tokens,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
    )
    logits = output.logits[:, -1].double().cpu()
    return logits.round(decimals=_LOGIT_DECIMALS), output.past_key_values


def _choose(
    logits: "torch.Tensor", generator: "torch.Generator | None", settings: DecodingSettings
) -> int:
    """Choose a token from logits [vocabulary]; ties go to the lowest id."""
    import torch

    if generator is None:
        return int(torch.nonzero(logits == logits.max())[0])
    ordered = torch.sort(logits / settings.temperature, descending=True, stable=True)
    probabilities = torch.softmax(ordered.values, dim=0)
    cumulative = probabilities.cumsum(dim=0)
    kept = int((cumulative - probabilities < settings.top_p).sum())
    draw = torch.rand((), generator=generator, dtype=torch.float64) * cumulative[kept - 1]
    position = min(int(torch.searchsorted(cumulative[:kept], draw, right=True)), kept - 1)
    return int(ordered.indices[position])
