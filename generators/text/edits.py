"""Edits that change spans of a text and leave every other character where it was.

Every step that rewrites a caption states its change as edits and applies them here, so that
punctuation and spacing survive, the changed spans can be stored beside the result, and the change
can be undone. Offsets count Unicode code points, as Python's strings do.
"""

import dataclasses
from collections.abc import Sequence

from eqforge.schemas.spans import Span as Span


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """Puts `replacement` in the place of text[start:end]; an insertion where start == end."""

    start: int
    end: int
    replacement: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class EditedText:
    """A text after edits, and where each edit lies in it.

    Attributes:
      text: the text after all edits.
      spans_before: one span per edit, in the text before; what lies outside them is unchanged.
      spans_after: the same edits' spans in `text`, in the same order.
    """

    text: str
    spans_before: tuple[Span, ...]
    spans_after: tuple[Span, ...]


def apply_edits(text: str, edits: Sequence[Edit]) -> EditedText:
    """Applies edits, all of them given in offsets of the text before any is applied.

    Args:
      text: any text.
      edits: ordered by position and not overlapping; they may touch.

    Raises:
      ValueError: an edit reaches outside the text, or lies before the end of the one before it.
    """
    _check_order(text, edits)
    parts: list[str] = []
    spans_after: list[Span] = []
    done = shift = 0
    for edit in edits:
        start = edit.start + shift
        spans_after.append(Span(start=start, end=start + len(edit.replacement)))
        parts += text[done : edit.start], edit.replacement
        shift += len(edit.replacement) - (edit.end - edit.start)
        done = edit.end
    return EditedText(
        text="".join([*parts, text[done:]]),
        spans_before=tuple(Span(start=edit.start, end=edit.end) for edit in edits),
        spans_after=tuple(spans_after),
    )


def _check_order(text: str, edits: Sequence[Edit]) -> None:
    done = 0
    for edit in edits:
        if not done <= edit.start <= edit.end <= len(text):
            raise ValueError(
                f"edits must be ordered, apart and inside the text of {len(text)} characters: "
                f"found {edit} where the previous edit ends at {done}"
            )
        done = edit.end


def invert(text: str, edited: EditedText) -> tuple[Edit, ...]:
    """Returns the edits that lead from the edited text back to the text it was made from.

    Args:
      text: the text before the edits.
      edited: what `apply_edits(text, ...)` returned.
    """
    return tuple(
        Edit(start=after.start, end=after.end, replacement=text[before.start : before.end])
        for before, after in zip(edited.spans_before, edited.spans_after, strict=True)
    )
