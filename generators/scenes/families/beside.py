"""A thing next to another, or far from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from eqforge.generators.scenes.contents import Vocabulary
from eqforge.generators.scenes.drafts import Drafter
from eqforge.generators.scenes.families.base import (
    Spots,
    StagedDraft,
    aside,
    cast,
    close_m,
    moving,
)
from eqforge.schemas.records.scenes import Kind, Relation

FAR_M = (1.3, 2.0)
"""How much farther away a thing is that is far from another one."""

OFF_M = 0.15
"""How much nearer to the camera, or farther, it is at most where they are close together."""

_SAID: Mapping[Relation, str] = {"near": "next to", "far": "far from"}


@dataclass(frozen=True, slots=True)
class Beside:
    """A thing next to another, or far from it."""

    kind: Kind = "beside"

    def size(self, vocabulary: Vocabulary) -> int:
        """Returns how many contents there are."""
        return len(vocabulary.coloured) * (len(vocabulary.nouns) - 1)

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        """Returns a draft of one of the contents."""
        head, far = divmod(number, len(vocabulary.nouns) - 1)
        noun, colour = vocabulary.coloured[head]
        nouns = (noun, vocabulary.other(noun, far))
        target, reference = cast(drafter, nouns, ("target", "reference"), colour, rng)
        return moving(drafter, nouns, (target, reference), _SAID, rng)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        """Draws where the things stand: to the side, where a camera sees how far apart they are."""
        target, reference = draft.pieces
        side, near = aside(rng), close_m(target, reference, rng)
        far = near + rng.uniform(*FAR_M)
        right = {"near": side * near, "far": side * far}
        off = rng.uniform(-OFF_M, OFF_M)
        first, second = (
            {"reference": (0.0, 0.0, 0.0), "target": (right[str(claim.relation)], off, 0.0)}
            for claim in draft.claims
        )
        return first, second
