"""Write captions of scenes, worded as in the published figures (paper) or corrected.

EqBen, appendix B.4 (figure 14) shows these pairs: "The blue plant container is on the left side of
the brown bull." with "The red plant container ..."; "1 white gift box with red straps is on the
platform." with "There are 4 white gift box ..."; "The blue gloves is in front of the fabric
basket." with "... on the left hand of ...".

Paper mode generalises from these six captions, because no code was published. One object reads "1 X
is on the Y." and several read "There are n X on the Y.", with a singular noun and digits. The verb
is always "is". Left and right are "on the left side of" if an attribute changes and "on the left
hand of" if the position changes. Right is worded like left; behind, which no figure shows, is
"behind". A size or material replaces the colour.

Corrected mode agrees in number, spells numbers out, has one wording for left and right, and gives
both captions of a pair the same template.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from eqforge.generators.scenes.manifest import AssetWords, Trim
from eqforge.schemas.records.scenes import Facing, Kind, Posture, Relation

Mode = Literal["paper", "corrected"]
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

_PAPER: Mapping[Kind, Mapping[Relation, str]] = {
    "attribute": {
        "left": "on the left side of",
        "right": "on the right side of",
        "front": "in front of",
        "behind": "behind",
    },
    "location": {
        "left": "on the left hand of",
        "right": "on the right hand of",
        "front": "in front of",
        "behind": "behind",
    },
}
_ENGLISH: Mapping[Relation, str] = {
    "left": "to the left of",
    "right": "to the right of",
    "front": "in front of",
    "behind": "behind",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Phrase:
    """How a caption names an object; adjectives are size, colour and material, in this order."""

    words: AssetWords
    adjectives: tuple[str, ...] = ()

    @property
    def singular(self) -> str:
        return self._join(self.words.noun, self.words.detail)

    @property
    def plural(self) -> str:
        details = self.words.plural_detail
        return self._join(self.words.plural, self.words.detail if details is None else details)

    def _join(self, noun: str, detail: str) -> str:
        return " ".join(filter(None, (*self.adjectives, noun, detail)))


def related_caption(
    mode: Mode, kind: Kind, target: Phrase, relation: Relation, reference: Phrase
) -> str:
    if mode == "paper":
        where = _PAPER[kind][relation]
        return f"The {target.singular} is {where} the {reference.singular}."
    return sentence(target, f"{_ENGLISH[relation]} the {reference.singular}")


def sentence(target: Phrase, predicate: str) -> str:
    return f"The {target.singular} {'are' if target.words.is_plural else 'is'} {predicate}."


def row_caption(row: Sequence[Phrase]) -> str:
    *others, last = (f"the {phrase.singular}" for phrase in row)
    named = f"{', '.join(others)} and {last}"
    return f"{named[0].upper()}{named[1:]} are lined up from left to right."


def facing_caption(target: Phrase, facing: Facing) -> str:
    return sentence(target, "facing away from the camera" if facing == "facing away" else facing)


def posture_caption(target: Phrase, posture: Posture) -> str:
    side = "their sides" if target.words.is_plural else "its side"
    return sentence(target, "standing upright" if posture == "upright" else f"lying on {side}")


def trim_caption(target: Phrase, trim: Trim, colour: str) -> str:
    """Name a part's colour; omit the noun's detail, which may be that part."""
    verb = "have" if target.words.is_plural else "has"
    article = "an " if colour[0] in "aeiou" else "a "
    named = " ".join((*target.adjectives, target.words.noun))
    return f"The {named} {verb} {'' if trim.is_plural else article}{colour} {trim.noun}."


def counting_caption(mode: Mode, counted: Phrase, count: int, support: str) -> str:
    if mode == "paper":
        if count == 1:
            return f"1 {counted.singular} is on the {support}."
        return f"There are {count} {counted.singular} on the {support}."
    if count == 1:
        return f"One {counted.singular} is on the {support}."
    return f"{NUMBERS[count].capitalize()} {counted.plural} are on the {support}."
