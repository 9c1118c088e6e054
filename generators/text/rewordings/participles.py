"""Participles that describe the noun before them: "riding a wave", "topped with food"."""

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_verbs import CaptionVerb, participles
from eqforge.generators.text.coordination.conjuncts import tag_at, word_at
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.rewordings.nominals import Nominal

_PLACES = frozenset(
    (
        *("above", "against", "along", "alongside", "around", "at", "atop", "behind", "beside"),
        *("between", "by", "in", "inside", "near", "next", "on", "outside", "side", "together"),
        *("under", "underneath", "upon"),
    )
)
_STATES: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            *("arranged", "crouched", "displayed", "docked", "gathered", "grouped", "huddled"),
            *("located", "parked", "perched", "placed", "positioned", "posted"),
            *("seated", "stacked", "stationed", "tied"),
        ),
        _PLACES,
    ),
    "adorned": frozenset(("with",)),
    "anchored": frozenset(("in", "to")),
    "attached": frozenset(("to",)),
    "buried": frozenset(("in", "under")),
    "bundled": frozenset(("up",)),
    "chained": frozenset(("to",)),
    "coated": frozenset(("in", "with")),
    "covered": frozenset(("by", "in", "with")),
    "crowded": frozenset(("with",)),
    "curled": frozenset(("up",)),
    "decorated": frozenset(("in", "with")),
    "draped": frozenset(("in", "over", "with")),
    "dressed": frozenset(("in",)),
    "equipped": frozenset(("with",)),
    "filled": frozenset(("with",)),
    "garnished": frozenset(("with",)),
    "hitched": frozenset(("to",)),
    "hooked": frozenset(("to", "up")),
    "leashed": frozenset(("to",)),
    "lined": frozenset(("with", "up")),
    "loaded": frozenset(("with",)),
    "locked": frozenset(("to",)),
    "made": frozenset(("from", "of", "out")),
    "mounted": _PLACES | {"to"},
    "packed": frozenset(("with",)),
    "painted": frozenset(("in", "on", "with")),
    "piled": frozenset(("on", "with")),
    "plugged": frozenset(("into",)),
    "propped": frozenset(("against", "up")),
    "reflected": frozenset(("in",)),
    "served": frozenset(("in", "on", "with")),
    "shaped": frozenset(("like",)),
    "stocked": frozenset(("with",)),
    "stopped": frozenset(("at", "in", "on")),
    "strewn": frozenset(("about", "across", "on")),
    "stuck": frozenset(("in", "on", "to", "under")),
    "stuffed": frozenset(("with",)),
    "submerged": frozenset(("in",)),
    "surrounded": frozenset(("by",)),
    "suspended": frozenset(("above", "from", "over")),
    "topped": frozenset(("with",)),
    "wrapped": frozenset(("in",)),
}
"""Past participles of states, with the words that follow them."""
CONTENTS = frozenset(
    (
        *("adorned", "coated", "covered", "crowded", "decorated", "draped", "filled"),
        *(
            "garnished",
            "lined",
            "loaded",
            "made",
            "packed",
            "shaped",
            "stocked",
            "stuffed",
            "topped",
        ),
    )
)
"""States that are said of the noun right before them."""
_OBJECTS = ("DT", "PRP$", "CD", "JJ", "JJR", "JJS", "NN", "NNS", "NNP", "NNPS", "PRP", "VBG", "VBN")
_ADVERBS = frozenset(
    (
        *("alone", "close", "down", "high", "low", "next", "side", "still", "together", "up"),
        *("upright", "upside"),
    )
)
_DIRECTIONS = frozenset(
    (
        *("around", "at", "away", "back", "down", "for", "in", "into", "off", "on", "out", "over"),
        *("through", "toward", "towards", "up"),
    )
)
_MOVING = frozenset(("craft", "land vehicle", "two-wheeler"))
_MOVERS = frozenset(
    (
        *("aircraft", "airliner", "balloon", "biplane", "blimp", "cab", "canoe", "carriage"),
        *("cart", "cloud", "ferry", "jetliner", "kayak", "kite", "locomotive", "motorboat"),
        *("raft", "sailboat", "taxi", "traffic", "tram", "trolley", "vehicle", "wagon"),
    )
)
_FIXED = frozenset(
    (
        *("bathroom fixture", "building", "ground", "land", "opening", "plant", "room"),
        *("slope or shore", "water", "way"),
    )
)
_DOUBTFUL = frozenset((".", "POS", "HYPH", "SYM", "VBZ", "VBP", "VBD", "MD"))


def may_describe(word: str) -> bool:
    """Tells whether a word may be a participle that describes a noun."""
    return word in _STATES or word == "being" or word in participles()


def active_verb(analysis: Analysis, index: int) -> CaptionVerb | None:
    """Returns the verb of a present participle of what a picture shows, None for other words.

    Args:
      analysis: the caption's analysis.
      index: of the participle; what follows it has to suit the verb.
    """
    verb = participles().get(word_at(analysis, index))
    if verb is None or tag_at(analysis, index) != "VBG":
        return None
    return verb if fits_behind(analysis, index, verb) else None


def fits_behind(analysis: Analysis, index: int, verb: CaptionVerb) -> bool:
    """Tells whether what follows a form of a verb suits it: "sitting on", not "sitting area".

    Args:
      analysis: the caption's analysis.
      index: of the form.
      verb: the verb.
    """
    word, tag = word_at(analysis, index + 1), tag_at(analysis, index + 1)
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
    return word_at(analysis, index + 1) in _STATES.get(word_at(analysis, index), ())


def describes(analysis: Analysis, index: int, noun: Nominal) -> bool:
    """Tells whether the word right behind a noun phrase is a participle that describes it.

    Args:
      analysis: the caption's analysis.
      index: of the word.
      noun: the noun phrase, which ends somewhere before it.
    """
    word = word_at(analysis, index)
    if word == "being":
        return tag_at(analysis, index + 1) == "VBN" and tag_at(analysis, index + 2) in (
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
    """Tells whether a verb says of what a noun phrase names what it does at the moment.

    Args:
      verb: the verb.
      noun: its subject.
    """
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

    Args:
      analysis: the caption's analysis.
      index: of the first participle.
    """
    verb = participles().get(word_at(analysis, index))
    if verb is not None and (verb.takes == "none" or tag_at(analysis, index + 1) in ("IN", "RP")):
        return False
    others = ("VBG",) if verb is not None else ("VBG", "VBN")
    return any(
        tag_at(analysis, i) in others
        and tag_at(analysis, i - 1).startswith(("NN", "PRP"))
        and (word_at(analysis, i) in participles() or not tag_at(analysis, i + 1).startswith("NN"))
        for i in range(index + 1, len(analysis.tokens))
    )
