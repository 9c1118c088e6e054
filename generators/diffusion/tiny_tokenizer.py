"""A small CLIP tokenizer, trained by byte-pair encoding on a few words.

It has all 256 bytes, so it encodes any text; English takes about a token per three letters.
"""

from collections import Counter
from itertools import pairwise
from typing import Any

_MERGES = 200
_WORDS = """
a an the of on in at with and to by near photo painting drawing picture standing sitting wearing
horse cattle elephant goat deer camel zebra dog cat bird fish car truck boat train house castle tree
flower mountain beach desert river forest garden street city zoo grass snow sunset sunrise night
winter summer autumn spring rain water under over left right front behind red blue green yellow
white black brown small large old young cap hat crown scarf glasses
"""
Pair = tuple[str, str]


def make_tokenizer(max_tokens: int) -> Any:
    """Returns a CLIP tokenizer of transformers.

    Args:
      max_tokens: maximum number of tokens of a text, start and end token included.
    """
    from transformers import CLIPTokenizer

    merges, letters = _learn_merges(), byte_letters()
    symbols = [*letters, *(f"{letter}</w>" for letter in letters), *map("".join, merges)]
    symbols += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {symbol: number for number, symbol in enumerate(symbols)}
    make: Any = CLIPTokenizer
    return make(vocab=vocabulary, merges=merges, model_max_length=max_tokens)


def _learn_merges() -> list[Pair]:
    """Repeatedly merges the most frequent pair of neighbours; ties go to the first in order."""
    words = [[*word[:-1], f"{word[-1]}</w>"] for word in _WORDS.split()]
    merges: list[Pair] = []
    while len(merges) < _MERGES:
        counts = Counter(pair for word in words for pair in pairwise(word))
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(best)
        words = [_merge(word, best) for word in words]
    return merges


def _merge(word: list[str], pair: Pair) -> list[str]:
    merged: list[str] = []
    for symbol in word:
        if merged and (merged[-1], symbol) == pair:
            merged[-1] += symbol
        else:
            merged.append(symbol)
    return merged


def byte_letters() -> list[str]:
    """Returns the characters that stand for the 256 bytes in CLIP's vocabulary."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return [*map(chr, printable), *(chr(0x100 + n) for n in range(256 - len(printable)))]
