"""A thing that has a front, turned in two directions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random

from eqforge.generators.scenes.captions import facing_caption
from eqforge.generators.scenes.contents import Noun, Vocabulary
from eqforge.generators.scenes.drafts import Drafter, called, either_way
from eqforge.generators.scenes.families.base import (
    Spots,
    StagedDraft,
    alone,
    cast,
    in_the_middle,
)
from eqforge.schemas.records.scenes import Claim, Facing, Kind

TURNS_DEG: Mapping[Facing, float] = {
    "facing left": -90.0,
    "facing right": 90.0,
    "facing the camera": 0.0,
    "facing away": 180.0,
}
"""By how much a thing is turned from where its front is towards the camera, counter-clockwise seen
from above."""

_PAIRS = tuple(combinations(TURNS_DEG, 2))


@dataclass(frozen=True, slots=True)
class Turned:
    """A thing that faces two directions."""

    kind: Kind = "facing"

    def size(self, vocabulary: Vocabulary) -> int:
        """Returns how many contents there are."""
        return len(_heads(vocabulary)) * len(_PAIRS)

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        """Returns a draft of one of the contents."""
        head, turns = divmod(number, len(_PAIRS))
        noun, colour = _heads(vocabulary)[head]
        (target,) = cast(drafter, (noun,), ("target",), colour, rng)
        relations = either_way(_PAIRS[turns], rng)
        item = target.variants[0]
        first, second = (replace(item, yaw_deg=TURNS_DEG[each]) for each in relations)
        piece = replace(target, variants=(first, second))
        claims = [Claim(target="target", copies=("target",), relation=each) for each in relations]
        captions = [facing_caption(called(target), each) for each in relations]
        return alone(drafter, noun, piece, "orientation", claims, captions, rng)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        """Returns where the thing stands, in both scenes."""
        del draft, rng
        return in_the_middle()


def _heads(vocabulary: Vocabulary) -> Sequence[tuple[Noun, str]]:
    """Returns the things whose every asset has a front that shows where it faces."""
    return [
        (noun, colour)
        for noun, colour in vocabulary.coloured
        if all(asset.words is not None and asset.words.faces for asset in noun.colours[colour])
    ]
