"""Count the tokens CLIP's text encoder sees, exactly and without importing torch.

CLIP ignores everything after token 77: if a pair's only edit is there, a text is compared with
itself. CLIP's merges are stored in this folder, since the packages that contain them depend on
torch.
"""

import functools
import html
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONTEXT_TOKENS: Final = 77
"""Number of tokens every published CLIP model reads, start and end token included."""

_MERGES = Path(__file__).with_name("data") / "clip_merges.txt"
_ENDS = ("<start_of_text>", "<end_of_text>")
_PIECES = "|".join(_ENDS) + r"|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def count_clip_tokens(text: str) -> int:
    """Count the tokens of a text, start and end token included: 2 or more.

    Takes about 40 microseconds for an ordinary caption, in proportion to its length; check the
    length of untrusted texts first.

    Source: open_clip's `SimpleTokenizer`, from OpenAI's `simple_tokenizer.py`: ftfy, HTML entities
    unescaped twice, white space, lower case, byte-level byte-pair encoding.
    """
    import ftfy

    text = html.unescape(html.unescape(ftfy.fix_text(text)))
    pieces = _piece_pattern().findall(" ".join(text.split()).lower())
    words = [piece for piece in pieces if piece not in _ENDS]
    encoded = _encoder().encode(words, is_pretokenized=True, add_special_tokens=False)
    return len(encoded.ids) + len(pieces) - len(words) + 2


@functools.cache
def _piece_pattern() -> Any:
    """Compile SimpleTokenizer's pattern with `regex`, so that its Unicode tables apply."""
    import regex  # type: ignore[import-untyped]

    return regex.compile(_PIECES, regex.IGNORECASE)


def read_vocabulary() -> tuple[list[str], list[tuple[str, str]]]:
    """Read CLIP's symbols in the order of their ids, and the pairs that it merges, by frequency."""
    lines = _MERGES.read_bytes().decode().strip("\n").split("\n")
    merges = [(left, right) for left, right in map(str.split, lines)]
    # The characters for the 256 bytes, in the order of CLIP's vocabulary.
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = [*map(chr, printable), *(chr(0x100 + n) for n in range(256 - len(printable)))]
    return [*letters, *(f"{letter}</w>" for letter in letters), *map("".join, merges)], merges


@functools.cache
def _encoder() -> "Tokenizer":
    from tokenizers import Tokenizer, models, pre_tokenizers

    symbols, merges = read_vocabulary()
    vocabulary = {symbol: number for number, symbol in enumerate(symbols)}
    encoder = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, end_of_word_suffix="</w>"))
    encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return encoder
