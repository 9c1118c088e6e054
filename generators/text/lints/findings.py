"""The findings of a lint and the closed list of their kinds."""

import dataclasses
from typing import Literal

Severity = Literal["error", "warning", "note"]
"""error: the record cannot be used; warning: it misleads; note: worth a look."""

KINDS: dict[str, tuple[Severity, str]] = {
    "negative_equals_positive": ("error", "The negative is the positive: no model can win."),
    "hard_positive_equals_negative": ("error", "One caption is labelled true and false."),
    "unchanged": ("error", "The hard positive, or the perturbed caption, is the positive."),
    "case_or_spacing_only": (
        "error",
        "Two captions of the record differ in letter case, spacing or punctuation alone.",
    ),
    "negative_true_elsewhere": ("error", "The negative is a positive of the same image elsewhere."),
    "hard_positive_false_elsewhere": (
        "error",
        "The hard positive is a negative of the same image elsewhere.",
    ),
    "edit_inside_word": (
        "error",
        "Part of a word was replaced, and what is left is no word: 'covered' became 'covecrimson'.",
    ),
    "edit_beyond_context": (
        "error",
        "The captions differ behind the 77 tokens that CLIP reads alone.",
    ),
    "duplicate": ("warning", "The image has the same positive and negative already."),
    "near_duplicate": ("warning", "So it has but for case, spacing and final punctuation."),
    "edit_maybe_inside_word": (
        "note",
        "Part of a word may have been replaced as whole words are elsewhere in the file: 'cold' "
        "became 'caged'.",
    ),
    "invented_word": ("warning", "The edit made a word that no dictionary has."),
    "article": ("warning", "'a' or 'an' disagrees with the word behind it."),
    "word_twice": ("warning", "A word of grammar stands twice in a row: 'the the'."),
    "near_synonym_negative": (
        "warning",
        "The negative exchanges words for synonyms or broader words, so it is true as well.",
    ),
    "word_order_only": (
        "note",
        "The negative has the words of the positive in another order; models that read bags of "
        "words can only guess.",
    ),
    "length_gap": ("note", "One caption has at least 4 words more, and half as many again."),
}
"""Severity and meaning of every kind of finding."""

ERRORS = tuple(kind for kind, (severity, _) in KINDS.items() if severity == "error")
"""The kinds whose records cannot be used."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One defect of one record, of a kind in KINDS.

    Attributes:
      field: the caption at fault: "positive", "negative", "hard_positive" or "perturbed";
        "other_caption" if the caption of a second image stands in place of a negative.
      twin: the id of the first record that a duplicate repeats; empty for other kinds.
    """

    record_id: str
    kind: str
    field: str
    detail: str
    twin: str = ""

    severity: Severity = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "severity", KINDS[self.kind][0])
