"""The alignment of the authors' code, with its defects, for the published dataset.

* Words are split at blanks: "cat" is not found in "cat,", and a word that is not found is silently
  ignored.
* Tokens belong to a word by counting letters, so that a letter of several tokens shifts the rest.
* After the last exchanged word, positions go to the same positions, so that a word of more or
  fewer tokens shifts the rest; and where the prompts differ before it, the end of the text is cut.
* Where the second prompt is the shorter one, its padding meets words of the first.

Source: `get_word_inds` in ptp_utils.py, `get_replacement_mapper_` and `get_mapper` in
  seq_aligner.py of prompt-to-prompt.
"""

from functools import partial
from typing import Any

import numpy as np

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.alignment import (
    Alignment,
    align_tokens,
    map_word,
)
from eqforge.generators.diffusion.prompt_tokens import TokenizedPrompt
from eqforge.generators.diffusion.records import WordName


def published_tokens(prompt: TokenizedPrompt, tokenizer: Any, name: WordName) -> tuple[int, ...]:
    """Returns the positions of a word's tokens, or none."""
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
    """Aligns two prompts word by word.

    Raises:
      InputError: the prompts have different numbers of words.
    """
    pieces = [prompt.prompt.split(" ") for prompt in (first, second)]
    if len(pieces[0]) != len(pieces[1]):
        raise InputError(
            "only prompts with as many words can exchange words: "
            f"{first.prompt!r} has {len(pieces[0])}, {second.prompt!r} {len(pieces[1])}"
        )
    find = (
        partial(published_tokens, first, tokenizer),
        partial(published_tokens, second, tokenizer),
    )
    differing = [i for i, (a, b) in enumerate(zip(*pieces, strict=True)) if a != b]
    exchanged = [(find[0](place), find[1](place)) for place in differing]
    return Alignment(
        mapper=_shifted_mapper(exchanged, first.length),
        own=np.zeros(second.length, dtype=np.float32),
        changed=(
            tuple(token for tokens, _ in exchanged for token in tokens),
            tuple(token for _, tokens in exchanged for token in tokens),
        ),
        find=find,
    )


def _shifted_mapper(
    exchanged: list[tuple[tuple[int, ...], tuple[int, ...]]], length: int
) -> np.ndarray:
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
    """Aligns the tokens that two prompts share; new tokens keep their own attention."""
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
        find=(
            partial(published_tokens, first, tokenizer),
            partial(published_tokens, second, tokenizer),
        ),
    )
