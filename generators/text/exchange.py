"""Exchanges two phrases of a caption."""

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Edit


def exchange_phrases(
    analysis: Analysis, left: tuple[int, int], right: tuple[int, int]
) -> tuple[Edit, Edit]:
    """Returns the edits that exchange two phrases; a capital at the caption's start stays there.

    Args:
      analysis: the caption's analysis.
      left: first and last token, `last` exclusive, of the phrase that comes first.
      right: likewise, of the other phrase.
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
