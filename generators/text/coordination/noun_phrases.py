"""The sides of an "and" between noun phrases.

What a modifier or a preposition belongs to is told by form alone: by which side has a determiner,
by what stands before the left and behind the right side, and by whether both name living beings.
Where two readings are left, the caption is refused.
"""

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import (
    ADJECTIVES,
    OPENERS,
    PLACES,
    Conjuncts,
    Range,
    head_of,
    is_living,
    is_mass,
    refuse,
    refuse_pronouns,
    tag_at,
    word_at,
)

_FINITE = ("VBD", "VBP", "VBZ", "MD")
_MODIFIERS = (*ADJECTIVES, "VBG", "VBN")
_SINGULAR_OPENERS = frozenset(("a", "an", "another", "each", "every", "that", "this"))
_BINDING_PREPOSITIONS = frozenset(("between", "of", "with"))


def join_noun_phrases(analysis: Analysis, conjunction: int) -> Conjuncts:
    """Returns the noun phrases around an "and".

    Args:
      analysis: the caption's analysis.
      conjunction: index of the "and".

    Raises:
      CannotTell: there is no noun phrase on a side, or it is open where one begins or ends.
    """
    right = _phrase_from(analysis, conjunction + 1)
    left = _phrase_to(analysis, conjunction - (tag_at(analysis, conjunction - 1) == ","))
    if left is None or right is None:
        refuse("unlike_parts")
    right = _with_of_phrase(analysis, right)
    left = _parallel_left(analysis, left, right)
    refuse_pronouns(analysis, left, right)
    left = _without_shared_opener(analysis, left, right)
    _check_behind(analysis, left, right)
    _check_before(analysis, left, right)
    return Conjuncts(left=left, right=right, level="noun_phrase")


def _phrase_from(analysis: Analysis, start: int) -> Range | None:
    return next((phrase for phrase in analysis.noun_phrases if phrase[0] == start), None)


def _phrase_to(analysis: Analysis, end: int) -> Range | None:
    return next((phrase for phrase in analysis.noun_phrases if phrase[1] == end), None)


def _with_of_phrase(analysis: Analysis, phrase: Range) -> Range:
    """Extends a phrase by the "of" phrases behind it: "a plate of rice"."""
    while word_at(analysis, phrase[1]) == "of":
        following = _phrase_from(analysis, phrase[1] + 1)
        if following is None:
            refuse("unclear_attachment")
        phrase = (phrase[0], following[1])
    return phrase


def _parallel_left(analysis: Analysis, left: Range, right: Range) -> Range:
    """Extends the left side over "of" to the phrase that has a determiner as the right side has."""
    while not _has_opener(analysis, left) and _has_opener(analysis, right):
        outer = _phrase_to(analysis, left[0] - 1)
        if word_at(analysis, left[0] - 1) != "of" or outer is None:
            break
        left = (outer[0], left[1])
    return left


def _has_opener(analysis: Analysis, phrase: Range) -> bool:
    return tag_at(analysis, phrase[0]) in OPENERS


def _is_plural(analysis: Analysis, phrase: Range) -> bool:
    return head_of(analysis, phrase).tag in ("NNS", "NNPS")


def _without_shared_opener(analysis: Analysis, left: Range, right: Range) -> Range:
    """Takes off the left side a determiner that opens both: "a knife and fork".

    A plural or a noun like "rice" has no use for the "a" of the left side, and leaves it there.

    Raises:
      CannotTell: a number or an adjective may belong to one side or to both, or the right side may
        be no noun.
    """
    if _has_opener(analysis, right):
        return left
    head = head_of(analysis, right)
    opener = word_at(analysis, left[0])
    if opener in _SINGULAR_OPENERS and (_is_plural(analysis, right) or is_mass(head)):
        return left
    if tag_at(analysis, left[0]) == "CD":
        refuse("shared_modifier")
    is_open = _has_opener(analysis, left)
    while left[0] < left[1] and _has_opener(analysis, left):
        left = (left[0] + 1, left[1])
    modified = [any(tag_at(analysis, i) in _MODIFIERS for i in range(*s)) for s in (left, right)]
    is_compound = is_open and left[1] - left[0] == 1 < right[1] - right[0]
    if modified[0] != modified[1] or (is_compound and not modified[1]):
        refuse("shared_modifier")  # "a red shirt and tie", "a macaroni and broccoli dish"
    is_bare_singular = head.tag == "NN" and right[1] - right[0] == 1 and not is_mass(head)
    if left[0] == left[1] or (is_bare_singular and _is_plural(analysis, left)):
        refuse("unlike_parts")  # "people stand behind curtains and smile"
    return left


def _check_behind(analysis: Analysis, left: Range, right: Range) -> None:
    """Makes sure that what follows the right side belongs to both, or to neither.

    Raises:
      CannotTell: it may belong to the right side alone.
    """
    tag, word = tag_at(analysis, right[1]), word_at(analysis, right[1])
    is_subject = _opens_caption(analysis, left)
    if tag.startswith("NN") or tag in OPENERS or tag in ("PRP", "POS", "HYPH"):
        refuse("unlike_parts")  # a verb that was taken for a noun: "petting a cat"
    if tag == "CC" or (tag in _FINITE and not (is_subject and word not in ("is", "has", "was"))):
        refuse("unclear_attachment")
    if tag in ("VBG", "VBN") and not (
        is_subject and is_living(analysis, left) == is_living(analysis, right)
    ):
        refuse("unclear_attachment")
    is_bare = not (_has_opener(analysis, left) or _has_opener(analysis, right))
    if tag in ("IN", "TO", "WDT", "WP", *ADJECTIVES) and not (
        word in PLACES and (is_subject or is_bare)
    ):
        refuse("shared_modifier")


def _check_before(analysis: Analysis, left: Range, right: Range) -> None:
    """Makes sure that the right side is joined to the left one, and to nothing before it.

    Raises:
      CannotTell: it may be joined to an earlier noun.
    """
    tag, word = tag_at(analysis, left[0] - 1), word_at(analysis, left[0] - 1)
    if _opens_caption(analysis, left) or tag in (",", "CC"):
        return
    if tag in OPENERS or not _has_opener(analysis, right):
        return  # a shared determiner, or none on the right, binds it to the nearest noun
    is_own = _has_opener(analysis, left) or _is_plural(analysis, left)
    is_bound = tag.startswith("VB") or word in _BINDING_PREPOSITIONS
    if not (is_own and is_bound) or is_living(analysis, right):
        refuse("unclear_attachment")  # "a man riding a horse and a woman"


def _opens_caption(analysis: Analysis, phrase: Range) -> bool:
    """Tells whether a phrase is the caption's subject, or ends it: "a group of [men and women]"."""
    start = phrase[0]
    while tag_at(analysis, start - 1) in OPENERS:
        start -= 1
    outer = _phrase_to(analysis, start - 1) if word_at(analysis, start - 1) == "of" else None
    if outer is not None:
        return _opens_caption(analysis, outer)
    return [token.text.lower() for token in analysis.tokens[:start]] in (
        [],
        ["there", "is"],
        ["there", "are"],
    )
