"""Drop hard positives that contradict themselves or other captions of the same image."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Protocol

from eqforge.generators.text.caption_lint import normalize_caption
from eqforge.generators.text.lints.lint import is_cut_off
from eqforge.generators.text.words import reasons, word_spans
from eqforge.schemas.records.scores import Rejection


class Texts(Protocol):
    """A true caption, a rewording that stays true, and a false caption."""

    @property
    def caption(self) -> str: ...

    @property
    def hard_positive(self) -> str: ...

    @property
    def hard_negative(self) -> str: ...


def reconcile_image(
    candidates: Mapping[str, Texts], true_captions: Iterable[str] = ()
) -> dict[str, Rejection]:
    """Return which hard positives of one image to drop, by id, and why.

    A candidate is dropped if two of its own texts say the same, or differ only beyond CLIP's
    context. Of the rest, a candidate is dropped if an earlier one has
    the same caption and negative, if its negative is a true caption of the image (a candidate's, or
    one of `true_captions`), or if its hard positive is a negative of another candidate. Texts are
    compared by `text_key`. The order of arguments does not matter.
    """
    contents = {
        name: [text_key(t) for t in (texts.caption, texts.hard_positive, texts.hard_negative)]
        for name, texts in sorted(candidates.items())
    }
    reasons: dict[str, str] = {}
    ends: dict[str, str] = {}
    for name, (caption, positive, negative) in contents.items():
        if caption == negative:
            reasons[name] = "negative_equals_positive"
        elif positive == negative:
            reasons[name] = "hard_positive_equals_negative"
        elif positive == caption:
            reasons[name] = "hard_positive_equals_caption"
        elif end := _unread_end(candidates[name]):
            reasons[name], ends[name] = "edit_beyond_context", end
    sound = {name: texts for name, texts in contents.items() if name not in reasons}
    true = {*map(text_key, true_captions), *(caption for caption, _, _ in contents.values())}
    false = {negative for _, _, negative in sound.values()}
    seen: set[tuple[str, str]] = set()
    for name, (caption, positive, negative) in sound.items():
        if (caption, negative) in seen:
            reasons[name] = "duplicate"
        elif negative in true:
            reasons[name] = "negative_true_elsewhere"
        elif positive in false:
            reasons[name] = "hard_positive_false_elsewhere"
        seen.add((caption, negative))
    rejections = {}
    for name, reason in sorted(reasons.items()):
        texts = candidates[name]
        is_of_positive = reason.startswith("hard_positive")
        detail = texts.hard_positive if is_of_positive else texts.hard_negative
        rejections[name] = Rejection(reason=reason, detail=ends.get(name, detail))
    return rejections


def _unread_end(texts: Texts) -> str:
    """Return the end of a text that differs from another only beyond CLIP's context."""
    three = texts.caption, texts.hard_positive, texts.hard_negative
    pairs = itertools.combinations(three, 2)
    return next((right[-60:] for left, right in pairs if is_cut_off(left, right)), "")


def text_key(text: str) -> str:
    """Return the same string for texts that say the same.

    Ignores letter case, spacing, punctuation between words, and the difference between "a" and
    "an". A text without words is compared by `normalize_caption`.
    """
    words = (normalize_caption(text[start:end]) for start, end in word_spans(text))
    return " ".join("a" if word == "an" else word for word in words) or normalize_caption(text)


REFUSALS = reasons("hard_positives")

REPAIRS = reasons("repairs")
