"""A thing in a container or under something, or on the floor next to it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from eqforge.generators.scenes.contents import Noun, Vocabulary
from eqforge.generators.scenes.drafts import Drafter
from eqforge.generators.scenes.families.base import (
    Spot,
    Spots,
    StagedDraft,
    cast,
    moving,
    next_to,
)
from eqforge.generators.scenes.manifest import Room
from eqforge.generators.scenes.pieces import Piece
from eqforge.generators.scenes.view import DECIMALS
from eqforge.schemas.records.scenes import Kind, Relation

LARGER = 1.3
"""How much larger than usual is what has room for another thing."""

SNUG = 0.95
"""Share of the room that a thing takes at most, corner to corner and in height."""

SUNK = 0.6
"""Share of a thing that may be below a container's rim: lower ones are held higher up."""

RAISED = 0.6
"""Share of the camera's elevations that is left out: one looks into a container from above."""


@dataclass(frozen=True, slots=True)
class Within:
    """A thing in a container or under something, or next to it.

    Attributes:
      kind: its name.
      relation: `in` or `under`.
      raised: share of the camera's elevations that is left out.
    """

    kind: Kind
    relation: Relation
    raised: float

    def size(self, vocabulary: Vocabulary) -> int:
        """Returns how many contents there are."""
        return len(self._contents(vocabulary))

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        """Returns a draft of one of the contents."""
        noun, colour, roomy = self._contents(vocabulary)[number]
        nouns = (noun, roomy)
        target, reference = cast(drafter, nouns, ("target", "reference"), colour, rng)
        reference = reference.scaled(LARGER)
        room = self._room(reference)
        target = target.scaled(
            SNUG * min(1.0, room.radius / target.radius, room.height / target.height)
        )
        said: Mapping[Relation, str] = {self.relation: self.relation, "near": "next to"}
        draft = moving(drafter, nouns, (target, reference), said, rng, stand=reference)
        return replace(draft, raised=self.raised, least=0.01)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        """Draws where the thing stands: in the room that there is, or at its side."""
        target, reference = draft.pieces
        room = self._room(reference)
        height = max(room.floor, room.rim - SUNK * target.height)
        place: Mapping[Relation, Spot] = {
            self.relation: (0.0, 0.0, round(height, DECIMALS)),
            "near": next_to(target, reference, rng),
        }
        first, second = (
            {"reference": (0.0, 0.0, 0.0), "target": place[claim.relation or "near"]}
            for claim in draft.claims
        )
        return first, second

    def _room(self, piece: Piece) -> Room:
        """Returns the room of a thing as it stands in a scene, in metres."""
        words = piece.asset.words
        assert words is not None
        room = words.holds if self.relation == "in" else words.shelters
        assert room is not None
        return room.scaled(max(piece.asset.extent) * piece.variants[0].scale)

    def _contents(self, vocabulary: Vocabulary) -> list[tuple[Noun, str, Noun]]:
        roomy = vocabulary.with_room(self.relation == "in")
        names = {noun.words.noun for noun in roomy}
        return [
            (noun, colour, other)
            for noun, colour in vocabulary.coloured
            if noun.words.noun not in names
            for other in roomy
        ]


INSIDE = Within(kind="inside", relation="in", raised=RAISED)
UNDER = Within(kind="under", relation="under", raised=0.0)
