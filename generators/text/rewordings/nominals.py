"""Parse noun phrases with their "of" phrases, and agreement: "a group of people who are".

If number or head are ambiguous, or the tags cannot be right, nothing is returned.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from eqforge.generators.text.analysis import Analysis, Token
from eqforge.generators.text.coordination.conjuncts import is_mass, listed
from eqforge.generators.text.words import word_set

Kind = Literal["person", "animal", "thing"]
Be = Literal["is", "are"]

_PLURAL_TAGS = ("NNS", "NNPS")
_PLURALS = frozenset(("cattle", "people", "police"))
_INVARIANT = frozenset(("bison", "buffalo", "deer", "elk", "fish", "moose", "sheep"))
_ONE = frozenset(("a", "an", "another", "each", "every", "one", "that", "this"))
_SEVERAL = word_set("nominals.several")
_INDEFINITE = word_set("nominals.indefinite")
# Compared with something named before, or with everything.
_NOT_NEW = word_set("nominals.not_new")
# May name people or animals, or one or many of them.
_UNCLEAR = word_set("nominals.unclear")
_FRAMES = word_set("nominals.frames")
_DEPICTIONS = word_set("nominals.depictions")
_GROUPS = word_set("nominals.groups")
_AMOUNTS = frozenset(("couple", "lot", "lots", "number"))
_HOLDERS = word_set("nominals.holders")


@dataclass(frozen=True, kw_only=True, slots=True)
class Nominal:
    """A noun phrase with its "of" phrases; by default a new thing that agrees with "is".

    Attributes:
      head: the noun that the rest describes: "people" in "a picture of a group of people".
      kind: what the head names; None for a living being that may be either.
      be: the form of "be" after the phrase as a subject.
      relative: the form in a clause with "who" or "that" after it; None if both are usual.
      there: the form after "there".
      is_determined: whether it needs no article: not "man".
      is_bare: whether it is a plural without a determiner: "men".
      is_indefinite: whether the phrase introduces what it names: "a man", "two men", "men".
      is_framed: whether it opens with a frame for the rest: "a picture of a man".
    """

    first: int
    last: int
    head: Token
    kind: Kind | None = "thing"
    be: Be = "is"
    relative: Be | None = None
    there: Be = "is"
    is_determined: bool = True
    is_bare: bool = False
    is_indefinite: bool = True
    is_framed: bool = False

    @property
    def is_living(self) -> bool:
        return self.kind != "thing"


def nominal_from(analysis: Analysis, start: int) -> Nominal | None:
    parts = []
    ends = dict(analysis.noun_phrases)
    here = start
    while (last := ends.get(here) or ends.get(_joined_core(analysis, here))) is not None:
        if analysis.word(last) == "up" and analysis.word(last - 1) == "close":
            last += 1  # "a close up of"
        part = _part(analysis, here, last, is_of_group=here > start)
        if part is None:
            return None
        parts.append(part)
        if analysis.word(last) != "of":
            return _join(analysis, parts)
        here = last + 1
    return None


def _joined_core(analysis: Analysis, start: int) -> int:
    """Return the token after "a black and" and the like, where some taggers begin the phrase."""
    here = start + (analysis.tag(start) in ("DT", "CD", "PRP$"))
    first = here
    while analysis.tag(here) == "JJ":
        here += 1
    is_joined = first < here and analysis.word(here) in ("and", "&")
    return here + 1 if is_joined and analysis.tag(here + 1) == "JJ" else -1


def nominals(analysis: Analysis) -> Iterator[Nominal]:
    done = 0
    for first, last in analysis.noun_phrases:
        start = joined_start(analysis, first)
        if first < done or analysis.word(start - 1) == "of":
            continue
        found = nominal_from(analysis, start)
        done = last if found is None else found.last
        if found is not None:
            yield found


def joined_start(analysis: Analysis, first: int) -> int:
    """Return where a noun phrase starts whose adjectives are joined: "a black and white cat"."""
    here = first
    if analysis.word(first - 1) in ("and", "&"):
        here = first - 1
        while analysis.tag(here - 1) == "JJ":
            here -= 1
        here -= analysis.tag(here - 1) in ("DT", "CD", "PRP$")
    return here if _joined_core(analysis, here) == first else first


def _part(analysis: Analysis, first: int, last: int, *, is_of_group: bool) -> Nominal | None:
    tags = [analysis.tag(index) for index in range(first, last)]
    head = analysis.tokens[last - 1]
    opener = analysis.word(first)
    if opener == "a" and analysis.word(first + 1) in ("dozen", "few"):
        opener = "several"
    if any(tag in _PLURAL_TAGS for tag in tags[:-1]) and "POS" not in tags:
        return None  # "carrots broccoli", "a skateboarder skates"
    if tags[0] in ("PRP", "EX", "WP", "WDT") or tags[-1].startswith("NNP"):
        return None
    is_bare = not tags[0].startswith(("D", "P", "W", "C")) and opener not in _SEVERAL
    are_many = is_of_group and is_bare and head.lemma in _INVARIANT
    number = "are" if are_many else _number(head, tags[0], opener)
    if number is None:
        return None
    is_named = tags[0] == "NNP" or opener in _NOT_NEW
    is_indefinite = (
        opener in _INDEFINITE
        or (tags[0] == "CD" and opener != "0")
        or (is_bare and not is_named and (number == "are" or is_mass(head.lemma)))
    )
    return Nominal(
        first=first,
        last=last,
        head=head,
        be=number,
        is_determined=not is_bare or number == "are" or is_mass(head.lemma),
        is_bare=is_bare,
        is_indefinite=is_indefinite,
    )


def _number(head: Token, tag: str, opener: str) -> Be | None:
    is_many = opener in _SEVERAL or (tag == "CD" and opener not in ("one", "1"))
    if head.lemma in _INVARIANT:
        return "are" if is_many else "is" if opener in _ONE else None
    is_plural = head.tag in _PLURAL_TAGS or head.lemma in _PLURALS
    if (is_plural and opener in _ONE) or (is_many and not is_plural):
        return None
    if head.tag not in ("NN", *_PLURAL_TAGS) and head.text.lower() != "up":
        return None
    return "are" if is_plural else "is"


def _join(analysis: Analysis, parts: list[Nominal]) -> Nominal | None:
    is_framed = parts[0].head.text.lower() in _FRAMES and len(parts) > 1
    rest = parts[1:] if is_framed else parts
    if any(part.head.lemma in _DEPICTIONS for part in rest[:-1]) or len(rest) > 2:
        return None
    outer, inner = rest[0], rest[-1]
    be, head = outer.be, outer.head
    relative: Be | None = be
    there = parts[0].be
    kind = _kind(head)
    if len(rest) == 2:
        name = outer.head.text.lower()
        head, kind = inner.head, _kind(inner.head)
        if inner.be != "are" and name == "bunch":
            return None
        if name == "pair" and kind == "thing":
            return None
        if name in _GROUPS and (name != "bunch" or kind != "thing"):
            if inner.be != "are" and name not in ("lot", "lots"):
                return None
            be = relative = inner.be
            there = be if name in (*_AMOUNTS, "bunch") and not is_framed else there
        elif outer.head.lemma in _HOLDERS:
            head, kind = outer.head, "thing"
            relative = be if inner.be == be else None
        else:
            return None
    elif head.lemma in _UNCLEAR:
        kind, relative = None, None
    return replace(
        parts[0],
        last=parts[-1].last,
        head=head,
        kind=kind,
        be=be,
        relative=relative,
        there=there,
        is_determined=all(part.is_determined for part in parts),
        is_framed=is_framed,
    )


def names_person(noun: Token) -> bool:
    return noun.lemma in listed("person_nouns.txt")


def names_living(noun: Token) -> bool:
    return names_person(noun) or noun.lemma in listed("animal_nouns.txt")


def _kind(noun: Token) -> Kind | None:
    if noun.lemma in _UNCLEAR:
        return None
    if names_person(noun):
        return "person"
    return "animal" if noun.lemma in listed("animal_nouns.txt") else "thing"
