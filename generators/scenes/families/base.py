"""What a family of pairs is: things that a caption names, and where they stand in both scenes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from eqforge.generators.scenes.captions import sentence
from eqforge.generators.scenes.contents import Noun, Vocabulary, far_colours
from eqforge.generators.scenes.drafts import Drafter, called, either_way
from eqforge.generators.scenes.legible import MIN_NAMED
from eqforge.generators.scenes.pieces import Piece
from eqforge.schemas.records.scenes import Claim, Kind, Relation

Spot = tuple[float, float, float]
"""To the right of the scene's middle and away from the camera, as the camera sees it, and above the
floor, in metres."""

Spots = Mapping[str, Spot]
"""By the names of objects."""

GAP_M = (0.05, 0.2)
"""Between things that stand close together, where their corners do not meet."""

CLOSE = 0.85
"""Share of two radii at which things that stand side by side seldom touch."""

FORWARD = 0.7
"""Share of the difference of two radii by which a thing next to a large one stands nearer to the
camera: their front sides are about in line, so that the lower end of neither is higher in the
picture."""

OFF_M = 0.1
"""How much nearer or farther than that it stands at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StagedDraft:
    """Things that a caption names, some of which stand elsewhere in the second scene.

    Attributes:
      change: `position` where the first thing moves, `order` where two change places.
      pieces: what the captions name, in the order of the claims.
      stand: what others stand on, if anything, which is one of the pieces.
      distractors: what they do not name.
      claims, captions: of both scenes.
      raised: share of the camera's elevations that is left out: from low down, one thing hides what
        is beside it.
      least: least share of the picture that one of the things covers.
      is_even: whether all are turned alike, in the middle of the picture, so that where a thing
        stands does not change how large or light it looks, or where it faces.
    """

    change: str
    pieces: tuple[Piece, ...]
    stand: Piece | None = None
    distractors: tuple[Piece, ...]
    claims: tuple[Claim, Claim]
    captions: tuple[str, str]
    raised: float = 0.3
    least: float = MIN_NAMED
    is_even: bool = False


class Family(Protocol):
    """A kind of pairs."""

    @property
    def kind(self) -> Kind:
        """Its name."""

    def size(self, vocabulary: Vocabulary) -> int:
        """Returns how many contents there are."""

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        """Returns a draft of one of the contents; what it leaves open is drawn at random."""

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        """Draws where the things stand in the first and in the second scene."""


def cast(
    drafter: Drafter, nouns: Sequence[Noun], names: Sequence[str], first: str | None, rng: Random
) -> list[Piece]:
    """Returns things in colours that are not mistaken for each other, as far as there are such.

    Args:
      drafter: makes them.
      nouns: what they are.
      names: their names in the scene.
      first: colour of the first one; drawn as well if None.
      rng: what to draw with.
    """
    found: list[Piece] = []
    for noun, name in zip(nouns, names, strict=True):
        said = [colour for piece in found for colour in piece.colours]
        colour = first if first is not None and not found else None
        if colour is None:
            colour = rng.choice(far_colours(noun, said) or list(noun.colours))
        found.append(drafter.piece(noun, colour, name, rng))
    return found


def moving(
    drafter: Drafter,
    nouns: Sequence[Noun],
    pieces: Sequence[Piece],
    said: Mapping[Relation, str],
    rng: Random,
    stand: Piece | None = None,
) -> StagedDraft:
    """Returns a draft of which the first thing moves, and both captions name all.

    Args:
      drafter: makes what no caption names.
      nouns: of the things.
      pieces: the thing that moves, and what it is related to.
      said: two relations, in no order, with their words.
      rng: what to draw with.
      stand: what others stand on, if anything.
    """
    first, second = said
    relations = either_way((first, second), rng)
    target, reference, *others = pieces
    there = " and the ".join(called(piece).singular for piece in (reference, *others))
    claims = [
        Claim(
            target=target.name,
            copies=(target.name,),
            relation=relation,
            reference=reference.name,
            others=tuple(piece.name for piece in others),
        )
        for relation in relations
    ]
    captions = [sentence(called(target), said[relation], there) for relation in relations]
    return StagedDraft(
        change="position",
        pieces=tuple(pieces),
        stand=stand,
        distractors=drafter.bystanders(nouns, pieces, rng),
        claims=(claims[0], claims[1]),
        captions=(captions[0], captions[1]),
    )


def alone(
    drafter: Drafter,
    noun: Noun,
    piece: Piece,
    change: str,
    claims: Sequence[Claim],
    captions: Sequence[str],
    rng: Random,
) -> StagedDraft:
    """Returns a draft of one thing in the middle, of which both captions speak.

    Args:
      drafter: makes what no caption names.
      noun: of the thing.
      piece: the thing, as both scenes have it.
      change: what differs.
      claims: of both scenes.
      captions: of both scenes.
      rng: what to draw with.
    """
    first, second = claims
    one, other = captions
    return StagedDraft(
        change=change,
        pieces=(piece,),
        distractors=drafter.bystanders((noun,), (piece,), rng),
        claims=(first, second),
        captions=(one, other),
        is_even=True,
    )


def in_the_middle() -> tuple[Spots, Spots]:
    """Returns where a thing stands that stays in the middle, in both scenes."""
    there: Spots = {"target": (0.0, 0.0, 0.0)}
    return there, there


def close_m(first: Piece, second: Piece, rng: Random) -> float:
    """Draws a distance of the middles of two things that stand side by side."""
    return CLOSE * (first.radius + second.radius) + rng.uniform(*GAP_M)


def aside(rng: Random) -> float:
    """Draws a side: 1 is to the right, -1 to the left."""
    return 1.0 if rng.random() < 0.5 else -1.0


def next_to(target: Piece, reference: Piece, rng: Random) -> Spot:
    """Draws a spot on the floor for a thing next to a larger one in the middle."""
    right = aside(rng) * close_m(target, reference, rng)
    forward = FORWARD * (reference.radius - target.radius)
    return (right, rng.uniform(-OFF_M, OFF_M) - forward, 0.0)
