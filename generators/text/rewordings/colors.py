"""Colours of things: "a red car" and "a red-colored car".

Colours of living beings, food, plants and water are left alone, and so are shades ("light blue"),
several colours of one thing and colours behind a verb ("is red").
"""

import re
from collections.abc import Iterator
from typing import Final

from eqforge.generators.text.analysis import Analysis, Range
from eqforge.generators.text.contexts import classes_of
from eqforge.generators.text.coordination.conjuncts import ADJECTIVES, COLOURS, is_fixed_pair
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.fixed_expressions import is_in_fixed_expression
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.rewordings.records import Edits, Rule
from eqforge.generators.text.words import word_set

_COLORED = re.compile(
    r"(?i)(?<![\w-])(?P<name>{})[ -]colou?red(?![\w-])".format("|".join(sorted(COLOURS)))
)
# Nouns of these classes have a colour that is theirs by nature, or that names their kind.
_NATURAL = word_set("colors.natural")
_METALS = frozenset(("gold", "golden", "silver"))
_VARIED = word_set("colors.varied")


def _add(analysis: Analysis) -> Iterator[Edits]:
    for index, token in enumerate(analysis.tokens):
        name = token.text.lower()
        is_repeated = sum(token.text.lower() == name for token in analysis.tokens) > 1
        if is_repeated:  # "white counters and a white-colored sink" would set them apart
            continue
        if name in COLOURS - _METALS and token.tag in ADJECTIVES and _is_plain(analysis, index):
            added = "-COLORED" if token.text.isupper() else "-colored"
            edit = Edit(start=token.end, end=token.end, replacement=added)
            yield (edit,)


def _leave_out(analysis: Analysis) -> Iterator[Edits]:
    for found in _COLORED.finditer(analysis.text):
        edit = Edit(start=found.end("name"), end=found.end(), replacement="")
        yield (edit,)


def _is_plain(analysis: Analysis, index: int) -> bool:
    """Say whether a colour is that of a thing, alone before its noun."""
    token = analysis.tokens[index]
    phrase = next((p for p in analysis.noun_phrases if p[0] <= index < p[1] - 1), None)
    if phrase is None or not _is_noun_alone(analysis, (index + 1, phrase[1])):
        return False
    if analysis.tag(index - 1) in (*ADJECTIVES, "CC", "HYPH", ",", "NN", "RB", "VBN"):
        return False
    if is_fixed_pair(analysis.text, token.start) or is_in_fixed_expression(
        analysis.text, token.start, token.end
    ):
        return False
    classes = classes_of(analysis, phrase)
    return "artifact" in classes and not classes & (_NATURAL | _VARIED)


def _is_noun_alone(analysis: Analysis, span: Range) -> bool:
    """Say whether words are one noun, or a compound that is known: "fire hydrant"."""
    words = " ".join(analysis.words(span))
    return span[1] == span[0] + 1 or words in closed_classes("object").groups


_GROUND = "ODE, '-coloured'."

COLORS: Final = (
    Rule(name="colored", reverse="not_colored", ground=_GROUND, find=_add),
    Rule(name="not_colored", reverse="colored", ground=_GROUND, find=_leave_out),
)
