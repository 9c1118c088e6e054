"""Splits a caption into words, numbers and punctuation marks, with their positions.

Contractions are split as in the Penn Treebank, whose tags the lexicon uses ("don't" is "do" and
"n't", "man's" is "man" and "'s"); hyphenated words, clock times and abbreviations are kept whole.
"""

import re
from collections.abc import Iterator

# Combining marks, which belong to the letter before them; for use inside a character class.
MARKS = r"\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_LETTER = rf"[^\W_][{MARKS}]*"
_TOKEN = re.compile(
    rf"""
      (?:[a-z]\.){{2,}}                           # abbreviation: U.S., a.m.
    | \d+(?:[.,:/]\d+)+(?![^\W_])                 # 3.5  1,000  10:30  1/2
    | (?:{_LETTER})+?(?=n['\u2019]t(?![^\W_]))         # "do" of "don't"
    | n['\u2019]t(?![^\W_])
    | ['\u2019](?:s|re|ve|ll|d|m)(?![^\W_])
    | o['\u2019]clock(?![^\W_])
    | (?:{_LETTER})+(?:-(?:{_LETTER})+)*          # word, with its hyphens
    | \.{{2,}} | -{{2,}}
    | \S
    """,
    re.VERBOSE | re.IGNORECASE,
)


def find_tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield a match per token, in order; only white space lies outside them."""
    return _TOKEN.finditer(text)
