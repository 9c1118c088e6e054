"""Active and passive: "a man riding a horse" and "a horse being ridden by a man".

Only captions that are a subject, a verb of the list, its object and at most a place where all of it
happens, since whatever else follows the object would be left behind. With several subjects one
object may be each one's ("two men holding an umbrella"), and bare nouns may speak of all there are
("a cow eats grass").
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.caption_verbs import CaptionVerb, finite_forms, participles
from eqforge.generators.text.coordination.conjuncts import tag_at, word_at
from eqforge.generators.text.edits import Edit
from eqforge.generators.text.exchange import exchange_phrases
from eqforge.generators.text.hard_negatives.lexicon import closed_classes
from eqforge.generators.text.inflection import inflect_word
from eqforge.generators.text.rewordings.nominals import Nominal, joined_start, nominal_from
from eqforge.generators.text.rewordings.participles import can_do
from eqforge.generators.text.rewordings.places import has_plain_spacing, replacement
from eqforge.generators.text.rewordings.records import Rewording, Rule

_GROUND = (
    "Huddleston and Pullum 2002, The Cambridge Grammar of the English Language, ch. 16: an "
    "active clause and its passive with a by-phrase have the same truth conditions."
)
_LEMMAS = frozenset(
    (
        *("brush", "carry", "catch", "chase", "cut", "drive", "eat", "feed", "fly", "herd"),
        *("hit", "hold", "hug", "kick", "kiss", "lead", "lick", "pet", "photograph", "pull"),
        *("push", "repair", "ride", "sniff", "throw", "toss", "touch", "tow", "use", "walk"),
        *("wash", "watch", "wear"),
    )
)
# "Holding hands", "taking a bite", "cutting corners": objects that belong to the verb or subject.
_BOUND = frozenset(
    (
        *("arm", "bite", "breakfast", "dinner", "finger", "foot", "hair", "hand", "head", "home"),
        *(
            "jump",
            "leg",
            "lunch",
            "meal",
            "mouth",
            "other",
            "phone call",
            "pose",
            "something",
            "tail",
        ),
        *("time", "tooth", "trick", "way"),
    )
)
_STANDING = frozenset(("at", "in", "near", "on"))
_PLACE_GROUPS = frozenset(("ground", "land", "room", "slope or shore", "water", "way"))
_PLACE_NOUNS = frozenset(
    (
        *("area", "city", "court", "enclosure", "farm", "fence", "park", "pasture", "pen"),
        *("restaurant", "stadium", "store", "town", "yard", "zoo"),
    )
)


_Found = tuple[CaptionVerb, str, bool]
_Reader = Callable[[Analysis, Nominal, int], _Found | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Clause:
    """A caption's subject and object, and the verb between them with its auxiliaries.

    Attributes:
      left, right: the noun phrases as they stand.
      verb: the verb.
      be: its form of "be" before the participle, "" for none.
      is_progressive: whether it is "riding" or "being ridden", not "rides" or "ridden".
    """

    left: Nominal
    right: Nominal
    verb: CaptionVerb
    be: str
    is_progressive: bool


def _to_passive(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    clause = _read(analysis, _active)
    if clause is None or not _can_turn(clause, clause.left, clause.right):
        return
    past = _past_participles()[clause.verb.lemma]
    middle = f"being {past} by" if clause.is_progressive else f"{past} by"
    if clause.be:
        middle = f"{clause.right.be} {middle}"
    yield Rewording(rule=rule, edits=_edits(analysis, clause, middle))


def _to_active(rule: str, analysis: Analysis) -> Iterator[Rewording]:
    clause = _read(analysis, _passive)
    if clause is None or not _can_turn(clause, clause.right, clause.left):
        return
    verb, be = clause.verb, clause.right.be
    if clause.is_progressive:
        middle = f"{be} {verb.participle}" if clause.be else verb.participle
    else:
        middle = verb.third if be == "is" else verb.lemma
    yield Rewording(rule=rule, edits=_edits(analysis, clause, middle))


def _edits(analysis: Analysis, clause: _Clause, middle: str) -> tuple[Edit, ...]:
    left, right = ((noun.first, noun.last) for noun in (clause.left, clause.right))
    first, second = exchange_phrases(analysis, left, right)
    return (first, replacement(analysis, left[1], right[0], middle), second)


def _read(analysis: Analysis, verb_between: _Reader) -> _Clause | None:
    """Returns the clause that is all of a caption."""
    left = nominal_from(analysis, 0)
    if left is None or left.is_framed or not _is_clear(analysis, left):
        return None
    for start, _ in analysis.noun_phrases:
        first = joined_start(analysis, start)
        if first <= left.last:
            continue
        found = verb_between(analysis, left, first)
        right = nominal_from(analysis, first) if found is not None else None
        if found is None or right is None or right.is_framed or not _is_clear(analysis, right):
            return None
        if not _ends(analysis, right.last) or not has_plain_spacing(analysis, 0, right.last):
            return None
        verb, be, is_progressive = found
        return _Clause(left=left, right=right, verb=verb, be=be, is_progressive=is_progressive)
    return None


def _active(analysis: Analysis, left: Nominal, right: int) -> _Found | None:
    """Returns the verb of "riding", "is riding" or "rides" between two noun phrases."""
    words = [word_at(analysis, index) for index in range(left.last, right)]
    verb = participles().get(words[-1])
    if verb is not None and words[:-1] in ([], [left.be]):
        return (verb, "".join(words[:-1]), True)
    finite, be = finite_forms().get(" ".join(words), (None, ""))
    return (finite, be, False) if finite is not None and be == left.be else None


def _passive(analysis: Analysis, left: Nominal, right: int) -> _Found | None:
    """Returns the verb of "being ridden by", "is being ridden by" or "is ridden by"."""
    words = [word_at(analysis, index) for index in range(left.last, right)]
    if len(words) < 3 or words[-1] != "by":
        return None
    lemma = next((name for name, past in _past_participles().items() if past == words[-2]), None)
    verb = participles().get(inflect_word(lemma, "VBG") or "") if lemma is not None else None
    if verb is None or words[:-2] not in (["being"], [left.be, "being"], [left.be]):
        return None
    return (verb, left.be if words[0] == left.be else "", "being" in words)


@functools.cache
def _past_participles() -> Mapping[str, str]:
    """Returns the past participles of the verbs of the list."""
    return {lemma: inflect_word(lemma, "VBN") or f"{lemma}ed" for lemma in sorted(_LEMMAS)}


def _can_turn(clause: _Clause, subject: Nominal, thing: Nominal) -> bool:
    """Tells whether what does something and what it is done to can change places."""
    verb = clause.verb
    is_simple = bool(clause.be) and not clause.is_progressive
    if verb.lemma not in _LEMMAS or not can_do(verb, subject):
        return False
    if thing.head.lemma in _BOUND or (is_simple and (thing.is_bare or subject.is_bare)):
        return False
    if not clause.be and thing.is_indefinite is not subject.is_indefinite:
        return False
    return subject.be == "is" or (thing.is_bare and thing.be == "are")


def _is_clear(analysis: Analysis, noun: Nominal) -> bool:
    tags = {token.tag for token in analysis.tokens[noun.first : noun.last]}
    if any(word_at(analysis, index) == "other" for index in range(noun.first, noun.last)):
        return False
    return noun.is_determined and noun.relative is not None and not tags & {"PRP$", "PRP"}


def _ends(analysis: Analysis, index: int) -> bool:
    """Tells whether a caption ends at a token, or behind a place that stands there."""
    if word_at(analysis, index) in _STANDING:
        place = nominal_from(analysis, index + 1)
        if place is None or tag_at(analysis, place.first) == "PRP$":
            return False
        groups = set(closed_classes("object").groups.get(place.head.lemma, ()))
        if not groups & _PLACE_GROUPS and place.head.lemma not in _PLACE_NOUNS:
            return False
        index = place.last
    return all(token.tag == "." for token in analysis.tokens[index:])


VOICE: Final = tuple(
    Rule(name=name, reverse=reverse, ground=_GROUND, find=functools.partial(find, name))
    for name, reverse, find in (
        ("active_to_passive", "passive_to_active", _to_passive),
        ("passive_to_active", "active_to_passive", _to_active),
    )
)
