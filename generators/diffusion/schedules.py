"""When attention is replaced: fractions of the denoising steps turned into calls of the network.

Source: `get_time_words_attention_alpha` and `AttentionControlEdit` of prompt-to-prompt. The table
  has one row more than the steps, because the authors' first scheduler (PNDM) calls the network
  once more. Its bounds are `int(fraction * rows)`; those of self-attention `int(fraction * steps)`.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.records import DEFAULT_WORDS, Span, WordName


def steps_of(calls: int, steps: int) -> int:
    """Returns the number of steps that fractions are taken of.

    Args:
      calls: how often the scheduler calls the network for one picture.
      steps: denoising steps asked for. A scheduler of second order calls more than once a step;
        the authors' table ends there, ours counts calls.
    """
    return max(steps, calls - 1)


def span_bounds(span: Span, length: int) -> range:
    """Returns the steps of a span as a range in [0, length].

    Raises:
      InputError: a fraction is outside [0, 1], or the span ends before it starts.
    """
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
    """Returns float32 [steps + 1, tokens]: 1 where a token's cross-attention is replaced, else 0.

    Args:
      spans: for all words, or by word with `default_` for the rest; without it, the rest is
        replaced in all steps.
      steps: denoising steps.
      tokens: tokens of a padded prompt.
      find: returns the tokens of a word.

    Raises:
      InputError: a span is invalid.
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
