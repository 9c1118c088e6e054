"""A thing that stands upright, or lies on its side."""

from dataclasses import dataclass, replace
from random import Random

from eqforge.generators.scenes.captions import posture_caption
from eqforge.generators.scenes.contents import Noun, Vocabulary
from eqforge.generators.scenes.drafts import Drafter, called, either_way
from eqforge.generators.scenes.families.base import (
    Spots,
    StagedDraft,
    alone,
    cast,
    in_the_middle,
)
from eqforge.generators.scenes.manifest import Asset
from eqforge.schemas.records.scenes import Claim, Kind, Posture

TALL = 1.2
"""How much taller than wide a thing is at least, so that one sees whether it lies."""

_POSTURES: tuple[Posture, Posture] = ("upright", "lying")


@dataclass(frozen=True, slots=True)
class Tipped:
    """A thing upright, and tipped over."""

    kind: Kind = "posture"

    def size(self, vocabulary: Vocabulary) -> int:
        """Returns how many contents there are."""
        return len(_heads(vocabulary))

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        """Returns a draft of one of the contents."""
        noun, colour = _heads(vocabulary)[number]
        (target,) = cast(drafter, (noun,), ("target",), colour, rng)
        postures = either_way(_POSTURES, rng)
        # It lies across the view, its top to either side but where its back would be seen then.
        turn = ((target.front_deg or 0.0) + 90.0) % 180.0
        if target.asset.words is None or not target.asset.words.faces:
            turn += rng.choice((0.0, 180.0))
        item = replace(target.variants[0], yaw_deg=turn)
        first, second = (replace(item, posture=each) for each in postures)
        claims = [Claim(target="target", copies=("target",), relation=each) for each in postures]
        captions = [posture_caption(called(target), each) for each in postures]
        piece = replace(target, variants=(first, second))
        return alone(drafter, noun, piece, "posture", claims, captions, rng)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        """Returns where the thing is, in both scenes."""
        del draft, rng
        return in_the_middle()


def _heads(vocabulary: Vocabulary) -> list[tuple[Noun, str]]:
    """Returns the nouns of things that may lie, in all their colours."""
    return [(noun, colour) for noun in vocabulary.of_those(_lies) for colour in noun.colours]


def _lies(asset: Asset) -> bool:
    width, _, height = asset.extent
    return asset.words is not None and asset.words.lies and height >= TALL * width
