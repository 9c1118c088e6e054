"""Aligns the tokens of two prompts.

Positions count as in `prompt_tokens`; both prompts are padded to the same number of tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.prompt_tokens import TokenizedPrompt
from eqforge.generators.diffusion.records import WordName


@dataclass(frozen=True, kw_only=True, slots=True)
class Alignment:
    """How the attention of the first prompt's tokens becomes that of the second's.

    The second image's map is `first @ mapper + second * own`.

    Attributes:
      mapper: float32 [length, length], from tokens of the first prompt to those of the second.
      own: float32 [length], 1 for tokens of the second prompt that keep their own attention.
      changed: for either prompt, the positions of the tokens that the other does not have.
      find: for either prompt, tells the positions of a word's tokens.
    """

    mapper: np.ndarray
    own: np.ndarray
    changed: tuple[tuple[int, ...], tuple[int, ...]]
    find: tuple[Callable[[WordName], tuple[int, ...]], Callable[[WordName], tuple[int, ...]]]


def replacement(first: TokenizedPrompt, second: TokenizedPrompt) -> Alignment:
    """Aligns two prompts word by word.

    The tokens of a word map to those of the word that replaces it; if their numbers differ, each
    maps to all of them in equal parts. The end of the text maps to the end of the text, and all
    attention is preserved: every row of the mapper sums to 1.

    Raises:
      InputError: the prompts have different numbers of words.

    Source: `get_replacement_mapper_` of prompt-to-prompt, except after the last replaced
      word: it aligns that by position, so a word with more tokens shifts the rest.
    """
    if len(first.words) != len(second.words):
        raise InputError(
            "only prompts with as many words, punctuation counted, can exchange words: "
            f"{first.prompt!r} has {len(first.words)}, {second.prompt!r} {len(second.words)}"
        )
    pairs = list(zip(first.words, second.words, strict=True))
    mapper = np.zeros((first.length, second.length), dtype=np.float32)
    mapper[0, 0] = 1
    for one, other in pairs:
        map_word(mapper, one.tokens, other.tokens)
    for source in range(len(first.ids) - 1, first.length):
        target = source - len(first.ids) + len(second.ids)
        mapper[source, min(target, second.length - 1)] = 1
    exchanged = [(one.tokens, other.tokens) for one, other in pairs if one.text != other.text]
    return Alignment(
        mapper=mapper,
        own=np.zeros(second.length, dtype=np.float32),
        changed=(
            tuple(token for tokens, _ in exchanged for token in tokens),
            tuple(token for _, tokens in exchanged for token in tokens),
        ),
        find=(first.find, second.find),
    )


def map_word(mapper: np.ndarray, one: Sequence[int], other: Sequence[int]) -> None:
    """Maps the tokens of one word to those of another; modifies the mapper in place."""
    if len(one) == len(other):
        mapper[one, other] = 1
    else:
        mapper[np.ix_(one, other)] = 1 / len(other)


def refinement(
    first: TokenizedPrompt,
    second: TokenizedPrompt,
    changed: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
) -> Alignment:
    """Aligns the tokens that two prompts share; new tokens keep their own attention.

    If the changed words are known, the others are aligned in order; otherwise the tokens are
    compared, which can confuse two equal words.

    Padding is aligned by position, as in the authors' code; if the second prompt is shorter,
    from the end of the text on, since its padding would otherwise align with words of the first.

    Raises:
      InputError: the prompts differ in more than the changed words.

    Source: `get_mapper` of prompt-to-prompt.
    """
    if changed is None:
        sources = align_tokens(first.ids, second.ids)
    else:
        sources = _align_kept(first, second, changed)
    shift = max(len(first.ids) - len(second.ids), 0)
    sources += [target + shift for target in range(len(second.ids), second.length)]
    mapper = np.zeros((first.length, second.length), dtype=np.float32)
    own = np.ones(second.length, dtype=np.float32)
    for target, source in enumerate(sources):
        if source is not None and source < first.length:
            mapper[source, target], own[target] = 1, 0
    new = (
        tuple(token for token in range(len(first.ids)) if token not in sources),
        tuple(token for token in range(len(second.ids)) if sources[token] is None),
    )
    return Alignment(mapper=mapper, own=own, changed=new, find=(first.find, second.find))


def _align_kept(
    first: TokenizedPrompt,
    second: TokenizedPrompt,
    changed: tuple[tuple[int, ...], tuple[int, ...]],
) -> list[int | None]:
    """Returns for each token of the second prompt its equal in the first, or None."""
    kept, others = (
        [word for word in prompt.words if word.place not in places]
        for prompt, places in zip((first, second), changed, strict=True)
    )
    if [word.text for word in kept] != [word.text for word in others]:
        raise InputError(
            f"without their words number {changed[0]} and {changed[1]} the prompts "
            f"{first.prompt!r} and {second.prompt!r} are not equal"
        )
    sources: list[int | None] = [None] * len(second.ids)
    sources[0], sources[-1] = 0, len(first.ids) - 1
    for one, other in zip(kept, others, strict=True):
        for source, target in zip(one.tokens, other.tokens, strict=True):
            sources[target] = source
    return sources


def align_tokens(first: Sequence[int], second: Sequence[int]) -> list[int | None]:
    """Returns for each token of the second sequence its equal in the first, or None.

    Global alignment after Needleman and Wunsch, gap 0, match 1, mismatch -1: the longest common
    subsequence. Among equally good ones, the last tokens of the second sequence are the new ones.

    Source: `global_align` and `get_aligned_sequences` of prompt-to-prompt.
    """
    score = np.zeros((len(first) + 1, len(second) + 1), dtype=np.int64)
    for i, one in enumerate(first, start=1):
        for j, other in enumerate(second, start=1):
            match = score[i - 1, j - 1] + (1 if one == other else -1)
            score[i, j] = max(score[i, j - 1], score[i - 1, j], match)
    sources: list[int | None] = [None] * len(second)
    i, j = len(first), len(second)
    while i > 0 and j > 0:
        if score[i, j] == score[i, j - 1]:
            j -= 1
        elif score[i, j] == score[i - 1, j]:
            i -= 1
        else:
            i, j = i - 1, j - 1
            sources[j] = i
    return sources
