"""Find the sides of an "and" between noun phrases.

Form alone decides what a modifier or a preposition belongs to: which side has a determiner, what
stands before the left and after the right side, and whether both name living beings. A caption with
two readings is rejected.
"""

from eqforge.generators.text.analysis import Analysis, Range, is_noun
from eqforge.generators.text.caption_words import finite_forms, participles
from eqforge.generators.text.coordination.conjuncts import (
    ADJECTIVES,
    COLOURS,
    OPENERS,
    PLACES,
    Conjuncts,
    is_living,
    is_mass,
    refuse,
    refuse_pronouns,
)
from eqforge.generators.text.words import word_set

_FINITE = ("VBD", "VBP", "VBZ", "MD")
_MODIFIERS = (*ADJECTIVES, "VBG", "VBN")
PLURALS = ("NNS", "NNPS")
_MATERIALS = word_set("noun_phrases.materials")
# Nouns that may modify the other side's noun: "an adult and a juvenile zebra".
_KINDS = word_set("noun_phrases.kinds")
_SINGULAR_OPENERS = frozenset(("a", "an", "another", "each", "every", "that", "this"))
_QUANTITIES = frozenset(("few", "many", "multiple", "numerous", "several", "various"))
# Nouns that apply to both sides of "of A and B"; in "bags of luggage and purses", bags may not.
_OF_BOTH = word_set("noun_phrases.of_both")
# These hold both sides if both are of one kind: "a bowl of rice and chopsticks" may hold only rice.
_VESSELS = frozenset(("basket", "bowl", "box", "dish", "pan", "plate", "platter", "tray"))
_RELATIVE = frozenset(("that", "which", "who"))
_OF_ONE = frozenset(("carrying", "dressed", "flying", "holding", "named", "pointing", "wearing"))
_OF_ALL = frozenset(("displayed", "gathered", "parked", "placed", "posed", "seated", "shown"))
_CLOTHES = word_set("noun_phrases.clothes")


def join_noun_phrases(analysis: Analysis, conjunction: int) -> Conjuncts:
    right = analysis.phrase_from(conjunction + 1)
    left = analysis.phrase_to(conjunction - (analysis.tag(conjunction - 1) == ","))
    if left is None or right is None:
        refuse("unlike_parts")
    while analysis.word(right[1]) == "of":  # "a plate of rice"
        following = analysis.phrase_from(right[1] + 1)
        if following is None:
            refuse("unclear_attachment")
        right = (right[0], following[1])
    inside = range(right[0] + 1, right[1] - 1)
    if any(analysis.word(i) in participles() and is_noun(analysis.tokens[i - 1]) for i in inside):
        refuse("unlike_parts")  # "an elephant drinking water"
    is_subject = left[0] == 0 and right[1] - right[0] > 2 and is_noun(analysis.tokens[right[1] - 2])
    if is_subject and finite_forms().get(analysis.word(right[1] - 1), (None, ""))[1] == "are":
        refuse("unlike_parts")  # "a ruler and a pen lie on a table"
    if analysis.tag(conjunction - 1) == "," and analysis.tag(left[0] - 1) != ",":
        refuse("unclear_attachment")  # the comma is no part of a list
    left = _parallel_left(analysis, left, right)
    refuse_pronouns(analysis, left, right)
    left = _without_shared_opener(analysis, left, right)
    refuse_shared_modifiers(analysis, left, right)
    _check_behind(analysis, left, right)
    _check_before(analysis, left, right)
    return Conjuncts(left=left, right=right, level="noun_phrase")


def _parallel_left(analysis: Analysis, left: Range, right: Range) -> Range:
    """Extend the left side over "of" until it has a determiner, or an "of" like the right side."""
    while not (_has_opener(analysis, left) or analysis.word(left[0]) in _QUANTITIES):
        outer = analysis.phrase_to(left[0] - 1)
        if analysis.word(left[0] - 1) != "of" or outer is None:
            break
        if not _has_opener(analysis, right):
            is_parallel = not _has_opener(analysis, outer) and analysis.word(outer[0] - 1) != "of"
            if not is_parallel or "of" not in analysis.words(right):
                break
        left = (outer[0], left[1])
    return left


def _has_opener(analysis: Analysis, phrase: Range) -> bool:
    return analysis.tag(phrase[0]) in OPENERS


def _is_plural(analysis: Analysis, phrase: Range) -> bool:
    return analysis.head(phrase).tag in PLURALS


def _without_shared_opener(analysis: Analysis, left: Range, right: Range) -> Range:
    """Remove from the left side a determiner shared by both: "a knife and fork".

    If the right side is a plural or a mass noun such as "rice", an "a" belongs to the left alone.
    """
    if _has_opener(analysis, right):
        is_open = _has_opener(analysis, left) or _is_plural(analysis, left)
        if analysis.tag(right[0]) == "CD" and not _has_opener(analysis, left):
            refuse("shared_modifier")  # "firefighters and three firetrucks"
        if analysis.tag(left[0] - 1) == "," and not (is_open or is_mass(analysis.head(left).lemma)):
            refuse("shared_modifier")  # "a chair, couch, and a table"
        return left
    head = analysis.head(right)
    opener = analysis.word(left[0])
    if opener in _SINGULAR_OPENERS and (_is_plural(analysis, right) or is_mass(head.lemma)):
        return left
    if analysis.tag(left[0]) == "CD":
        refuse("shared_modifier")
    is_open = _has_opener(analysis, left)
    while left[0] < left[1] and _has_opener(analysis, left):
        left = (left[0] + 1, left[1])
    modified = [any(analysis.tag(i) in _MODIFIERS for i in range(*s)) for s in (left, right)]
    is_compound = is_open and left[1] - left[0] == 1 < right[1] - right[0]
    if modified[0] != modified[1] or (is_compound and not modified[1]):
        refuse("shared_modifier")  # "a red shirt and tie", "a macaroni and broccoli dish"
    is_bare_singular = head.tag == "NN" and right[1] - right[0] == 1 and not is_mass(head.lemma)
    if left[0] == left[1] or (is_bare_singular and _is_plural(analysis, left)):
        refuse("unlike_parts")  # "people stand behind curtains and smile"
    if is_open and is_living(analysis, left) != is_living(analysis, right):
        refuse("unlike_parts")  # "wearing a dress and young man in a tie"
    return left


def _check_behind(analysis: Analysis, left: Range, right: Range) -> None:
    tag, word = analysis.tag(right[1]), analysis.word(right[1])
    is_subject = _opens_caption(analysis, left)
    rest = analysis.tokens[right[1] :]
    if is_subject and any(token.text.lower() in ("it", "them") for token in rest):
        refuse("pronoun")  # "a truck and two cars behind it"
    if tag.startswith("NN") or tag in OPENERS or tag in ("PRP", "POS", "HYPH"):
        refuse("unlike_parts")  # a verb that was taken for a noun: "petting a cat"
    if tag == "CC" or (tag in _FINITE and not (is_subject and word not in ("is", "has", "was"))):
        refuse("unclear_attachment")
    if tag in ("VBG", "VBN") and not (
        is_subject and is_living(analysis, left) == is_living(analysis, right)
    ):
        refuse("unclear_attachment")
    if tag in ("VBN", "VBD") and _has_opener(analysis, right) and word not in _OF_ALL:
        refuse("unclear_attachment")  # "an intersection and a street lined with houses"
    if tag == "VBN" and analysis.tag(right[1] + 1).startswith("NN"):
        refuse("unlike_parts")  # "a bike shaped cutter"
    if tag.startswith("RB") and analysis.tag(right[1] + 1) in _FINITE:
        refuse("unclear_attachment")  # "a baseball game and the catcher just threw the ball"
    if is_living(analysis, right):
        is_of_one = word in _OF_ONE  # "a man and a woman wearing a hat"
        if word == "in":
            phrase = analysis.phrase_from(right[1] + 1)
            is_of_one = phrase is None or analysis.head(phrase).lemma in _CLOTHES | COLOURS
        if is_of_one:
            refuse("unclear_attachment")
    is_bare = not (_has_opener(analysis, left) or _has_opener(analysis, right))
    if is_subject:
        is_alike = is_bare or (
            is_living(analysis, left) == is_living(analysis, right)
            and analysis.head(left).lemma != analysis.head(right).lemma
        )
    else:
        is_them = analysis.tag(right[1] + 1) == "PRP"  # "trees and bushes near them"
        is_alike = is_bare and is_them and _is_bound(analysis, left)
    if tag in ("IN", "TO", "WDT", "WP", *ADJECTIVES) and not (word in PLACES and is_alike):
        refuse("shared_modifier")


def _check_before(analysis: Analysis, left: Range, right: Range) -> None:
    tag, word = analysis.tag(left[0] - 1), analysis.word(left[0] - 1)
    if word == "of":  # its noun has to apply to both sides: "a mixture of A and B"
        holder = analysis.tokens[max(left[0] - 2, 0)]
        holds_both = not holder.tag.startswith("NN") or holder.lemma in _OF_BOTH
        if holder.lemma in _VESSELS:
            holds_both = _is_plural(analysis, left) == _is_plural(analysis, right)
        if not holds_both:
            refuse("unclear_attachment")
    if tag == "," and analysis.tag(left[0] - 2) in ADJECTIVES:
        refuse("shared_modifier")  # "a snowy, icy, empty street and a stoplight"
    if _opens_caption(analysis, left) or tag == ",":
        return
    if tag == "CC" or word in _RELATIVE:
        refuse("unclear_attachment")  # "a bed and a chair and white walls"
    if tag in OPENERS or not (_has_opener(analysis, left) or _has_opener(analysis, right)):
        return  # a shared determiner, or none at all, binds it to the nearest noun
    is_own = _has_opener(analysis, left) or _is_plural(analysis, left)
    is_alike = not tag.startswith("VB") or not is_living(analysis, left)
    if not (is_own and is_alike and _is_bound(analysis, left)) or is_living(analysis, right):
        refuse("unclear_attachment")  # "a man riding a horse and a woman"


def _is_bound(analysis: Analysis, phrase: Range) -> bool:
    start = _without_openers(analysis, phrase[0])
    is_verb = analysis.tag(start - 1).startswith("VB")
    return is_verb or analysis.word(start - 1) in {"between", "of", "with"}


def _without_openers(analysis: Analysis, start: int) -> int:
    while analysis.tag(start - 1) in OPENERS:
        start -= 1
    return start


def _opens_caption(analysis: Analysis, phrase: Range) -> bool:
    """Return True if a phrase opens the caption or ends it: "a group of [men and women]"."""
    start = _without_openers(analysis, phrase[0])
    outer = analysis.phrase_to(start - 1) if analysis.word(start - 1) == "of" else None
    if outer is not None:
        return _opens_caption(analysis, outer)
    return [token.text.lower() for token in analysis.tokens[:start]] in (
        [],
        ["there", "is"],
        ["there", "are"],
    )


def refuse_shared_modifiers(analysis: Analysis, left: Range, right: Range) -> None:
    """Check that no modifier, head or "of" phrase of one side may belong to the other too.

    In "clay and gold vases" some vases are clay, in "a plastic bat and ball" both may be plastic:
    an exchange would take from one side what belongs to it. Form alone decides.
    """
    for side in (left, right):
        core = _core(analysis, side)
        is_one = analysis.word(side[0]) in ("a", "an")
        if is_one and "of" not in analysis.words(side) and _is_plural(analysis, core):
            refuse("unlike_parts")  # "a skateboarder skates and balances"
        if any(analysis.tag(index) in PLURALS for index in range(core[0], core[1] - 1)):
            refuse("unlike_parts")  # "carrots broccoli and rice"
    if analysis.tag(left[0] - 1) in ("VBG", "VBN") and analysis.tag(left[0] - 2) == "IN":
        refuse("shared_modifier")  # "in racing gear and number"
    cores = _core(analysis, left), _core(analysis, right)
    if analysis.tag(right[0]) in OPENERS:
        if set(analysis.words(cores[0])) <= _KINDS and _length(cores[1]) > 1:
            refuse("shared_modifier")
        return
    adds_of = "of" in analysis.words(right) and "of" not in analysis.words(left)
    if adds_of and not is_mass(analysis.head(left).lemma):
        refuse("shared_modifier")  # "plates and pans of food", "lots and lots of suitcases"
    if analysis.word(right[0]).endswith("ing"):
        refuse("unlike_parts")  # "eating pizza and drinking beer", tagged as nouns
    if "POS" in (analysis.tag(index) for index in range(*left)):
        refuse("shared_modifier")  # "a man's hat and coat"
    if not _is_parallel(analysis, left, cores):
        refuse("shared_modifier")


def _is_parallel(analysis: Analysis, left: Range, cores: tuple[Range, Range]) -> bool:
    heads = [analysis.head(core) for core in cores]
    are_plural = [_is_plural(analysis, core) for core in cores]
    modified = [analysis.tag(core[0]) in _MODIFIERS and _length(core) > 1 for core in cores]
    if _length(cores[1]) == 1:
        is_bound = analysis.tag(left[0]) in OPENERS or (
            analysis.tag(left[0] - 1) == "," and not modified[0]
        )
        return _length(cores[0]) == 1 or is_bound
    if heads[0].lemma in COLOURS | _MATERIALS:
        return False  # "a large gold and blue clock"
    if _length(cores[0]) == 1:
        return are_plural[0] and (modified[1] or are_plural[1])
    return modified == [True, True] or (modified == [False, False] and all(are_plural))


def _core(analysis: Analysis, phrase: Range) -> Range:
    start, end = phrase
    while start < end - 1 and analysis.tag(start) in OPENERS:
        start += 1
    words = analysis.words((start, end))
    return (start, start + words.index("of") if "of" in words[1:] else end)


def _length(phrase: Range) -> int:
    return phrase[1] - phrase[0]
