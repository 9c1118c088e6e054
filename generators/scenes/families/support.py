"""A thing on another, or on the floor next to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from eqforge.generators.scenes.contents import Noun, Vocabulary
from eqforge.generators.scenes.drafts import Drafter
from eqforge.generators.scenes.families.base import (
    Spots,
    StagedDraft,
    cast,
    moving,
    next_to,
)
from eqforge.generators.scenes.view import DECIMALS
from eqforge.schemas.records.scenes import Kind, Relation

ROOM = 0.95
"""Share of the shorter side of what it stands on that a thing takes at most, corner to corner."""

LARGER = 1.25
"""How much larger than usual what it stands on is."""

_SAID: Mapping[Relation, str] = {"on": "on", "near": "next to"}


@dataclass(frozen=True, slots=True)
class Support:
    """A thing on another, or on the floor next to it."""

    kind: Kind = "support"

    def size(self, vocabulary: Vocabulary) -> int:
        """Returns how many contents there are."""
        return len(_contents(vocabulary))

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        """Returns a draft of one of the contents."""
        noun, colour, carrier = _contents(vocabulary)[number]
        nouns = (noun, carrier)
        target, reference = cast(drafter, nouns, ("target", "reference"), colour, rng)
        reference = reference.scaled(LARGER)
        room = ROOM * min(reference.sides()) / (2 * target.radius)
        target = target.scaled(min(1.0, room))
        return moving(drafter, nouns, (target, reference), _SAID, rng, stand=reference)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        """Draws where the thing stands: in the middle of the other's top, or at its side."""
        target, reference = draft.pieces
        place = {
            "on": (0.0, 0.0, round(reference.height, DECIMALS)),
            "near": next_to(target, reference, rng),
        }
        first, second = (
            {"reference": (0.0, 0.0, 0.0), "target": place[str(claim.relation)]}
            for claim in draft.claims
        )
        return first, second


def _contents(vocabulary: Vocabulary) -> list[tuple[Noun, str, Noun]]:
    stands = vocabulary.stands
    carriers = {carrier.words.noun for carrier in stands}
    return [
        (noun, colour, carrier)
        for noun, colour in vocabulary.coloured
        if noun.words.noun not in carriers
        for carrier in stands
    ]
