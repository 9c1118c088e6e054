"""Drops hard positives that contradict themselves or other captions of the same image."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from eqforge.generators.text.caption_lint import normalize_caption
from eqforge.generators.text.words import word_spans
from eqforge.schemas.records.scores import Rejection


class Texts(Protocol):
    """A true caption, a rewording that stays true, and a false caption."""

    @property
    def caption(self) -> str:
        """The true caption."""

    @property
    def hard_positive(self) -> str:
        """The rewording."""

    @property
    def hard_negative(self) -> str:
        """The false caption."""


def reconcile_image(
    candidates: Mapping[str, Texts],
    true_captions: Iterable[str] = (),
    false_captions: Iterable[str] = (),
) -> dict[str, Rejection]:
    """Return which hard positives of one image to drop, and why; the others are kept.

    A candidate is dropped if two of its own texts say the same. Of the rest, a candidate is dropped
    if an earlier one has the same caption and negative, if its negative is a true caption of the
    image (a candidate's, or one of `true_captions`), or if its hard positive is a negative of the
    image (a candidate's, or one of `false_captions`). Texts are compared by `what_is_said`. The
    result does not depend on the order of the arguments.

    Args:
      candidates: all hard positives of one image, by id.
      true_captions: other captions known to be true of the image.
      false_captions: other captions known to be false of it.

    Returns:
      Rejections by candidate id, in order of id.
    """
    said = {name: _said(texts) for name, texts in sorted(candidates.items())}
    reasons = {name: _own_contradiction(*texts) for name, texts in said.items()}
    sound = {name: texts for name, texts in said.items() if reasons[name] is None}
    true = {*map(what_is_said, true_captions), *(caption for caption, _, _ in said.values())}
    false = {*map(what_is_said, false_captions), *(negative for _, _, negative in sound.values())}
    seen: set[tuple[str, str]] = set()
    for name, (caption, positive, negative) in sound.items():
        if (caption, negative) in seen:
            reasons[name] = "duplicate"
        elif negative in true:
            reasons[name] = "negative_true_elsewhere"
        elif positive in false:
            reasons[name] = "hard_positive_false_elsewhere"
        seen.add((caption, negative))
    return {name: _refusal(reason, candidates[name]) for name, reason in reasons.items() if reason}


def _refusal(reason: str, texts: Texts) -> Rejection:
    is_of_positive = reason.startswith("hard_positive")
    detail = texts.hard_positive if is_of_positive else texts.hard_negative
    return Rejection(reason=reason, detail=detail)


def what_is_said(text: str) -> str:
    """Return the words of a text in a form that is equal for texts that say the same.

    Letter case, spacing, punctuation between words, and the difference between "a" and "an" are
    ignored. For a text without words it is that of `normalize_caption`.
    """
    words = (normalize_caption(text[start:end]) for start, end in word_spans(text))
    return " ".join("a" if word == "an" else word for word in words) or normalize_caption(text)


def _said(texts: Texts) -> tuple[str, str, str]:
    caption, positive, negative = texts.caption, texts.hard_positive, texts.hard_negative
    return what_is_said(caption), what_is_said(positive), what_is_said(negative)


def _own_contradiction(caption: str, positive: str, negative: str) -> str | None:
    if caption == negative:
        return "negative_equals_positive"
    if positive == negative:
        return "hard_positive_equals_negative"
    return "hard_positive_equals_caption" if positive == caption else None
