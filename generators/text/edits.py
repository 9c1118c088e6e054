"""Edits that change spans of a text and nothing else.

Every step that rewrites a caption expresses its change as edits and applies them here, so that
punctuation and spacing are kept, the changed spans can be stored with the result, and the change
can be undone. Offsets count Unicode code points, as Python's strings do.
"""

import dataclasses
from collections.abc import Sequence

from eqforge.schemas.records.values import Span as Span


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """Replaces text[start:end] with `replacement`; an insertion if start == end."""

    start: int
    end: int
    replacement: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class EditedText:
    """A text after edits, and where each edit is.

    Attributes:
      text: the text after all edits.
      spans_before: one span per edit, in the original text; what lies outside them is unchanged.
      spans_after: the same edits' spans in `text`, in the same order.
    """

    text: str
    spans_before: tuple[Span, ...]
    spans_after: tuple[Span, ...]


def apply_edits(text: str, edits: Sequence[Edit]) -> EditedText:
    """Applies edits whose offsets all refer to the original text.

    Args:
      text: any text.
      edits: ordered by position and not overlapping; they may touch.

    Raises:
      ValueError: an edit extends beyond the text, or starts before the previous one ends.
    """
    parts: list[str] = []
    before: list[Span] = []
    after: list[Span] = []
    done = shift = 0
    for edit in edits:
        start, end, replacement = edit.start, edit.end, edit.replacement
        if not done <= start <= end <= len(text):
            raise ValueError(
                f"edits must be ordered, apart and inside the text of {len(text)} characters: "
                f"found {edit} where the previous edit ends at {done}"
            )
        parts.append(text[done:start])
        parts.append(replacement)
        before.append(Span(start=start, end=end))
        after.append(Span(start=start + shift, end=start + shift + len(replacement)))
        shift += len(replacement) - (end - start)
        done = end
    parts.append(text[done:])
    return EditedText(text="".join(parts), spans_before=tuple(before), spans_after=tuple(after))
