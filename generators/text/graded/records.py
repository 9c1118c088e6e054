"""An edit that ladders are made of, and why a caption has no ladder of some height."""

import itertools
from dataclasses import dataclass
from typing import Final

from eqforge.generators.text.edits import Edit, EditedText, apply_edits
from eqforge.generators.text.words import word_spans

FEW_REWORDINGS: Final = "few_rewordings"
FEW_NEGATIVES: Final = "few_negatives"
SHORT_LADDER: Final = "short_ladder"
LADDER_REFUSALS: Final[dict[str, str]] = {
    FEW_REWORDINGS: "The caption has not as many rewordings, apart from each other, that stay "
    "true together.",
    FEW_NEGATIVES: "The caption has not as many false edits, apart from each other.",
    SHORT_LADDER: "The caption's ladder has fewer levels than each has to have.",
}
"""The closed list of reasons why a caption has no text of a level, each in one sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One edit of a caption: a rewording, or a replacement that makes it false.

    Attributes:
      kind: how it was made, such as `color/color_word` or `replace_object`.
      edits: in order, not overlapping; offsets are those of the caption as it was.
    """

    kind: str
    edits: tuple[Edit, ...]

    @property
    def start(self) -> int:
        """Offset of the first character that it touches."""
        return self.edits[0].start

    @property
    def end(self) -> int:
        """Offset behind the last character that it touches."""
        return max(edit.end for edit in self.edits)


def step_of(kind: str, caption: str, edited: EditedText) -> Step:
    """Returns the step that makes an edited caption."""
    spans = zip(edited.spans_before, edited.spans_after, strict=True)
    return Step(
        kind=kind,
        edits=tuple(
            Edit(start=old.start, end=old.end, replacement=edited.text[new.start : new.end])
            for old, new in spans
        ),
    )


def compose(caption: str, steps: tuple[Step, ...]) -> EditedText:
    """Returns a caption after several steps that are apart, in any order."""
    ordered = sorted(steps, key=lambda step: (step.start, step.end))
    return apply_edits(caption, [edit for step in ordered for edit in step.edits])


def are_apart(caption: str, steps: tuple[Step, ...]) -> bool:
    """Tells whether a word that none of them touches stands between every two steps."""
    ordered = sorted(steps, key=lambda step: (step.start, step.end))
    gaps = itertools.pairwise(ordered)
    return all(
        right.start > left.end and bool(word_spans(caption[left.end : right.start]))
        for left, right in gaps
    )
