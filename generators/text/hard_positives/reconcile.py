"""Drop hard positives that contradict themselves or other captions of the same image."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from eqforge.generators.text.caption_lint import normalize_caption
from eqforge.generators.text.words import word_spans
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

    A candidate is dropped if two of its own texts say the same. Of the rest, a candidate is dropped
    if an earlier one has the same caption and negative, if its negative is a true caption of the
    image (a candidate's, or one of `true_captions`), or if its hard positive is a negative of
    another candidate. Texts are compared by `what_is_said`. The result does not depend on the order
    of the arguments.
    """
    said = {
        name: [what_is_said(t) for t in (texts.caption, texts.hard_positive, texts.hard_negative)]
        for name, texts in sorted(candidates.items())
    }
    reasons: dict[str, str] = {}
    for name, (caption, positive, negative) in said.items():
        if caption == negative:
            reasons[name] = "negative_equals_positive"
        elif positive == negative:
            reasons[name] = "hard_positive_equals_negative"
        elif positive == caption:
            reasons[name] = "hard_positive_equals_caption"
    sound = {name: texts for name, texts in said.items() if name not in reasons}
    true = {*map(what_is_said, true_captions), *(caption for caption, _, _ in said.values())}
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
        rejections[name] = Rejection(reason=reason, detail=detail)
    return rejections


def what_is_said(text: str) -> str:
    """Return the same string for texts that say the same.

    Letter case, spacing, punctuation between words, and the difference between "a" and "an" are
    ignored. A text without words is compared by `normalize_caption`.
    """
    words = (normalize_caption(text[start:end]) for start, end in word_spans(text))
    return " ".join("a" if word == "an" else word for word in words) or normalize_caption(text)


REFUSALS: dict[str, str] = {
    "negative_equals_positive": "The negative says what the caption says: nothing can tell them.",
    "foil_not_in_lexicon": "The words that the negative changed are no entry of the lexicon.",
    "negative_not_clear": "The words of the negative may be true of the image as well: 'beige' and "
    "'white', 'serving' and 'wearing'.",
    "foil_not_reworded": "No rule rewords what the negative changed.",
    "fixed_expression": "The foiled word is part of an expression: 'in front of', 'red wine'.",
    "skin_color": "The word may name the color of a person's skin, which is never edited.",
    "repeated_word": "The foiled word appears twice in a row, and one of them would stay.",
    "weak_replacement": "The only entry is a weak synonym, and those are switched off.",
    "negative_is_synonym": "The negative exchanges words for synonyms, so it is true as well.",
    "hard_positive_equals_negative": "The hard positive says what the negative says: one is wrong.",
    "hard_positive_equals_caption": "The hard positive says what the caption says, word for word.",
    "duplicate": "The image has the same caption with the same negative already.",
    "negative_true_elsewhere": "The negative is a true caption of the same image elsewhere.",
    "hard_positive_false_elsewhere": "The hard positive is a negative of the same image elsewhere.",
}
"""The closed list of reasons why a record has no hard positive, each in one sentence."""

REPAIRS: dict[str, str] = {
    "case": "A word in capitals, as Visual Genome writes its commonest predicates, in lower case.",
    "spacing": "Spaces at the ends or more than one between words taken out.",
    "article": "'a' or 'an' made to agree with the word behind it.",
    "restored_article": "An article that the negative lost with the foiled words put back.",
}
"""The closed list of repairs that corrected mode makes to the source's captions."""
