"""Words of a prompt, their tokens, and the alignment of the tokens of two prompts.

Positions count from the token before the text (0) to the last padding; both prompts are padded to
the same number of tokens. A punctuation mark is a word of its own, so "cat," contains "cat".

`published_replacement` and `published_refinement` align as the authors' code does, with its
defects, for the published dataset:

* Words are split at blanks: "cat" is not found in "cat,", and a word that is not found is silently
  ignored.
* Tokens belong to a word by counting letters, so that a letter of several tokens shifts the rest.
* After the last exchanged word, positions go to the same positions, so that a word of more or
  fewer tokens shifts the rest; and where the prompts differ before it, the end of the text is cut.
* Where the second prompt is the shorter one, its padding meets words of the first.

Source: `get_word_inds` in ptp_utils.py, `get_replacement_mapper_` and `get_mapper` in
  seq_aligner.py of prompt-to-prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.settings import WordName

_WORD = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")  # noqa: RUF001 - the typographic apostrophe


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """A word of a prompt.

    Attributes:
      text: as the prompt has it, in lower case.
      place: number of the piece that `str.split` finds it in.
      tokens: positions of its tokens, at least one, in a row.
    """

    text: str
    place: int
    tokens: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizedPrompt:
    """A prompt as the text encoder reads it.

    Attributes:
      prompt: the text.
      ids: of the tokens, with the one before and the one after the text, without padding.
      words: the words in order.
      length: tokens of the padded prompt.
    """

    prompt: str
    ids: tuple[int, ...]
    words: tuple[Word, ...]
    length: int

    def find(self, name: WordName) -> tuple[int, ...]:
        """Return the positions of a word's tokens, in every place where the prompt has it.

        Case is ignored.
        """
        found = self._at(name) if isinstance(name, int) else self._all(name)
        if not found:
            raise InputError(f"the prompt {self.prompt!r} does not have the word {name!r}")
        return tuple(sorted({token for word in found for token in word.tokens}))

    def _at(self, place: int) -> list[Word]:
        words = [word for word in self.words if word.place == place]
        return [word for word in words if word.text[0].isalnum()] or words

    def _all(self, phrase: str) -> list[Word]:
        wanted = _WORD.findall(phrase.lower())
        texts = [word.text for word in self.words]
        starts = [
            start
            for start in range(len(texts) - len(wanted) + 1)
            if texts[start : start + len(wanted)] == wanted
        ]
        return [word for start in starts for word in self.words[start : start + len(wanted)]]


def tokenize(prompt: str, tokenizer: Any) -> TokenizedPrompt:
    """Split a prompt into words, and find the tokens of each with a CLIP tokenizer."""
    encoded = tokenizer(prompt, return_offsets_mapping=True, truncation=False)
    ids, length = tuple(encoded["input_ids"]), int(tokenizer.model_max_length)
    if len(ids) > length:
        raise InputError(
            f"the prompt {prompt!r} has {len(ids)} tokens, the text encoder reads {length}"
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
        raise InputError(f"the tokens of the prompt {prompt!r} do not belong to one word each")
    return TokenizedPrompt(prompt=prompt, ids=ids, words=words, length=length)


def check_length(prompt: str, pipeline: Any) -> None:
    """Check that a pipeline's text encoders read all of a prompt, which they would cut off.

    Of FLUX, CLIP reads only the start, for the gist, and T5 all; language models have no limit
    that a prompt would meet.
    """
    encoders = {
        suffix: type(getattr(pipeline, f"text_encoder{suffix}", None)).__name__
        for suffix in ("", "_2")
    }
    kind = "T5" if encoders["_2"].startswith("T5") else "CLIP"
    for suffix, name in encoders.items():
        if not name.startswith(kind):
            continue
        tokenizer = getattr(pipeline, f"tokenizer{suffix}")
        count, limit = (
            len(tokenizer(prompt, truncation=False).input_ids),
            tokenizer.model_max_length,
        )
        if count > limit:
            raise InputError(
                f"the prompt {prompt!r} has {count} tokens, the text encoder reads {limit}"
            )


_Tokens = tuple[tuple[int, ...], tuple[int, ...]]
_Find = tuple[Callable[[WordName], tuple[int, ...]], Callable[[WordName], tuple[int, ...]]]


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
    changed: _Tokens
    find: _Find


def replacement(first: TokenizedPrompt, second: TokenizedPrompt) -> Alignment:
    """Align two prompts word by word.

    The tokens of a word map to those of the word that replaces it; if their numbers differ, each
    maps to all of them in equal parts. The end of the text maps to the end of the text, and all
    attention is preserved: every row of the mapper sums to 1.

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
        changed=_flat(exchanged),
        find=(first.find, second.find),
    )


def _flat(exchanged: list[_Tokens]) -> _Tokens:
    first, second = zip(*exchanged, strict=True) if exchanged else ((), ())
    return tuple(chain(*first)), tuple(chain(*second))


def map_word(mapper: np.ndarray, one: Sequence[int], other: Sequence[int]) -> None:
    """Map the tokens of one word to those of another; modify the mapper in place."""
    if len(one) == len(other):
        mapper[one, other] = 1
    else:
        mapper[np.ix_(one, other)] = 1 / len(other)


def refinement(
    first: TokenizedPrompt,
    second: TokenizedPrompt,
    changed: _Tokens | None = None,
) -> Alignment:
    """Align the tokens that two prompts share; new tokens keep their own attention.

    If the changed words are known, the others are aligned in order; otherwise the tokens are
    compared, which can confuse two equal words.

    Padding is aligned by position, as in the authors' code; if the second prompt is shorter,
    from the end of the text on, since its padding would otherwise align with words of the first.

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
    changed: _Tokens,
) -> list[int | None]:
    """Return for each token of the second prompt its equal in the first, or None."""
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


def published_tokens(prompt: TokenizedPrompt, tokenizer: Any, name: WordName) -> tuple[int, ...]:
    """Return the positions of a word's tokens, or none."""
    pieces = prompt.prompt.split(" ")
    wanted = {name} if isinstance(name, int) else {i for i, p in enumerate(pieces) if p == name}
    found: list[int] = []
    piece, letters = 0, 0
    for position, token in enumerate(prompt.ids[1:-1], start=1):
        letters += len(tokenizer.decode([token]).strip("#"))
        if piece in wanted:
            found.append(position)
        if piece < len(pieces) and letters >= len(pieces[piece]):
            piece, letters = piece + 1, 0
    return tuple(found)


def published_replacement(
    first: TokenizedPrompt, second: TokenizedPrompt, tokenizer: Any
) -> Alignment:
    """Align two prompts word by word."""
    pieces = [prompt.prompt.split(" ") for prompt in (first, second)]
    if len(pieces[0]) != len(pieces[1]):
        raise InputError(
            "only prompts with as many words can exchange words: "
            f"{first.prompt!r} has {len(pieces[0])}, {second.prompt!r} {len(pieces[1])}"
        )
    find = _published_find(first, second, tokenizer)
    differing = [i for i, (a, b) in enumerate(zip(*pieces, strict=True)) if a != b]
    exchanged = [(find[0](place), find[1](place)) for place in differing]
    return Alignment(
        mapper=_shifted_mapper(exchanged, first.length),
        own=np.zeros(second.length, dtype=np.float32),
        changed=_flat(exchanged),
        find=find,
    )


def _published_find(first: TokenizedPrompt, second: TokenizedPrompt, tokenizer: Any) -> _Find:
    return (
        partial(published_tokens, first, tokenizer),
        partial(published_tokens, second, tokenizer),
    )


def _shifted_mapper(exchanged: list[_Tokens], length: int) -> np.ndarray:
    mapper = np.zeros((length, length), dtype=np.float32)
    left = list(exchanged)
    i = j = 0
    while i < length and j < length:
        if left and left[0][0][0] == i:
            one, other = left.pop(0)
            map_word(mapper, one, other)
            i, j = i + len(one), j + len(other)
        else:
            mapper[i if left else j, j] = 1
            i, j = i + 1, j + 1
    return mapper


def published_refinement(
    first: TokenizedPrompt, second: TokenizedPrompt, tokenizer: Any
) -> Alignment:
    """Align the tokens that two prompts share; new tokens keep their own attention."""
    sources = align_tokens(first.ids, second.ids)
    mapper = np.zeros((first.length, second.length), dtype=np.float32)
    own = np.zeros(second.length, dtype=np.float32)
    for target in range(second.length):
        source = sources[target] if target < len(sources) else target
        if source is None:
            own[target] = 1
        else:
            mapper[source, target] = 1
    return Alignment(
        mapper=mapper,
        own=own,
        changed=(
            tuple(token for token in range(len(first.ids)) if token not in sources),
            tuple(token for token, source in enumerate(sources) if source is None),
        ),
        find=_published_find(first, second, tokenizer),
    )
