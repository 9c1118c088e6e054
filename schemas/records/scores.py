"""Scores of images and pairs, and the reasons for which scores and lints reject a candidate.

A filter works in two steps: one function scores, another compares the scores with its settings.
The scores stay in the row with the scorer that made them, so that a threshold can be moved later
without measuring again.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

IMAGE_REASONS: Final[Mapping[str, str]] = {
    "undecodable_image": "The encoded bytes cannot be decoded to pixels.",
    "source_changed": "The image's file was written to or replaced while it was read.",
    "too_many_pixels": "The image is larger than the limit that keeps memory bounded.",
    "face_found": "A face detector's score reaches its threshold.",
    "black_image": "The mean luminance is below its minimum.",
    "constant_image": "The greatest standard deviation of a colour channel is below its minimum.",
    "blurred_image": "The sharpness is below its minimum.",
}

PAIR_REASONS: Final[Mapping[str, str]] = {
    "camera_cut": "Colours change, and points are not found again, as from one shot to another.",
    "change_too_small": "The two images are nearer to each other than a setting allows.",
    "change_too_large": "The two images are further from each other than a setting allows.",
    "background_changed": "Outside the changed area the images differ more than allowed.",
    "luminance_shift": "The mean luminance differs more than allowed.",
    "own_caption_mismatch": "By the oracle an image does not match its own caption well enough.",
    "crossed_caption_match": "By the oracle an image matches the other image's caption too well.",
    "oracle_disagreement": "Of two oracles one speaks against the pair, the other does not.",
}

CAPTION_REASONS: Final[Mapping[str, str]] = {
    "empty_caption": "The caption has no visible character.",
    "control_characters": "The caption holds a control character or half of a surrogate pair.",
    "caption_too_long_chars": "The caption has more characters than allowed.",
    "caption_too_long_tokens": "CLIP's tokenizer makes more tokens of the caption than allowed.",
    "action_word": "The caption holds a word of the list of words one picture cannot show.",
    "equal_captions": "The two captions of a pair say the same, letter case and spacing aside.",
}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """One measurement of one image or pair, with what is needed to make it again.

    Attributes:
      name: what was measured; unique among the scores of a record.
      value: the measurement; None where the scorer ran and had nothing to say.
      scorer: the name of the software that measured.
      version: the version of that software.
      settings: the scorer's settings as compact JSON with sorted keys.
    """

    name: str
    value: float | None
    scorer: str
    version: str
    settings: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Rejection:
    """Why a candidate does not become a sample.

    Attributes:
      reason: one of the reasons of its stage; see `eqforge.schemas.records.books.Stage`.
      value: the measurement that decided; None where the reason has none.
      threshold: what the measurement was compared with; None where the reason has none.
      detail: what a reader needs beside the numbers, such as the name of the score.
    """

    reason: str
    value: float | None = None
    threshold: float | None = None
    detail: str = ""


def compact_json(settings: Mapping[str, Any]) -> str:
    """Returns settings as JSON: equal settings as equal text, without spaces, keys sorted."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"))


def value_of(scores: Iterable[Score], name: str) -> float | None:
    """Returns the value of the score with the given name.

    Raises:
      KeyError: no score has that name: the scoring step ran with other settings.
    """
    found = {score.name: score.value for score in scores}
    if name not in found:
        raise KeyError(f"no score {name!r} among {sorted(found)}")
    return found[name]
