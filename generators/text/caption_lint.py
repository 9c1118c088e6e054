"""Reject captions and caption pairs that cannot be used to test a model."""

import dataclasses
import re
import unicodedata

from eqforge.generators.text.clip_tokens import CONTEXT_TOKENS, count_clip_tokens
from eqforge.schemas.records.scores import Rejection

CAPTION_REASONS = {
    "empty_caption": "The caption has no visible character.",
    "control_characters": "The caption contains a control character or half of a surrogate pair.",
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
    """Length limits for captions; pass None to turn a limit off."""

    max_chars: int | None = 2_000
    """Maximum number of characters. The longest of 68,000 published captions has 373."""

    max_tokens: int | None = CONTEXT_TOKENS
    """Maximum number of CLIP tokens, including the start and end tokens. CLIP ignores any further
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
