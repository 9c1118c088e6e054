"""Modifiers and heads that both sides of an "and" may share.

In "clay and gold vases" some vases are clay, in "a plastic bat and ball" both may be plastic, and
in "pans and plates of food" both hold food: an exchange would take from one side what belongs to
it. Form alone decides, and where it leaves two readings the caption is refused.
"""

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import (
    ADJECTIVES,
    COLOURS,
    OPENERS,
    Range,
    head_of,
    is_mass,
    refuse,
    tag_at,
    word_at,
    words_of,
)

PLURALS = ("NNS", "NNPS")
_MODIFIERS = (*ADJECTIVES, "VBG", "VBN")
_MATERIALS = frozenset(
    (
        *("brick", "bronze", "clay", "concrete", "copper", "glass", "granite", "leather"),
        *("marble", "metal", "plastic", "steel", "stone", "tile", "tin", "wood"),
    )
)
# Nouns that may modify the other side's noun: "an adult and a juvenile zebra".
_KINDS = frozenset(
    (
        *("adolescent", "adult", "baby", "calf", "child", "father", "female", "juvenile", "male"),
        *("mama", "mom", "mother", "parent", "toddler", "young"),
    )
)


def refuse_shared_modifiers(analysis: Analysis, left: Range, right: Range) -> None:
    """Checks that no modifier, head or "of" phrase of one side may belong to the other too.

    Args:
      analysis: the caption's analysis.
      left: the left noun phrase, without a determiner shared by both.
      right: the right noun phrase.

    Raises:
      CannotTell: one may.
    """
    _refuse_missing_commas(analysis, left, right)
    if tag_at(analysis, left[0] - 1) in ("VBG", "VBN") and tag_at(analysis, left[0] - 2) == "IN":
        refuse("shared_modifier")  # "in racing gear and number"
    cores = _core(analysis, left), _core(analysis, right)
    if tag_at(analysis, right[0]) in OPENERS:
        if set(words_of(analysis, cores[0])) <= _KINDS and _length(cores[1]) > 1:
            refuse("shared_modifier")
        return
    adds_of = "of" in words_of(analysis, right) and "of" not in words_of(analysis, left)
    if adds_of and not is_mass(head_of(analysis, left)):
        refuse("shared_modifier")  # "plates and pans of food", "lots and lots of suitcases"
    if word_at(analysis, right[0]).endswith("ing"):
        refuse("unlike_parts")  # "eating pizza and drinking beer", tagged as nouns
    if "POS" in (tag_at(analysis, index) for index in range(*left)):
        refuse("shared_modifier")  # "a man's hat and coat"
    if not _is_parallel(analysis, left, cores):
        refuse("shared_modifier")


def _is_parallel(analysis: Analysis, left: Range, cores: tuple[Range, Range]) -> bool:
    """Tells whether each side of "X and Y" clearly has its own noun and modifiers."""
    heads = [head_of(analysis, core) for core in cores]
    are_plural = [_is_plural(analysis, core) for core in cores]
    modified = [tag_at(analysis, core[0]) in _MODIFIERS and _length(core) > 1 for core in cores]
    if _length(cores[1]) == 1:
        is_bound = tag_at(analysis, left[0]) in OPENERS or (
            tag_at(analysis, left[0] - 1) == "," and not modified[0]
        )
        return _length(cores[0]) == 1 or is_bound
    if heads[0].lemma in COLOURS | _MATERIALS:
        return False  # "a large gold and blue clock"
    if _length(cores[0]) == 1:
        return are_plural[0] and (modified[1] or are_plural[1])
    return modified == [True, True] or (modified == [False, False] and all(are_plural))


def _refuse_missing_commas(analysis: Analysis, *sides: Range) -> None:
    """Checks that neither side is two phrases in a row, or a phrase and a verb.

    "Carrots broccoli and rice"; "a skateboarder skates and balances".

    Raises:
      CannotTell: one is.
    """
    for side in sides:
        core = _core(analysis, side)
        is_one = word_at(analysis, side[0]) in ("a", "an")
        if is_one and "of" not in words_of(analysis, side) and _is_plural(analysis, core):
            refuse("unlike_parts")
        if any(tag_at(analysis, index) in PLURALS for index in range(core[0], core[1] - 1)):
            refuse("unlike_parts")


def _is_plural(analysis: Analysis, phrase: Range) -> bool:
    return head_of(analysis, phrase).tag in PLURALS


def _core(analysis: Analysis, phrase: Range) -> Range:
    """Returns a noun phrase without its determiners and "of" phrases."""
    start, end = phrase
    while start < end - 1 and tag_at(analysis, start) in OPENERS:
        start += 1
    words = words_of(analysis, (start, end))
    return (start, start + words.index("of") if "of" in words[1:] else end)


def _length(phrase: Range) -> int:
    return phrase[1] - phrase[0]
