"""Participles that describe the noun before them: "riding a wave", "topped with food"."""

from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_verbs import CaptionVerb, participles
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.rewordings.nominals import Nominal
from eqforge.generators.text.words import read_table, word_set

_STATES: Final = {
    word: frozenset(row["followed_by"].split(","))
    for row in read_table("states.tsv")
    for word in row["participles"].split(",")
}
"""Past participles of states, with the words that follow them."""
CONTENTS = word_set("participles.contents")
"""States that are said of the noun right before them."""
_OBJECTS = ("DT", "PRP$", "CD", "JJ", "JJR", "JJS", "NN", "NNS", "NNP", "NNPS", "PRP", "VBG", "VBN")
_ADVERBS = word_set("participles.adverbs")
_DIRECTIONS = word_set("participles.directions")
_MOVING = frozenset(("craft", "land vehicle", "two-wheeler"))
_MOVERS = word_set("participles.movers")
_FIXED = word_set("participles.fixed")
_DOUBTFUL = frozenset((".", "POS", "HYPH", "SYM", "VBZ", "VBP", "VBD", "MD"))


def may_describe(word: str) -> bool:
    """Tells whether a word may be a participle that describes a noun."""
    return word in _STATES or word == "being" or word in participles()


def active_verb(analysis: Analysis, index: int) -> CaptionVerb | None:
    """Returns the verb of a present participle of what a picture shows, None for other words.

    Args:
      index: of the participle; what follows it has to suit the verb.
    """
    verb = participles().get(analysis.word(index))
    if verb is None or analysis.tag(index) != "VBG":
        return None
    return verb if fits_behind(analysis, index, verb) else None


def fits_behind(analysis: Analysis, index: int, verb: CaptionVerb) -> bool:
    """Tells whether what follows a form of a verb suits it: "sitting on", not "sitting area"."""
    word, tag = analysis.word(index + 1), analysis.tag(index + 1)
    if word in ("not", "n't", "n\u2019t"):
        return False
    if verb.lemma == "look":
        return word in _DIRECTIONS
    has_object = tag in _OBJECTS and word not in _ADVERBS
    if verb.takes == "none":
        return not has_object and tag not in ("VBZ", "VBP", "VBD", "MD", "POS", "HYPH")
    if verb.takes == "object" and not has_object:
        return tag in ("IN", "RP", "RB") and word not in ("by", "as", "while", "of", "that")
    return tag not in _DOUBTFUL or (tag == "." and verb.takes == "both")


def is_state(analysis: Analysis, index: int) -> bool:
    """Tells whether a past participle names a state: "topped with", "parked on"."""
    return analysis.word(index + 1) in _STATES.get(analysis.word(index), ())


def describes(analysis: Analysis, index: int, noun: Nominal) -> bool:
    """Tells whether the word right behind a noun phrase is a participle that describes it.

    Args:
      noun: the noun phrase, which ends somewhere before it.
    """
    word = analysis.word(index)
    if word == "being":
        return analysis.tag(index + 1) == "VBN" and analysis.tag(index + 2) in (
            "IN",
            ".",
            "",
        )
    if word == "dressed":
        return is_state(analysis, index) and noun.is_living
    if is_state(analysis, index):
        return word not in CONTENTS or noun.kind == "thing" or word in ("covered", "decorated")
    verb = active_verb(analysis, index)
    return verb is not None and (verb.subject == "posture" or can_do(verb, noun))


def can_do(verb: CaptionVerb, noun: Nominal) -> bool:
    """Tells whether a verb says of what a noun phrase names what it does at the moment."""
    if noun.is_living or verb.subject == "any":
        return True
    groups = set(closed_classes("object").groups.get(noun.head.lemma, ()))
    is_mover = bool(groups & _MOVING) or noun.head.lemma in _MOVERS
    if verb.subject == "mover":
        return is_mover
    return verb.subject == "posture" and (is_mover or bool(groups - _FIXED))


def has_second_participle(analysis: Analysis, index: int) -> bool:
    """Tells whether a participle with an object is followed by another, which may be the object's.

    "A man holding a cup sitting on a bench" becomes odd with "is holding" or "who is holding". What
    is joined by "and" or "while", or can be said of the object alone ("a plate filled with food"),
    does not count, nor does what follows a verb without an object: "sitting on a bench reading".
    """
    verb = participles().get(analysis.word(index))
    if verb is not None and (verb.takes == "none" or analysis.tag(index + 1) in ("IN", "RP")):
        return False
    others = ("VBG",) if verb is not None else ("VBG", "VBN")
    return any(
        analysis.tag(i) in others
        and analysis.tag(i - 1).startswith(("NN", "PRP"))
        and (analysis.word(i) in participles() or not analysis.tag(i + 1).startswith("NN"))
        for i in range(index + 1, len(analysis.tokens))
    )
