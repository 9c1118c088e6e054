"""What a family of pairs is: things that a caption names, and where they stand in both scenes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from eqforge.generators.scenes.contents import Noun, Vocabulary, far_colours
from eqforge.generators.scenes.drafts import Drafter
from eqforge.generators.scenes.pieces import Piece
from eqforge.schemas.records.scenes import Claim, Kind

Spot = tuple[float, float, float]
"""To the right of the scene's middle and away from the camera, as the camera sees it, and above the
floor, in metres."""

Spots = Mapping[str, Spot]
"""By the names of objects."""

GAP_M = (0.05, 0.2)
"""Between things that stand close together, where their corners do not meet."""

CLOSE = 0.85
"""Share of two radii at which things that stand side by side seldom touch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StagedDraft:
    """Things that a caption names, some of which stand elsewhere in the second scene.

    Attributes:
      change: `position` where the first thing moves, `order` where two change places.
      pieces: what the captions name, in the order of the claims.
      stand: what others stand on, if anything, which is one of the pieces.
      distractors: what they do not name.
      claims, captions: of both scenes.
    """

    change: str
    pieces: tuple[Piece, ...]
    stand: Piece | None = None
    distractors: tuple[Piece, ...]
    claims: tuple[Claim, Claim]
    captions: tuple[str, str]


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


def close_m(first: Piece, second: Piece, rng: Random) -> float:
    """Draws a distance of the middles of two things that stand side by side."""
    return CLOSE * (first.radius + second.radius) + rng.uniform(*GAP_M)


def aside(rng: Random) -> float:
    """Draws a side: 1 is to the right, -1 to the left."""
    return 1.0 if rng.random() < 0.5 else -1.0
