"""Words of a prompt and their tokens.

Positions count from the token before the text (0) to the last padding. A punctuation mark is a
word of its own, so "cat," contains the word "cat".
"""

import re
from dataclasses import dataclass
from typing import Any

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.records import WordName

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
        """Returns the positions of a word's tokens, in every place where the prompt has it.

        Case is ignored.

        Raises:
          InputError: the prompt does not have it.
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
    """Splits a prompt into words, and finds the tokens of each.

    Args:
      prompt: the text.
      tokenizer: a CLIP tokenizer of transformers with offset mapping.

    Raises:
      InputError: the prompt has no word, or more tokens than the encoder reads.
    """
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
    """Checks that a pipeline's text encoders read all of a prompt, which they would cut off.

    Of FLUX, CLIP reads only the start, for the gist, and T5 all; language models have no limit
    that a prompt would meet.

    Raises:
      InputError: the prompt has more tokens than one reads.
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
