"""Edits that change spans of a text and nothing else.

Punctuation and spacing are kept, the changed spans can be stored with the result, and the change
can be undone. Offsets count Unicode code points, as Python's strings do.
"""

import dataclasses
from collections.abc import Sequence

from eqforge.generators.text.analysis import Analysis
from eqforge.schemas.records.values import Span as Span


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """Replaces text[start:end] with `replacement`; an insertion if start == end."""

    start: int
    end: int
    replacement: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class EditedText:
    """A text after edits, and the span of each edit in the original and in this text."""

    text: str
    spans_before: tuple[Span, ...]
    spans_after: tuple[Span, ...]


def apply_edits(text: str, edits: Sequence[Edit]) -> EditedText:
    """Apply edits to the original text; ValueError if they overlap, or are out of order."""
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


def exchange_phrases(
    analysis: Analysis, left: tuple[int, int], right: tuple[int, int]
) -> tuple[Edit, Edit]:
    """Return the edits that exchange two phrases, the first of which is `left`.

    A capital at the caption's start stays there.
    """
    tokens, text = analysis.tokens, analysis.text
    spans = [(tokens[first].start, tokens[last - 1].end) for first, last in (left, right)]
    left_text, right_text = (text[start:end] for start, end in spans)
    first = tokens[left[0]]
    if left[0] == 0 and first.text[0].isupper():
        right_text = right_text[0].upper() + right_text[1:]
        is_name = first.tag.startswith("NNP") or (len(first.text) > 1 and first.text.isupper())
        left_text = left_text if is_name else left_text[0].lower() + left_text[1:]
    return (
        Edit(start=spans[0][0], end=spans[0][1], replacement=right_text),
        Edit(start=spans[1][0], end=spans[1][1], replacement=left_text),
    )


def common_ends(left: Sequence[str], right: Sequence[str]) -> tuple[int, int]:
    """Count the parts that two texts share at the start, and of the rest at the end."""
    from rapidfuzz.distance import Postfix, Prefix

    first = Prefix.similarity(left, right)
    return first, Postfix.similarity(left[first:], right[first:])
