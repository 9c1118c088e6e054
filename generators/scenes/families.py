"""Define further kinds of pairs, each with its contents, captions, claims and places.

Captions of a family name things. In the second scene some of them change place or orientation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from random import Random
from typing import Protocol

from eqforge.generators.scenes.captions import (
    facing_caption,
    posture_caption,
    row_caption,
    trim_caption,
)
from eqforge.generators.scenes.claims import names_of
from eqforge.generators.scenes.contents import Noun, Vocabulary
from eqforge.generators.scenes.drafts import Drafter, label, shuffled
from eqforge.generators.scenes.manifest import Asset, Room, Trim
from eqforge.generators.scenes.palette import PALETTE, are_distinct, distinct_pairs
from eqforge.generators.scenes.pieces import MIN_NAMED, Piece, Spot, Spots, StagedDraft
from eqforge.generators.scenes.view import DECIMALS
from eqforge.schemas.records.scenes import Claim, Facing, Kind, Posture, Relation

MIDDLE: Spot = (0.0, 0.0, 0.0)
GAP_M = (0.05, 0.2)  # between things that stand close together, where their corners do not meet
CLOSE = 0.85  # share of two radii at which things that stand side by side seldom touch

FORWARD = 0.7
"""Share of the difference of two radii by which a small thing next to a large one moves towards the
camera. Their fronts line up, so neither base is higher in the image."""


class Family(Protocol):
    """A kind of pairs with numbered contents."""

    def size(self, vocabulary: Vocabulary) -> int: ...

    def draft(self, drafter: Drafter, number: int, rng: Random) -> StagedDraft: ...

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]: ...


def _placed(draft: StagedDraft, spots: Mapping[str, Spots]) -> tuple[Spots, Spots]:
    first, second = (spots[str(claim.relation)] for claim in draft.claims)
    return first, second


def _close_m(first: Piece, second: Piece, rng: Random) -> float:
    return CLOSE * (first.radius + second.radius) + rng.uniform(*GAP_M)


class Beside:
    """A thing next to another, or far from it."""

    FAR_M = (1.3, 2.0)

    def size(self, vocabulary: Vocabulary) -> int:
        return len(vocabulary.coloured) * (len(vocabulary.nouns) - 1)

    def draft(self, drafter: Drafter, number: int, rng: Random) -> StagedDraft:
        head, far = divmod(number, len(drafter.vocabulary.nouns) - 1)
        noun, colour = drafter.vocabulary.coloured[head]
        nouns = (noun, drafter.vocabulary.other(noun, far))
        pieces = drafter.pieces(nouns, ("target", "reference"), colour, rng)
        return drafter.moving(nouns, pieces, {"near": "next to", "far": "far from"}, rng)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        # To the side, where a camera sees how far apart they are.
        side = 1.0 if rng.random() < 0.5 else -1.0
        near = _close_m(draft.pieces[0], draft.pieces[1], rng)
        far, off = near + rng.uniform(*self.FAR_M), rng.uniform(-0.15, 0.15)
        return _placed(
            draft,
            {
                "near": {"reference": MIDDLE, "target": (side * near, off, 0.0)},
                "far": {"reference": MIDDLE, "target": (side * far, off, 0.0)},
            },
        )


class Between:
    """A thing between two others, or to one side of both."""

    SIDES: tuple[Relation, ...] = ("left", "right")

    def size(self, vocabulary: Vocabulary) -> int:
        num_others = len(vocabulary.nouns) - 1
        return len(vocabulary.coloured) * len(self.SIDES) * (num_others * (num_others - 1) // 2)

    def draft(self, drafter: Drafter, number: int, rng: Random) -> StagedDraft:
        pairs = list(combinations(range(len(drafter.vocabulary.nouns) - 1), 2))
        number, pair = divmod(number, len(pairs))
        head, place = divmod(number, len(self.SIDES))
        noun, colour = drafter.vocabulary.coloured[head]
        nouns = (noun, *(drafter.vocabulary.other(noun, far) for far in shuffled(pairs[pair], rng)))
        pieces = drafter.pieces(nouns, ("target", "reference", "other"), colour, rng)
        side = self.SIDES[place]
        words: dict[Relation, str] = {"between": "between", side: f"to the {side} of"}
        return drafter.moving(nouns, pieces, words, rng)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        # The two others stand in caption order, left to right.
        target, reference, other = draft.pieces
        left, right = -_close_m(target, reference, rng), _close_m(target, other, rng)
        across = {
            "between": 0.0,
            "left": left - _close_m(target, reference, rng),
            "right": right + _close_m(target, other, rng),
        }
        near, before, behind = (rng.uniform(-0.2, 0.2) for _ in draft.pieces)
        others: Spots = {"reference": (left, before, 0.0), "other": (right, behind, 0.0)}
        return _placed(
            draft, {where: {"target": (x, near, 0.0), **others} for where, x in across.items()}
        )


class Row:
    """Three things in a row, of which two swap places."""

    NAMES = ("target", "second", "third")
    ORDERS = tuple(
        (one, two)
        for one, two in combinations(permutations(range(3)), 2)
        if sum(a != b for a, b in zip(one, two, strict=True)) == 2
    )

    def size(self, vocabulary: Vocabulary) -> int:
        number = len(vocabulary.nouns)
        return number * (number - 1) * (number - 2) // 6 * len(self.ORDERS)

    def draft(self, drafter: Drafter, number: int, rng: Random) -> StagedDraft:
        three, orders = divmod(number, len(self.ORDERS))
        nouns = list(combinations(drafter.vocabulary.nouns, 3))[three]
        pieces = tuple(drafter.pieces(nouns, self.NAMES, None, rng))
        orders_of = shuffled(self.ORDERS[orders], rng)
        names = [[self.NAMES[place] for place in order] for order in orders_of]
        claims = [
            Claim(target=one, copies=(one,), relation="row", reference=two, others=(last,))
            for one, two, last in names
        ]
        captions = [row_caption([label(pieces[place]) for place in order]) for order in orders_of]
        draft = drafter.staged("order", nouns, pieces, claims, captions, rng)
        return replace(draft, is_even=False)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        # Far enough apart that any two can swap places.
        apart = 2 * CLOSE * max(piece.radius for piece in draft.pieces) + rng.uniform(*GAP_M)
        away = [rng.uniform(-0.12, 0.12) for _ in draft.pieces]
        first, second = (
            {
                name: ((place - 1) * apart, away[place], 0.0)
                for place, name in enumerate(names_of(claim))
            }
            for claim in draft.claims
        )
        return first, second


@dataclass(frozen=True, kw_only=True, slots=True)
class Carried:
    """A thing on another, in it or under it, or on the floor next to it.

    Attributes:
      larger: scale of the other thing relative to its usual size, to make room.
      raised: share of camera elevations to leave out from below; containers are seen from above.
      least: minimum share of the image that either one covers.
    """

    relation: Relation
    larger: float = 1.3
    raised: float = 0.0
    least: float = 0.01

    def size(self, vocabulary: Vocabulary) -> int:
        return len(self._heads(vocabulary))

    def draft(self, drafter: Drafter, number: int, rng: Random) -> StagedDraft:
        noun, colour, holder = self._heads(drafter.vocabulary)[number]
        nouns = (noun, holder)
        target, reference = drafter.pieces(nouns, ("target", "reference"), colour, rng)
        reference = reference.scaled(self.larger)
        # At most 95% of the room, corner to corner and in height.
        if self.relation == "on":
            factor = min(1.0, 0.95 * min(reference.sides()) / (2 * target.radius))
        else:
            room = self._room(reference)
            factor = 0.95 * min(1.0, room.radius / target.radius, room.height / target.height)
        pieces = (target.scaled(factor), reference)
        words: dict[Relation, str] = {self.relation: self.relation, "near": "next to"}
        draft = drafter.moving(nouns, pieces, words, rng, stand=reference)
        return replace(draft, raised=self.raised, least=self.least)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        target, reference = draft.pieces
        height = reference.height
        if self.relation != "on":
            room = self._room(reference)
            # Up to 60% of a thing is below a container's rim; lower things are held higher up.
            height = max(room.floor, room.rim - 0.6 * target.height)
        there = (0.0, 0.0, round(height, DECIMALS))
        side = 1.0 if rng.random() < 0.5 else -1.0
        right = side * _close_m(target, reference, rng)
        forward = FORWARD * (reference.radius - target.radius)
        next_to = (right, rng.uniform(-0.1, 0.1) - forward, 0.0)
        return _placed(
            draft,
            {
                str(self.relation): {"reference": MIDDLE, "target": there},
                "near": {"reference": MIDDLE, "target": next_to},
            },
        )

    def _heads(self, vocabulary: Vocabulary) -> list[tuple[Noun, str, Noun]]:
        carriers = vocabulary.of_those(CARRIERS[self.relation])
        names = {carrier.words.noun for carrier in carriers}
        return [
            (noun, colour, carrier)
            for noun, colour in vocabulary.coloured
            if noun.words.noun not in names
            for carrier in carriers
        ]

    def _room(self, piece: Piece) -> Room:
        words = piece.asset.naming
        room = words.holds if self.relation == "in" else words.shelters
        assert room is not None
        return room.scaled(max(piece.asset.extent) * piece.variants[0].scale)


CARRIERS: Mapping[Relation, Callable[[Asset], bool]] = {
    "on": lambda asset: "stand" in asset.naming.roles,
    "in": lambda asset: asset.naming.holds is not None,
    "under": lambda asset: asset.naming.shelters is not None,
}


class _Single:
    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        del draft, rng
        return {"target": MIDDLE}, {"target": MIDDLE}


class Turned(_Single):
    """A thing with a front, shown facing two directions."""

    TURNS_DEG: Mapping[Facing, float] = {
        "facing left": -90.0,
        "facing right": 90.0,
        "facing the camera": 0.0,
        "facing away": 180.0,
    }
    """Rotation in degrees, counter-clockwise from above. At 0, the object faces the camera."""

    PAIRS = tuple(combinations(TURNS_DEG, 2))

    def size(self, vocabulary: Vocabulary) -> int:
        return len(self._heads(vocabulary)) * len(self.PAIRS)

    def draft(self, drafter: Drafter, number: int, rng: Random) -> StagedDraft:
        head, turns = divmod(number, len(self.PAIRS))
        noun, colour = self._heads(drafter.vocabulary)[head]
        (target,) = drafter.pieces((noun,), ("target",), colour, rng)
        relations = shuffled(self.PAIRS[turns], rng)
        item = target.variants[0]
        first, second = (replace(item, yaw_deg=self.TURNS_DEG[each]) for each in relations)
        piece = replace(target, variants=(first, second))
        claims = [Claim(target="target", copies=("target",), relation=each) for each in relations]
        captions = [facing_caption(label(target), each) for each in relations]
        return drafter.staged("orientation", (noun,), (piece,), claims, captions, rng)

    def _heads(self, vocabulary: Vocabulary) -> Sequence[tuple[Noun, str]]:
        return [
            (noun, colour)
            for noun, colour in vocabulary.coloured
            if all(asset.naming.faces for asset in noun.colours[colour])
        ]


class Tipped(_Single):
    """A thing that stands upright, or lies on its side."""

    TALL = 1.2
    """Minimum ratio of height to width at which a viewer sees whether it lies."""

    POSTURES: tuple[Posture, Posture] = ("upright", "lying")

    def size(self, vocabulary: Vocabulary) -> int:
        return len(self._heads(vocabulary))

    def draft(self, drafter: Drafter, number: int, rng: Random) -> StagedDraft:
        noun, colour = self._heads(drafter.vocabulary)[number]
        (target,) = drafter.pieces((noun,), ("target",), colour, rng)
        postures = shuffled(self.POSTURES, rng)
        # It lies across the view, its top to either side unless that would show its back.
        turn = ((target.front_deg or 0.0) + 90.0) % 180.0
        if not target.asset.naming.faces:
            turn += rng.choice((0.0, 180.0))
        item = replace(target.variants[0], yaw_deg=turn)
        first, second = (replace(item, posture=each) for each in postures)
        claims = [Claim(target="target", copies=("target",), relation=each) for each in postures]
        captions = [posture_caption(label(target), each) for each in postures]
        piece = replace(target, variants=(first, second))
        return drafter.staged("posture", (noun,), (piece,), claims, captions, rng)

    def _heads(self, vocabulary: Vocabulary) -> list[tuple[Noun, str]]:
        def lies(asset: Asset) -> bool:
            width, _, height = asset.extent
            return asset.naming.lies and height >= self.TALL * width

        return [(noun, colour) for noun in vocabulary.of_those(lies) for colour in noun.colours]


class Trimmed(_Single):
    """A thing with one part in two colours: a toy house with a green or a blue roof."""

    def size(self, vocabulary: Vocabulary) -> int:
        return len(self._heads(vocabulary))

    def draft(self, drafter: Drafter, number: int, rng: Random) -> StagedDraft:
        noun, colour, trim, pair = self._heads(drafter.vocabulary)[number]
        (target,) = drafter.pieces((noun,), ("target",), colour, rng)
        parts = sorted(part for part, known in target.asset.naming.trims.items() if known == trim)
        values = shuffled(pair, rng)
        first, second = (
            replace(target.variants[0], trims=tuple((part, PALETTE[each]) for part in parts))
            for each in values
        )
        piece = replace(target, variants=(first, second), colours=(*target.colours, *values))
        claim = Claim(target="target", copies=("target",), trim=trim.noun)
        captions = [trim_caption(label(target), trim, each) for each in values]
        return drafter.staged("trim", (noun,), (piece,), (claim, claim), captions, rng)

    def _heads(self, vocabulary: Vocabulary) -> list[tuple[Noun, str, Trim, tuple[str, str]]]:
        trims = {
            trim
            for noun in vocabulary.nouns
            for assets in noun.colours.values()
            for asset in assets
            for trim in asset.naming.trims.values()
        }
        return [
            (noun, colour, trim, pair)
            for trim in sorted(trims, key=lambda each: (each.noun, each.is_plural))
            for noun in vocabulary.of_those(
                lambda asset, trim=trim: trim in asset.naming.trims.values()  # type: ignore[misc]
            )
            for colour in noun.colours
            for pair in distinct_pairs()
            if all(colour not in PALETTE or are_distinct(colour, other) for other in pair)
        ]


FAMILIES: Mapping[Kind, Family] = {
    "beside": Beside(),
    "between": Between(),
    "row": Row(),
    "support": Carried(relation="on", larger=1.25, raised=0.3, least=MIN_NAMED),
    "inside": Carried(relation="in", raised=0.6),
    "under": Carried(relation="under"),
    "facing": Turned(),
    "posture": Tipped(),
    "trim": Trimmed(),
}
"""Families by kind; ladders, whose pairs share a scene, have their own module."""
