"""Adds statements that are always true and say nothing about the image: "true is true"."""

import re

from eqforge.generators.text.analysis import Analysis, is_word
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.perturbations.record import Reason

_ENDS_SENTENCE = re.compile(r"[.!?\u2026][^\w\s]*\s*\Z")


def add_statement(analysis: Analysis, statement: str) -> list[Edit] | Reason:
    """Adds a statement: ", and true is true" before a final full stop or at the end.

    After any other mark that ends a sentence it becomes its own sentence. The edit is an insertion:
    nothing in the caption changes, not even white space at its end.

    Args:
      analysis: the caption's analysis.
      statement: in lower case, without punctuation.
    """
    if not any(is_word(token) for token in analysis.tokens):
        return Reason.NO_WORDS
    last = analysis.tokens[-1]
    if last.text == ".":
        return [Edit(start=last.start, end=last.start, replacement=f", and {statement}")]
    if _ENDS_SENTENCE.search(analysis.text):
        sentence = f" {statement[0].upper()}{statement[1:]}."
        return [Edit(start=last.end, end=last.end, replacement=sentence)]
    comma = "" if last.text == "," else ","
    return [Edit(start=last.end, end=last.end, replacement=f"{comma} and {statement}")]
