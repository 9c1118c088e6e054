"""Align the words and tokens of two prompts.

Positions count from the token before the text (0) to the last padding; both prompts are padded to
the same number of tokens. A punctuation mark is a word of its own, so "cat," contains "cat".

`published_replacement` and `published_refinement` align as the authors' code does, with its
defects, for the published dataset:

* Words are split at blanks: "cat" is not found in "cat,", and missing words are silently ignored.
* Tokens are assigned to words by counting letters, so a letter of several tokens shifts the rest.
* After the last exchanged word, positions map to the same positions, so a word of more or fewer
  tokens shifts the rest. If the prompts differ before it, the end of the text is cut.
* If the second prompt is shorter, its padding meets words of the first.

Source: `get_word_inds` in ptp_utils.py, `get_replacement_mapper_` and `get_mapper` in
seq_aligner.py of prompt-to-prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from eqforge.core.errors import InputError

_WORD = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")  # noqa: RUF001 - the typographic apostrophe


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """A word of a prompt, in lower case.

    `place` is the index of its piece in `str.split`; `tokens` are the positions of its tokens, at
    least one, in a row.
    """

    text: str
    place: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizedPrompt:
    """A prompt as the text encoder reads it; `ids` have start and end, `length` also padding."""

    prompt: str
    ids: tuple[int, ...]
    words: tuple[Word, ...]
    length: int

    def find(self, place: int) -> tuple[int, ...]:
        """Return the positions of a word's tokens, without the punctuation that it touches."""
        pieces = [word for word in self.words if word.place == place]
        words = [word for word in pieces if word.text[0].isalnum()] or pieces
        return tuple(token for word in words for token in word.tokens)


def tokenize(prompt: str, tokenizer: Any) -> TokenizedPrompt:
    encoded = tokenizer(prompt, return_offsets_mapping=True, truncation=False)
    ids, length = tuple(encoded["input_ids"]), int(tokenizer.model_max_length)
    if len(ids) > length:
        raise InputError(
            f"the prompt {prompt!r} has {len(ids)} tokens, but the text encoder reads at most "
            f"{length}; shorten the prompt"
        )
    inner = list(enumerate(encoded["offset_mapping"]))[1:-1]
    words = tuple(
        Word(
            text=match.group().lower(),
            place=len(prompt[: match.end()].split()) - 1,
            tokens=tuple(at for at, (a, b) in inner if a < match.end() and b > match.start()),
        )
        for match in _WORD.finditer(prompt)
    )
    if not words or [at for word in words for at in word.tokens] != [at for at, _ in inner]:
        raise InputError(
            f"the tokenizer cannot split the prompt {prompt!r} into words; rephrase it"
        )
    return TokenizedPrompt(prompt=prompt, ids=ids, words=words, length=length)


_Find = Callable[[int], tuple[int, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Alignment:
    """A map from the attention of the first prompt's tokens to the second's.

    The second image's map is `first @ mapper + second * own`.

    Attributes:
      mapper: float32 [length, length], from tokens of the first prompt to tokens of the second.
      own: float32 [length], 1 for tokens of the second prompt that keep their own attention.
      find: for either prompt, the positions of a word's tokens by the word's number.
    """

    mapper: np.ndarray
    own: np.ndarray
    find: tuple[_Find, _Find]


def replacement(first: TokenizedPrompt, second: TokenizedPrompt) -> Alignment:
    """Align two prompts word by word.

    The tokens of a word map to the tokens of its replacement; if their numbers differ, each maps to
    all of them in equal parts. The end of the text maps to the end of the text, and all attention
    is preserved: every row of the mapper sums to 1.

    Source: `get_replacement_mapper_` of prompt-to-prompt, except after the last replaced word: it
    aligns that by position, so a word with more tokens shifts the rest.
    """
    if len(first.words) != len(second.words):
        raise InputError(
            f"the prompt {first.prompt!r} has {len(first.words)} words and punctuation marks, but "
            f"{second.prompt!r} has {len(second.words)}. The two numbers must be equal."
        )
    mapper = np.zeros((first.length, second.length), dtype=np.float32)
    mapper[0, 0] = 1
    for one, other in zip(first.words, second.words, strict=True):
        map_word(mapper, one.tokens, other.tokens)
    for source in range(len(first.ids) - 1, first.length):
        target = source - len(first.ids) + len(second.ids)
        mapper[source, min(target, second.length - 1)] = 1
    return Alignment(
        mapper=mapper, own=np.zeros(second.length, dtype=np.float32), find=(first.find, second.find)
    )


def map_word(mapper: np.ndarray, one: Sequence[int], other: Sequence[int]) -> None:
    """Map the tokens of one word to the other's; modify the mapper in place."""
    if len(one) == len(other):
        mapper[one, other] = 1
    else:
        mapper[np.ix_(one, other)] = 1 / len(other)


def refinement(
    first: TokenizedPrompt,
    second: TokenizedPrompt,
    changed: tuple[tuple[int, ...], tuple[int, ...]],
) -> Alignment:
    """Align the words that two prompts share, in order; new tokens keep their own attention.

    Padding is aligned by position, as in the authors' code. If the second prompt is shorter, this
    starts at its end, since its padding would otherwise align with words of the first. `changed`
    are the indices of the words of either prompt that the other one lacks.

    Source: `get_mapper` of prompt-to-prompt, which compares the tokens, and so can confuse two
    equal words.
    """
    kept, others = (
        [word for word in prompt.words if word.place not in places]
        for prompt, places in zip((first, second), changed, strict=True)
    )
    if [word.text for word in kept] != [word.text for word in others]:
        here, there = (", ".join(map(str, places)) or "none" for places in changed)
        raise InputError(
            f"the prompts {first.prompt!r} and {second.prompt!r} may differ only at these word "
            f"positions, counted from 0: {here} in the first; {there} in the second"
        )
    mapper = np.zeros((first.length, second.length), dtype=np.float32)
    own = np.ones(second.length, dtype=np.float32)
    shared = [(0, 0)]
    for one, other in zip(kept, others, strict=True):
        shared += zip(one.tokens, other.tokens, strict=True)
    ends = len(first.ids) - 1, len(second.ids) - 1
    shift = max(ends[0] - ends[1], 0)
    shared += [ends, *((target + shift, target) for target in range(ends[1] + 1, second.length))]
    for source, target in shared:
        if source < first.length:
            mapper[source, target], own[target] = 1, 0
    return Alignment(mapper=mapper, own=own, find=(first.find, second.find))


def align_tokens(first: Sequence[int], second: Sequence[int]) -> list[int | None]:
    """Return for each token of the second sequence its equal in the first, or None.

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


def published_tokens(prompt: TokenizedPrompt, tokenizer: Any, place: int) -> tuple[int, ...]:
    pieces = prompt.prompt.split(" ")
    found: list[int] = []
    piece, letters = 0, 0
    for position, token in enumerate(prompt.ids[1:-1], start=1):
        letters += len(tokenizer.decode([token]).strip("#"))
        if piece == place:
            found.append(position)
        if piece < len(pieces) and letters >= len(pieces[piece]):
            piece, letters = piece + 1, 0
    return tuple(found)


def published_replacement(
    first: TokenizedPrompt, second: TokenizedPrompt, tokenizer: Any
) -> Alignment:
    pieces = [prompt.prompt.split(" ") for prompt in (first, second)]
    if len(pieces[0]) != len(pieces[1]):
        raise InputError(
            f"the prompt {first.prompt!r} has {len(pieces[0])} words, but {second.prompt!r} has "
            f"{len(pieces[1])}; to replace words, pass two prompts with the same number of words"
        )
    find = _published_find(first, second, tokenizer)
    differing = [i for i, (a, b) in enumerate(zip(*pieces, strict=True)) if a != b]
    left = [(find[0](place), find[1](place)) for place in differing]
    length = first.length
    mapper = np.zeros((length, length), dtype=np.float32)
    i = j = 0
    while i < length and j < length:
        if left and left[0][0][0] == i:
            one, other = left.pop(0)
            map_word(mapper, one, other)
            i, j = i + len(one), j + len(other)
        else:
            mapper[i if left else j, j] = 1
            i, j = i + 1, j + 1
    return Alignment(mapper=mapper, own=np.zeros(length, dtype=np.float32), find=find)


def published_refinement(
    first: TokenizedPrompt, second: TokenizedPrompt, tokenizer: Any
) -> Alignment:
    sources = [*align_tokens(first.ids, second.ids), *range(len(second.ids), second.length)]
    mapper = np.zeros((first.length, second.length), dtype=np.float32)
    own = np.zeros(second.length, dtype=np.float32)
    for target, source in enumerate(sources):
        if source is None:
            own[target] = 1
        else:
            mapper[source, target] = 1
    return Alignment(mapper=mapper, own=own, find=_published_find(first, second, tokenizer))


def _published_find(
    first: TokenizedPrompt, second: TokenizedPrompt, tokenizer: Any
) -> tuple[_Find, _Find]:
    return (
        partial(published_tokens, first, tokenizer),
        partial(published_tokens, second, tokenizer),
    )
