"""Define the pieces of a pair: objects, sizes and colours, but no positions yet."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from eqforge.generators.scenes.manifest import Asset, tipped
from eqforge.generators.scenes.view import DECIMALS
from eqforge.schemas.records.scenes import Claim, Relation, SceneObject, Vector

Spot = tuple[float, float, float]
"""Metres to the right of the scene's middle, away from the camera, and above the floor."""

Spots = Mapping[str, Spot]  # by the names of objects
MIN_NAMED = 0.03  # least share of the picture that a named object covers, in the first try


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """An object of a draft.

    Attributes:
      variants: the object in the first and the second scene, except for place and rotation.
      colours: words for its colours in the two scenes; empty if it has no such word.
      other: its asset in the second scene, if two scans are exchanged.
    """

    asset: Asset
    variants: tuple[SceneObject, SceneObject]
    colours: tuple[str, ...]
    other: Asset | None = None

    @property
    def name(self) -> str:
        return self.variants[0].name

    @property
    def front_deg(self) -> float | None:
        """The yaw at which it faces the x axis; None without a front."""
        return self.asset.naming.front_deg

    @property
    def height(self) -> float:
        return max(self.heights)

    @property
    def heights(self) -> list[float]:
        return [self.asset_in(each).extent[2] * self.variants[each].scale for each in (0, 1)]

    def asset_in(self, number: int) -> Asset:
        asset = self.asset if self.other is None or number == 0 else self.other
        is_lying = self.variants[number].posture == "lying"
        return replace(asset, bounds=tipped(asset.bounds)) if is_lying else asset

    @property
    def radius(self) -> float:
        """The larger distance, in metres, from the middle of its footprint to the corners."""
        return max(math.hypot(*self.sides(number)) / 2 for number in (0, 1))

    def sides(self, number: int = 0) -> tuple[float, float]:
        """Return the width and depth of its footprint in one of the scenes, in metres."""
        width, depth, _ = self.asset_in(number).extent
        scale = self.variants[number].scale
        return width * scale, depth * scale

    def scaled(self, factor: float) -> "Piece":
        first, second = (
            replace(variant, scale=round(variant.scale * factor, DECIMALS))
            for variant in self.variants
        )
        return replace(self, variants=(first, second))

    def painted(self, colour: Vector) -> SceneObject:
        allowed = self.asset.naming.is_recolourable
        return replace(self.variants[0], colour=colour if allowed else None)


@dataclass(frozen=True, kw_only=True, slots=True)
class RelatedDraft:
    """A target and a reference, with a different relation or attribute in each scene."""

    change: str
    target: Piece
    reference: Piece
    distractors: tuple[Piece, ...]
    relations: tuple[Relation, Relation]
    captions: tuple[str, str]

    @property
    def colours(self) -> list[str]:
        return colours_of((self.target, self.reference, *self.distractors))


@dataclass(frozen=True, kw_only=True, slots=True)
class CountedDraft:
    """The copies of the scene with more of them, on a support, and the counts of both scenes."""

    copies: tuple[Piece, ...]
    counts: tuple[int, int]
    support: Piece
    distractors: tuple[Piece, ...]
    captions: tuple[str, str]
    change: str = "count"

    @property
    def colours(self) -> list[str]:
        return colours_of((self.copies[0], *self.distractors))

    @property
    def by_scene(self) -> list[tuple[Piece, tuple[int, ...]]]:
        """The copies, and the scenes that each is in; copies in both come first."""
        fewer = min(self.counts)
        fuller = (self.counts.index(max(self.counts)),)
        return [
            (piece, (0, 1) if number < fewer else fuller)
            for number, piece in enumerate(self.copies)
        ]


def colours_of(pieces: Iterable[Piece]) -> list[str]:
    return [colour for piece in pieces for colour in piece.colours]


@dataclass(frozen=True, kw_only=True, slots=True)
class StagedDraft:
    """Things that a caption names, some of which move or turn in the second scene.

    Attributes:
      change: `position` if the first thing moves, `order` if two swap places.
      pieces: the things in the captions, in the order of the claims.
      stand: the piece on which others stand, if any.
      raised: share of camera elevations to leave out from below, where things hide one another.
      least: minimum share of the image that each thing covers.
      is_even: whether all have the same rotation, in the middle of the image, so that a thing's
        position does not change its apparent size or lightness.
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

    @property
    def colours(self) -> list[str]:
        return colours_of((*self.pieces, *self.distractors))
