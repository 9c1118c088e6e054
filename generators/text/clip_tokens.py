"""Counts the tokens CLIP's text encoder sees, exactly and without importing torch.

What lies beyond token 77 never reaches the encoder, so a caption whose edit is out there compares
a text with itself. The vocabulary is the one inside the open_clip_torch wheel; it is found there
without importing the package, which would import torch.
"""

import functools
import gzip
import html
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from eqforge.schemas.errors import MissingExtra

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONTEXT_TOKENS: Final = 77
"""How many tokens every published CLIP model reads, the two at the ends included."""

_EXTRA = "text"
_VOCABULARY = "bpe_simple_vocab_16e6.txt.gz"
_MERGES = 49152 - 256 - 2
_ENDS = ("<start_of_text>", "<end_of_text>")
_PIECES = "|".join(_ENDS) + r"|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def count_clip_tokens(text: str) -> int:
    """Counts the tokens of a text, with the one before and the one after it: 2 or more.

    Takes time in proportion to the text, some 40 microseconds for an ordinary caption; check the
    length of a text from outside before.

    Raises:
      MissingExtra: open_clip_torch or one of its needs is not installed.

    Source: open_clip `SimpleTokenizer`, itself OpenAI's `simple_tokenizer.py`: ftfy, HTML entities
      undone twice, white space, lower case, byte-level byte-pair encoding.
    """
    pieces = _piece_pattern().findall(_clean(text))
    words = [piece for piece in pieces if piece not in _ENDS]
    encoded = _encoder().encode(words, is_pretokenized=True, add_special_tokens=False)
    return len(encoded.ids) + len(pieces) - len(words) + 2


def _clean(text: str) -> str:
    """Returns the text as SimpleTokenizer cleans it."""
    try:
        import ftfy
    except ImportError as error:
        raise MissingExtra("ftfy", _EXTRA) from error
    text = html.unescape(html.unescape(ftfy.fix_text(text)))
    return " ".join(text.split()).lower()


@functools.cache
def _piece_pattern() -> Any:
    """Returns SimpleTokenizer's pattern, compiled by the library and so the Unicode it uses."""
    try:
        import regex  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtra("regex", _EXTRA) from error
    return regex.compile(_PIECES, regex.IGNORECASE)


@functools.cache
def _encoder() -> "Tokenizer":
    """Returns the byte-pair encoder, built once per process in a tenth of a second."""
    try:
        from tokenizers import Tokenizer, models, pre_tokenizers
    except ImportError as error:
        raise MissingExtra("tokenizers", _EXTRA) from error
    merges = _read_merges()
    letters = _byte_letters()
    symbols = [*letters, *(f"{letter}</w>" for letter in letters), *map("".join, merges)]
    vocabulary = {symbol: number for number, symbol in enumerate(symbols)}
    encoder = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, end_of_word_suffix="</w>"))
    encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return encoder


def _read_merges() -> list[tuple[str, str]]:
    """Reads the pairs of symbols CLIP merges, the most frequent first."""
    lines = gzip.decompress(_vocabulary_file().read_bytes()).decode().split("\n")
    pairs = (line.split() for line in lines[1 : _MERGES + 1])
    return [(left, right) for left, right in pairs]


def _vocabulary_file() -> Path:
    """Finds the vocabulary beside open_clip's code."""
    spec = importlib.util.find_spec("open_clip")
    for folder in (spec and spec.submodule_search_locations) or ():
        if (file := Path(folder) / _VOCABULARY).is_file():
            return file
    raise MissingExtra("open_clip_torch", _EXTRA)


def _byte_letters() -> list[str]:
    """Returns the letters that stand for the 256 bytes, in the order of CLIP's vocabulary."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return [*map(chr, printable), *(chr(0x100 + n) for n in range(256 - len(printable)))]
