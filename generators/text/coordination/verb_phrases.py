"""The sides of an "and" between verb phrases, adjectives and whole clauses."""

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.conjuncts import (
    ADJECTIVES,
    COLOURS,
    OPENERS,
    PLACES,
    PRONOUNS,
    Conjuncts,
    Range,
    is_living,
    refuse,
    refuse_pronouns,
    tag_at,
    word_at,
)

_VERBS = ("VBG", "VBN", "VBZ", "VBP", "VBD")
_ENDS = (".", ",", ":", "CC", "WDT", "WP", "WRB")
_SUBORDINATING = frozenset(("as", "because", "that", "then", "until", "when", "while"))
_SHADES = frozenset(("bright", "dark", "deep", "light", "pale", "very"))
_COMPLEMENTS = frozenset(("about", "at", "for", "from", "of", "than", "to", "with"))
# Verbs of posture or activity that take no object.
_POSTURES = frozenset(
    (
        *("bend", "crouch", "jump", "kneel", "laugh", "lay", "lean", "lie", "lounge", "pose"),
        *("relax", "rest", "run", "sit", "sleep", "smile", "stand", "wait", "walk"),
    )
)
_OBJECTS = (*OPENERS, *ADJECTIVES, "NN", "NNS", "NNP", "NNPS")


def join_verb_phrases(analysis: Analysis, conjunction: int) -> Conjuncts:
    """Returns the verb phrases around an "and" that begin with verbs of the same form.

    In "standing and lying on a beach" only the verbs are joined: the place applies to both. What
    follows other verbs may be the object or the place of both ("riding and washing elephants").

    Args:
      analysis: the caption's analysis.
      conjunction: index of the "and"; a verb follows it.

    Raises:
      CannotTell: no verb of that form stands before it, or more than one, a pronoun of one side
        refers to the other, or both verbs may share an object.
    """
    start, end = conjunction, conjunction - (tag_at(analysis, conjunction - 1) == ",")
    while start > 0 and not _is_border(analysis, start - 1):
        start -= 1
    tag = tag_at(analysis, conjunction + 1)
    verbs = [i for i in range(start, end) if tag_at(analysis, i) == tag]
    if len(verbs) != 1:
        refuse("unclear_attachment" if verbs else "unlike_parts")
    left, right = (verbs[0], end), (conjunction + 1, _clause_end(analysis, conjunction + 1))
    if (
        tag_at(analysis, right[1]) in (",", "CC", "WDT", "WP")
        or word_at(analysis, right[1]) == "that"
    ):
        refuse("unclear_attachment")  # "sits and has rice, beans and a drink"
    if tag_at(analysis, end - 1) in ("IN", "TO"):
        refuse("shared_modifier")  # "standing next to and holding a horse"
    if tag in ("VBN", "VBD") and tag_at(analysis, conjunction + 2).startswith("NN"):
        refuse("unlike_parts")  # "topped with ham and sliced tomatoes"
    if right[1] - right[0] == 1 and tag == "VBZ" and tag_at(analysis, end - 1) == "NNS":
        refuse("unlike_parts")  # "stands in front of trees and leaves"
    if left[1] - left[0] == 1 < right[1] - right[0]:
        right = _right_of_one_verb(analysis, left[0], right)
    refuse_pronouns(analysis, left, right)
    return Conjuncts(left=left, right=right, level="verb_phrase")


def _right_of_one_verb(analysis: Analysis, verb: int, right: Range) -> Range:
    """Returns the right side where the left is a lone verb: with its object, without a place.

    Raises:
      CannotTell: what follows may belong to both verbs.
    """
    lemmas = {analysis.tokens[index].lemma for index in (verb, right[0])}
    if word_at(analysis, right[0] + 1) in PLACES and lemmas <= _POSTURES:
        return (right[0], right[0] + 1)
    has_object = tag_at(analysis, right[0] + 1) in _OBJECTS
    if analysis.tokens[verb].lemma not in _POSTURES or not has_object:
        refuse("shared_modifier")
    return right


def join_adjectives(analysis: Analysis, conjunction: int) -> Conjuncts:
    """Returns the adjectives around an "and", with words that modify them ("light blue").

    Args:
      analysis: the caption's analysis.
      conjunction: index of the "and"; an adjective stands on both sides.

    Raises:
      CannotTell: a further adjective, or what follows, may belong to one or to both.
    """
    start = conjunction - 1
    while word_at(analysis, start - 1) in _SHADES or tag_at(analysis, start - 1) == "RB":
        start -= 1
    if word_at(analysis, start) == "very" or tag_at(analysis, start) == "RB":
        refuse("shared_modifier")  # "a very old and rusty car"
    end = conjunction + 2
    while word_at(analysis, end - 1) in _SHADES and tag_at(analysis, end) in ADJECTIVES:
        end += 1
    are_colours = {word_at(analysis, conjunction - 1), word_at(analysis, end - 1)} <= COLOURS
    if tag_at(analysis, start - 1) in (*ADJECTIVES, "CC") and not are_colours:
        refuse("shared_modifier")
    if tag_at(analysis, end) in ADJECTIVES and not (
        are_colours and word_at(analysis, end) not in COLOURS
    ):
        refuse("shared_modifier")  # "a black and large white dog"
    if word_at(analysis, end) in _COMPLEMENTS:
        refuse("shared_modifier")  # "open and full of food"
    return Conjuncts(left=(start, conjunction), right=(conjunction + 1, end), level="adjective")


def join_clauses(analysis: Analysis, conjunction: int) -> Conjuncts | None:
    """Returns the two halves of a caption of two parallel clauses: "a man sits and a dog runs".

    Each half is a noun phrase that names a living being, a verb of the same form right after it,
    and no other verb. Returns None for any other caption.

    Args:
      analysis: the caption's analysis.
      conjunction: index of the "and".
    """
    ends = dict(analysis.noun_phrases)
    if 0 not in ends or conjunction + 1 not in ends:
        return None
    last = _clause_end(analysis, conjunction + 1)
    halves = (0, conjunction), (conjunction + 1, last)
    subjects = [(half[0], ends[half[0]]) for half in halves]
    verb = tag_at(analysis, subjects[0][1])
    for half, subject in zip(halves, subjects, strict=True):
        tags = [tag_at(analysis, i) for i in range(*half)]
        if [tag for tag in tags if tag in _VERBS] != [verb] or not is_living(analysis, subject):
            return None
        if tag_at(analysis, subject[1]) != verb or set(tags) & {*PRONOUNS, ",", "CC"}:
            return None
    opened = {tag_at(analysis, half[0]) in OPENERS for half in halves}
    is_whole = all(tag_at(analysis, i) == "." for i in range(last, len(analysis.tokens)))
    if len(opened) > 1 or not is_whole:
        return None
    return Conjuncts(left=halves[0], right=halves[1], level="clause")


def _clause_end(analysis: Analysis, index: int) -> int:
    while index < len(analysis.tokens) and not _is_border(analysis, index):
        index += 1
    return index


def _is_border(analysis: Analysis, index: int) -> bool:
    return tag_at(analysis, index) in _ENDS or word_at(analysis, index) in _SUBORDINATING
