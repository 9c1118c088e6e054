"""Edits are undone, to see that what is stored of them tells all of the change."""

from eqforge.generators.text.edits import Edit, EditedText


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
