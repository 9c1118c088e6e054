"""Find the noun phrase that a caption introduces, and the participles that describe it."""

from collections.abc import Collection
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_words import CaptionVerb, finite_forms, participles
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.rewordings.clauses import (
    DRESSED,
    MADE,
    STATES,
    finite_verbs,
    is_one_sentence,
    is_state,
)
from eqforge.generators.text.rewordings.nominals import Nominal, names_living, nominal_from
from eqforge.generators.text.words import word_set

# Names of the image itself, or of a time: "a view of a street", "a day at the beach".
_NO_THINGS = word_set("introduced.no_things")
_PREPOSITIONS = word_set("introduced.prepositions")
PLACES: Final = _PREPOSITIONS - {
    *("close", "for", "from", "full", "into", "next", "that", "which", "who", "with", "without")
}
"""Prepositions that name a place on their own."""

_ADVERBS = frozenset(("high", "out", "up"))
_NO_PARTICIPLES = frozenset(("according", "concerning", "during", "following", "including"))
_MANY = frozenset(("bunch", "couple", "lot", "number", "pair", "variety"))


def is_single_phrase(
    analysis: Analysis, start: int, articles: Collection[str] = ("a", "an")
) -> bool:
    last = dict(analysis.noun_phrases).get(start, start)
    tags = [analysis.tag(index) for index in range(start, last)]
    if analysis.word(start) not in articles or len(tags) < 2:
        return False
    if tags[-1] not in ("NN", "JJ") or any(tag.startswith(("NNS", "NNPS")) for tag in tags):
        return False
    return not finite_verbs(analysis, start) and is_one_sentence(analysis)


def single_nominal(analysis: Analysis, start: int) -> Nominal | None:
    """Return the noun phrase with "a" that a caption consists of, with all "of" phrases and joins.

    "A statue of a man reading a book", "a herd of zebra", "a cat and a mouse on the ground": it is
    there, whichever of its parts the rest describes.
    """
    if not is_single_phrase(analysis, start):
        return None
    last = dict(analysis.noun_phrases)[start]
    head = analysis.tokens[last - 1]
    if head.tag != "NN" or head.lemma in (*_NO_THINGS, *_MANY):
        return None
    end = next((e for s, e in analysis.noun_phrases if s == last + 1), last)
    second = analysis.tokens[end - 1]
    joined = analysis.word(last)
    rest = analysis.words((end, len(analysis.tokens)))
    if joined == "and" or (joined == "," and "and" in rest):
        opener = analysis.word(last + 1)
        is_one = opener in ("a", "an", "her", "his", "its")
        is_one = is_one or analysis.tag(last + 1) in ("NN", "JJ")
        if end == last or second.tag != "NN" or not is_one or "are" in rest:
            return None
    elif joined != "of" or end == last or _names_no_thing(analysis, last, end):
        return None
    if not (_is_followed(analysis, end) or analysis.word(end) in (",", "and")):
        return None
    return Nominal(first=start, last=end, head=head)


def whole_nominal(analysis: Analysis, start: int) -> Nominal | None:
    noun = new_nominal(analysis, start)
    if noun is None or not _is_modified(analysis, noun) or finite_verbs(analysis, noun.last):
        return None
    return noun if is_one_sentence(analysis) else None


def new_nominal(analysis: Analysis, start: int) -> Nominal | None:
    if analysis.tag(start).startswith("NNP"):
        return None
    noun = nominal_from(analysis, start)
    if noun is None or noun.is_framed or not (noun.is_indefinite and noun.is_determined):
        return None
    if analysis.word(start) in ("one", "1") or _names_no_thing(analysis, start, noun.last):
        return None
    return noun


def is_active(analysis: Analysis, index: int) -> bool:
    """Return True for any present participle: "leaking water", not "going to leak"."""
    word, behind = analysis.word(index), analysis.tag(index + 1)
    if analysis.tag(index) != "VBG" or word in _NO_PARTICIPLES:
        return False
    return behind in ("DT", "PRP$", "CD", "NN", "NNS", "IN", "TO", "JJ", "RB", "RP")


def _is_followed(analysis: Analysis, index: int) -> bool:
    word, tag = analysis.word(index), analysis.tag(index)
    for here in range(index, len(analysis.tokens)):
        is_form = analysis.tag(here) == "NNS" and analysis.word(here) in finite_forms()
        if is_form and analysis.tag(here - 1) in ("CD", "NN", "NNS", "NNP"):
            return False  # a verb may be taken for a noun: "a watch set to 12:25 sits"
    if word in _PREPOSITIONS or tag in ("", ".") or is_active(analysis, index):
        return True
    if tag != "VBN" or analysis.tag(index + 1) not in ("IN", "TO", "RP", ".", ""):
        return False
    # A past participle must not be a verb in the past: "a couple cut into a cake".
    noun = analysis.tokens[index - 1]
    is_thing = not names_living(noun) and noun.lemma not in _MANY
    return word in (MADE | DRESSED if is_thing else DRESSED)


def _names_no_thing(analysis: Analysis, first: int, last: int) -> bool:
    return any(token.lemma in _NO_THINGS for token in analysis.tokens[first:last])


def _is_modified(analysis: Analysis, noun: Nominal) -> bool:
    word = analysis.word(noun.last)
    if word == "and":
        other = nominal_from(analysis, noun.last + 1)
        return noun.there == "are" and other is not None and other.is_determined
    if _is_followed(analysis, noun.last):
        return True
    if [word, analysis.tag(noun.last + 1)] == ["being", "VBN"]:
        return True
    if word in _ADVERBS and analysis.word(noun.last + 1) in PLACES:
        return True
    if word in ("about", "ready") and analysis.word(noun.last + 1) == "to":
        return True
    return describes(analysis, noun.last, noun) or active_verb(analysis, noun.last) is not None


CONTENTS = word_set("participles.contents")
"""States of the noun right before them."""
_OBJECTS = ("DT", "PRP$", "CD", "JJ", "JJR", "JJS", "NN", "NNS", "NNP", "NNPS", "PRP", "VBG", "VBN")
_ADVERBS = word_set("participles.adverbs")
_DIRECTIONS = word_set("participles.directions")
_MOVERS = word_set("participles.movers")
_FIXED = word_set("participles.fixed")
_DOUBTFUL = frozenset((".", "POS", "HYPH", "SYM", "VBZ", "VBP", "VBD", "MD"))


def may_describe(word: str) -> bool:
    return word in STATES or word == "being" or word in participles()


def active_verb(analysis: Analysis, index: int) -> CaptionVerb | None:
    verb = participles().get(analysis.word(index))
    if verb is None or analysis.tag(index) != "VBG":
        return None
    return verb if fits_behind(analysis, index, verb) else None


def fits_behind(analysis: Analysis, index: int, verb: CaptionVerb) -> bool:
    """Return True if the next words suit a form of a verb: "sitting on", not "sitting area"."""
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


def describes(analysis: Analysis, index: int, noun: Nominal) -> bool:
    word = analysis.word(index)
    if word == "being":
        return analysis.tag(index + 1) == "VBN" and analysis.tag(index + 2) in ("IN", ".", "")
    if word == "dressed":
        return is_state(analysis, index) and noun.is_living
    if is_state(analysis, index):
        return word not in CONTENTS or noun.kind == "thing" or word in ("covered", "decorated")
    verb = active_verb(analysis, index)
    return verb is not None and (verb.subject == "posture" or can_do(verb, noun))


def can_do(verb: CaptionVerb, noun: Nominal) -> bool:
    if noun.is_living or verb.subject == "any":
        return True
    groups = set(closed_classes("object").groups.get(noun.head.lemma, ()))
    is_mover = bool(groups & {"craft", "land vehicle", "two-wheeler"}) or noun.head.lemma in _MOVERS
    if verb.subject == "mover":
        return is_mover
    return verb.subject == "posture" and (is_mover or bool(groups - _FIXED))


def has_second_participle(analysis: Analysis, index: int) -> bool:
    """Return True if a participle is followed by another, which may describe its object.

    "A man holding a cup sitting on a bench" becomes odd with "is holding" or "who is holding". A
    second participle does not count if "and" or "while" joins it, if it can only describe the
    object ("a plate filled with food"), or after a verb without an object: "sitting on a bench
    reading".
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
