"""Further kinds of pairs, each with its contents, captions, claims and places.

Captions of a family name things. In the second scene some of them stand elsewhere, or differently.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from random import Random
from typing import Protocol

from eqforge.generators.scenes.captions import (
    facing_caption,
    posture_caption,
    row_caption,
    sentence,
    trim_caption,
)
from eqforge.generators.scenes.claims import names_of
from eqforge.generators.scenes.contents import Noun, Vocabulary, far_colours
from eqforge.generators.scenes.drafts import Drafter, label, shuffled
from eqforge.generators.scenes.manifest import Asset, Room, Trim
from eqforge.generators.scenes.palette import PALETTE, are_distinct, distinct_pairs
from eqforge.generators.scenes.pieces import Piece
from eqforge.generators.scenes.view import DECIMALS
from eqforge.schemas.records.scenes import Claim, Facing, Kind, Posture, Relation

Spot = tuple[float, float, float]
"""To the right of the scene's middle and away from the camera, as the camera sees it, and above the
floor, in metres."""

Spots = Mapping[str, Spot]
"""By the names of objects."""

MIDDLE: Spot = (0.0, 0.0, 0.0)
GAP_M = (0.05, 0.2)
"""Between things that stand close together, where their corners do not meet."""

CLOSE = 0.85
"""Share of two radii at which things that stand side by side seldom touch."""

FORWARD = 0.7
"""Share of the difference of two radii by which a thing next to a large one stands nearer to the
camera: their front sides are about in line, so that the lower end of neither is higher in the
picture."""

MIN_NAMED = 0.03
"""Least share of the picture that an object covers which a caption names, in the first try."""


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
    """A kind of pairs. All its contents are numbered."""

    def size(self, vocabulary: Vocabulary) -> int:
        """Return the number of contents."""

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        """Draft one of the contents; what it leaves open is drawn at random."""

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        """Draw where the things stand in the first and in the second scene."""


def draw_pieces(
    drafter: Drafter, nouns: Sequence[Noun], names: Sequence[str], first: str | None, rng: Random
) -> list[Piece]:
    """Draw things in colours that are not mistaken for each other, if there are such colours.

    The first thing has the colour `first`, or a drawn one if that is None.
    """
    found: list[Piece] = []
    for noun, name in zip(nouns, names, strict=True):
        used = [colour for piece in found for colour in piece.colours]
        colour = first if first is not None and not found else None
        if colour is None:
            colour = rng.choice(far_colours(noun, used) or list(noun.colours))
        found.append(drafter.piece(noun, colour, name, rng))
    return found


def drafted(
    drafter: Drafter,
    change: str,
    nouns: Sequence[Noun],
    pieces: Sequence[Piece],
    claims: Sequence[Claim],
    captions: Sequence[str],
    rng: Random,
) -> StagedDraft:
    """Return a draft of things that are turned alike, with bystanders."""
    return StagedDraft(
        change=change,
        pieces=tuple(pieces),
        distractors=drafter.bystanders(nouns, pieces, rng),
        claims=(claims[0], claims[1]),
        captions=(captions[0], captions[1]),
        is_even=True,
    )


def _moving(
    drafter: Drafter,
    nouns: Sequence[Noun],
    pieces: Sequence[Piece],
    words: Mapping[Relation, str],
    rng: Random,
    stand: Piece | None = None,
) -> StagedDraft:
    """Draft things of which the first moves between two relations; both captions name all."""
    first, second = words
    relations = shuffled((first, second), rng)
    target, reference, *others = pieces
    there = " and the ".join(label(piece).singular for piece in (reference, *others))
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
    captions = [sentence(label(target), words[relation], there) for relation in relations]
    draft = drafted(drafter, "position", nouns, pieces, claims, captions, rng)
    return replace(draft, stand=stand, is_even=False)


def _placed(draft: StagedDraft, spots: Mapping[str, Spots]) -> tuple[Spots, Spots]:
    """Return the spots of both scenes, by the relation that each of them claims."""
    first, second = (spots[str(claim.relation)] for claim in draft.claims)
    return first, second


def _close_m(first: Piece, second: Piece, rng: Random) -> float:
    """Draw a distance of the middles of two things that stand side by side."""
    return CLOSE * (first.radius + second.radius) + rng.uniform(*GAP_M)


def _next_to(target: Piece, reference: Piece, rng: Random) -> Spot:
    """Draw a spot on the floor for a thing next to a larger one in the middle."""
    side = 1.0 if rng.random() < 0.5 else -1.0
    right = side * _close_m(target, reference, rng)
    forward = FORWARD * (reference.radius - target.radius)
    return (right, rng.uniform(-0.1, 0.1) - forward, 0.0)


class Beside:
    """A thing next to another, or far from it."""

    FAR_M = (1.3, 2.0)
    """How much farther away a thing is that is far from another one."""

    def size(self, vocabulary: Vocabulary) -> int:
        return len(vocabulary.coloured) * (len(vocabulary.nouns) - 1)

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        head, far = divmod(number, len(vocabulary.nouns) - 1)
        noun, colour = vocabulary.coloured[head]
        nouns = (noun, vocabulary.other(noun, far))
        pieces = draw_pieces(drafter, nouns, ("target", "reference"), colour, rng)
        return _moving(drafter, nouns, pieces, {"near": "next to", "far": "far from"}, rng)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        # To the side, where a camera sees how far apart they are.
        side, near = (
            1.0 if rng.random() < 0.5 else -1.0,
            _close_m(draft.pieces[0], draft.pieces[1], rng),
        )
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
        others = len(vocabulary.nouns) - 1
        return len(vocabulary.coloured) * len(self.SIDES) * (others * (others - 1) // 2)

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        pairs = list(combinations(range(len(vocabulary.nouns) - 1), 2))
        number, pair = divmod(number, len(pairs))
        head, place = divmod(number, len(self.SIDES))
        noun, colour = vocabulary.coloured[head]
        nouns = (noun, *(vocabulary.other(noun, far) for far in shuffled(pairs[pair], rng)))
        pieces = draw_pieces(drafter, nouns, ("target", "reference", "other"), colour, rng)
        side = self.SIDES[place]
        words: dict[Relation, str] = {"between": "between", side: f"to the {side} of"}
        return _moving(drafter, nouns, pieces, words, rng)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        # The two others stand as the caption names them, left to right.
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
            draft,
            {where: {"target": (x, near, 0.0), **others} for where, x in across.items()},
        )


class Row:
    """Three things in a row, of which two change places."""

    NAMES = ("target", "second", "third")
    ORDERS = tuple(
        (one, two)
        for one, two in combinations(permutations(range(3)), 2)
        if sum(a != b for a, b in zip(one, two, strict=True)) == 2
    )
    """Two orders of three things, in which two have changed places."""

    def size(self, vocabulary: Vocabulary) -> int:
        number = len(vocabulary.nouns)
        return number * (number - 1) * (number - 2) // 6 * len(self.ORDERS)

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        three, orders = divmod(number, len(self.ORDERS))
        nouns = list(combinations(vocabulary.nouns, 3))[three]
        pieces = tuple(draw_pieces(drafter, nouns, self.NAMES, None, rng))
        orders_of = shuffled(self.ORDERS[orders], rng)
        names = [[self.NAMES[place] for place in order] for order in orders_of]
        claims = [
            Claim(target=one, copies=(one,), relation="row", reference=two, others=(last,))
            for one, two, last in names
        ]
        captions = [row_caption([label(pieces[place]) for place in order]) for order in orders_of]
        draft = drafted(drafter, "order", nouns, pieces, claims, captions, rng)
        return replace(draft, is_even=False)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        # So far apart that any two may change places.
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


class Support:
    """A thing on another, or on the floor next to it."""

    ROOM = 0.95
    """Greatest share of the shorter side of what it stands on, from corner to corner."""

    LARGER = 1.25
    """How much larger than usual what it stands on is."""

    def size(self, vocabulary: Vocabulary) -> int:
        return len(_carried(vocabulary, vocabulary.stands))

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        noun, colour, carrier = _carried(vocabulary, vocabulary.stands)[number]
        nouns = (noun, carrier)
        target, reference = draw_pieces(drafter, nouns, ("target", "reference"), colour, rng)
        reference = reference.scaled(self.LARGER)
        target = target.scaled(min(1.0, self.ROOM * min(reference.sides()) / (2 * target.radius)))
        words: dict[Relation, str] = {"on": "on", "near": "next to"}
        return _moving(drafter, nouns, (target, reference), words, rng, stand=reference)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        target, reference = draft.pieces
        top = (0.0, 0.0, round(reference.height, DECIMALS))
        return _placed(
            draft,
            {
                "on": {"reference": MIDDLE, "target": top},
                "near": {"reference": MIDDLE, "target": _next_to(target, reference, rng)},
            },
        )


def _carried(vocabulary: Vocabulary, carriers: list[Noun]) -> list[tuple[Noun, str, Noun]]:
    """Return every thing in every colour with every carrier, which is none of the things."""
    names = {carrier.words.noun for carrier in carriers}
    return [
        (noun, colour, carrier)
        for noun, colour in vocabulary.coloured
        if noun.words.noun not in names
        for carrier in carriers
    ]


@dataclass(frozen=True, slots=True)
class Within:
    """A thing in a container or under something, or on the floor next to it.

    Attributes:
      relation: `in` or `under`.
      raised: share of the camera's elevations that is left out: one looks into a container from
        above.
    """

    relation: Relation
    raised: float = 0.0

    def size(self, vocabulary: Vocabulary) -> int:
        return len(_carried(vocabulary, vocabulary.with_room(self.relation == "in")))

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        roomy = vocabulary.with_room(self.relation == "in")
        noun, colour, holder = _carried(vocabulary, roomy)[number]
        nouns = (noun, holder)
        target, reference = draw_pieces(drafter, nouns, ("target", "reference"), colour, rng)
        reference = reference.scaled(1.3)  # than usual, as it has room for another thing
        room = self._room(reference)
        # At most 95 % of the room, corner to corner and in height.
        snug = min(1.0, room.radius / target.radius, room.height / target.height)
        target = target.scaled(0.95 * snug)
        words: dict[Relation, str] = {self.relation: self.relation, "near": "next to"}
        draft = _moving(drafter, nouns, (target, reference), words, rng, stand=reference)
        return replace(draft, raised=self.raised, least=0.01)

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        target, reference = draft.pieces
        room = self._room(reference)
        # At most 60 % of a thing are below a container's rim: lower things are held higher up.
        height = max(room.floor, room.rim - 0.6 * target.height)
        inside = (0.0, 0.0, round(height, DECIMALS))
        return _placed(
            draft,
            {
                str(self.relation): {"reference": MIDDLE, "target": inside},
                "near": {"reference": MIDDLE, "target": _next_to(target, reference, rng)},
            },
        )

    def _room(self, piece: Piece) -> Room:
        """Return the room of a thing as it stands in a scene, in metres."""
        words = piece.asset.words
        assert words is not None
        room = words.holds if self.relation == "in" else words.shelters
        assert room is not None
        return room.scaled(max(piece.asset.extent) * piece.variants[0].scale)


class _Single:
    """A family of one thing in the middle, of which both captions speak."""

    def spots(self, draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
        del draft, rng
        return {"target": MIDDLE}, {"target": MIDDLE}


class Turned(_Single):
    """A thing that has a front, turned in two directions."""

    TURNS_DEG: Mapping[Facing, float] = {
        "facing left": -90.0,
        "facing right": 90.0,
        "facing the camera": 0.0,
        "facing away": 180.0,
    }
    """By how much a thing is turned from where its front is towards the camera, counter-clockwise
    seen from above."""

    PAIRS = tuple(combinations(TURNS_DEG, 2))

    def size(self, vocabulary: Vocabulary) -> int:
        return len(self._heads(vocabulary)) * len(self.PAIRS)

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        head, turns = divmod(number, len(self.PAIRS))
        noun, colour = self._heads(vocabulary)[head]
        (target,) = draw_pieces(drafter, (noun,), ("target",), colour, rng)
        relations = shuffled(self.PAIRS[turns], rng)
        item = target.variants[0]
        first, second = (replace(item, yaw_deg=self.TURNS_DEG[each]) for each in relations)
        piece = replace(target, variants=(first, second))
        claims = [Claim(target="target", copies=("target",), relation=each) for each in relations]
        captions = [facing_caption(label(target), each) for each in relations]
        return drafted(drafter, "orientation", (noun,), (piece,), claims, captions, rng)

    def _heads(self, vocabulary: Vocabulary) -> Sequence[tuple[Noun, str]]:
        """Return the things whose every asset has a front that shows where it faces."""
        return [
            (noun, colour)
            for noun, colour in vocabulary.coloured
            if all(asset.words is not None and asset.words.faces for asset in noun.colours[colour])
        ]


class Tipped(_Single):
    """A thing that stands upright, or lies on its side."""

    TALL = 1.2
    """How much taller than wide a thing is at least, so that one sees whether it lies."""

    POSTURES: tuple[Posture, Posture] = ("upright", "lying")

    def size(self, vocabulary: Vocabulary) -> int:
        return len(self._heads(vocabulary))

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        noun, colour = self._heads(vocabulary)[number]
        (target,) = draw_pieces(drafter, (noun,), ("target",), colour, rng)
        postures = shuffled(self.POSTURES, rng)
        # It lies across the view, its top to either side but where its back would be seen then.
        turn = ((target.front_deg or 0.0) + 90.0) % 180.0
        if target.asset.words is None or not target.asset.words.faces:
            turn += rng.choice((0.0, 180.0))
        item = replace(target.variants[0], yaw_deg=turn)
        first, second = (replace(item, posture=each) for each in postures)
        claims = [Claim(target="target", copies=("target",), relation=each) for each in postures]
        captions = [posture_caption(label(target), each) for each in postures]
        piece = replace(target, variants=(first, second))
        return drafted(drafter, "posture", (noun,), (piece,), claims, captions, rng)

    def _heads(self, vocabulary: Vocabulary) -> list[tuple[Noun, str]]:
        def lies(asset: Asset) -> bool:
            width, _, height = asset.extent
            return asset.words is not None and asset.words.lies and height >= self.TALL * width

        return [(noun, colour) for noun in vocabulary.of_those(lies) for colour in noun.colours]


class Trimmed(_Single):
    """A part of a thing in two colours: a toy house with a green roof, or with a blue one."""

    def size(self, vocabulary: Vocabulary) -> int:
        return len(self._heads(vocabulary))

    def draft(
        self, drafter: Drafter, vocabulary: Vocabulary, number: int, rng: Random
    ) -> StagedDraft:
        noun, colour, trim, pair = self._heads(vocabulary)[number]
        (target,) = draw_pieces(drafter, (noun,), ("target",), colour, rng)
        parts = sorted(part for part, known in _trims(target.asset).items() if known == trim)
        values = shuffled(pair, rng)
        first, second = (
            replace(target.variants[0], trims=tuple((part, PALETTE[each]) for part in parts))
            for each in values
        )
        piece = replace(target, variants=(first, second), colours=(*target.colours, *values))
        claim = Claim(target="target", copies=("target",), trim=trim.noun)
        captions = [trim_caption(label(target), trim, each) for each in values]
        return drafted(drafter, "trim", (noun,), (piece,), (claim, claim), captions, rng)

    def _heads(self, vocabulary: Vocabulary) -> list[tuple[Noun, str, Trim, tuple[str, str]]]:
        """Return things in their own colour, a part of theirs, and two colours unlike that."""
        trims = {
            trim
            for noun in vocabulary.nouns
            for some in noun.colours.values()
            for asset in some
            for trim in _trims(asset).values()
        }
        return [
            (noun, colour, trim, pair)
            for trim in sorted(trims, key=lambda each: (each.noun, each.is_plural))
            for noun in vocabulary.of_those(
                lambda asset, trim=trim: trim in _trims(asset).values()  # type: ignore[misc]
            )
            for colour in noun.colours
            for pair in distinct_pairs()
            if all(colour not in PALETTE or are_distinct(colour, other) for other in pair)
        ]


def _trims(asset: Asset) -> Mapping[str, Trim]:
    return {} if asset.words is None else asset.words.trims


FAMILIES: Mapping[Kind, Family] = {
    "beside": Beside(),
    "between": Between(),
    "row": Row(),
    "support": Support(),
    "inside": Within("in", raised=0.6),
    "under": Within("under"),
    "facing": Turned(),
    "posture": Tipped(),
    "trim": Trimmed(),
}
"""By kind; ladders, whose pairs share a scene, are in a module of their own."""
