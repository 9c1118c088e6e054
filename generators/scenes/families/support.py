"""A thing on another, or on the floor next to it."""

from dataclasses import dataclass, replace
from random import Random

from eqforge.generators.scenes.captions import sentence
from eqforge.generators.scenes.contents import Noun, Vocabulary
from eqforge.generators.scenes.drafts import Drafter, called, either_way
from eqforge.generators.scenes.families.base import Spots, StagedDraft, aside, cast, close_m
from eqforge.generators.scenes.pieces import Piece
from eqforge.generators.scenes.view import DECIMALS
from eqforge.schemas.records.scenes import Claim, Kind, Relation

ROOM = 0.95
"""Share of the shorter side of what it stands on that a thing takes at most, corner to corner."""

LARGER = 1.25
"""How much larger than usual what it stands on is."""

FORWARD = 0.7
"""Share of the difference of their radii by which a thing on the floor stands nearer to the camera:
their front sides are about in line, so that the lower end of neither is higher in the picture."""

OFF_M = 0.1
"""How much nearer or farther than that it stands at most."""

_SAID = {"on": "on", "near": "next to"}
_RELATIONS: tuple[Relation, Relation] = ("on", "near")


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
        names = ("target", "reference")
        target, reference = cast(drafter, (noun, carrier), names, colour, rng)
        reference = _scaled(reference, LARGER)
        room = ROOM * min(reference.sides()) / (2 * target.radius)
        target = _scaled(target, min(1.0, room))
        first, second = either_way(_RELATIONS, rng)
        return StagedDraft(
            change="position",
            pieces=(target, reference),
            stand=reference,
            distractors=drafter.bystanders((noun, carrier), (target, reference), rng),
            claims=(_claim(first), _claim(second)),
            captions=(
                sentence(called(target), _SAID[first], called(reference)),
                sentence(called(target), _SAID[second], called(reference)),
            ),
        )

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        """Draws where the thing stands: in the middle of the other's top, or at its side."""
        target, reference = draft.pieces
        right = aside(rng) * close_m(target, reference, rng)
        forward = FORWARD * (reference.radius - target.radius)
        place = {
            "on": (0.0, 0.0, round(reference.height, DECIMALS)),
            "near": (right, rng.uniform(-OFF_M, OFF_M) - forward, 0.0),
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


def _scaled(piece: Piece, factor: float) -> Piece:
    first, second = (
        replace(variant, scale=round(variant.scale * factor, DECIMALS))
        for variant in piece.variants
    )
    return replace(piece, variants=(first, second))


def _claim(relation: Relation) -> Claim:
    return Claim(target="target", copies=("target",), relation=relation, reference="reference")
