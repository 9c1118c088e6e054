"""Reject captions and caption pairs that cannot be used to test a model; count CLIP's tokens.

CLIP ignores everything after token 77: if a pair's only edit is there, a text is compared with
itself. CLIP's merges are stored in this folder, since the packages that contain them depend on
torch.
"""

import dataclasses
import functools
import html
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from eqforge.schemas.records.scores import Rejection

if TYPE_CHECKING:
    from tokenizers import Tokenizer


CONTEXT_TOKENS: Final = 77
"""Number of tokens that every published CLIP model reads, including the start and end tokens."""

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


CAPTION_REASONS = {
    "empty_caption": "The caption contains no visible characters.",
    "control_characters": "The caption contains a control character or an unpaired surrogate.",
    "caption_too_long_chars": "The caption has too many characters.",
    "caption_too_long_tokens": "The caption has too many CLIP tokens.",
}

CAPTION_PAIR_REASONS = {
    "equal_captions": "The captions are equal, apart from case and spacing.",
}

_FINAL_PUNCTUATION = ".,;:!?\u2026\u3002\uff01\uff1f"
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_VISIBLE = re.compile(r"[^\s\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CaptionSettings:
    """Length limits for captions (None turns a limit off)."""

    max_chars: int | None = 2_000
    """Maximum number of characters per caption. The longest of 68,000 published captions has 373
    characters."""

    max_tokens: int | None = CONTEXT_TOKENS
    """Maximum number of CLIP tokens, including start and end tokens. CLIP ignores further
    tokens."""


def lint_caption(text: str, settings: CaptionSettings) -> Rejection | None:
    """Return why a caption is unusable; None if it is usable.

    Length is checked first, so that a caption of 10 MB is cheap: only counting CLIP tokens is slow.
    """
    if settings.max_chars is not None and len(text) > settings.max_chars:
        return Rejection(
            reason="caption_too_long_chars", value=len(text), threshold=settings.max_chars
        )
    if not _VISIBLE.search(text):
        return Rejection(reason="empty_caption", detail=f"{len(text)} characters")
    if control := _CONTROL.search(text):
        detail = f"U+{ord(control.group()):04X} at character {control.start()}"
        return Rejection(reason="control_characters", detail=detail)
    if settings.max_tokens is None or (tokens := count_clip_tokens(text)) <= settings.max_tokens:
        return None
    return Rejection(reason="caption_too_long_tokens", value=tokens, threshold=settings.max_tokens)


def lint_pair(text_0: str, text_1: str) -> Rejection | None:
    normalized = normalize_caption(text_0)
    if normalized != normalize_caption(text_1):
        return None
    return Rejection(reason="equal_captions", detail=normalized[:200])


def normalize_caption(text: str) -> str:
    """Fold Unicode, case and white space, and strip final punctuation."""
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
    spaced = " ".join(unicodedata.normalize("NFC", folded).split())
    return spaced.rstrip(_FINAL_PUNCTUATION + " ")
