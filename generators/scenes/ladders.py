"""Build ladders: one scene with a difference of 1, 2, 4 and 8 just-noticeable steps.

Two copies of a thing stand side by side, and the captions compare them: which is larger or lighter,
which is nearer to a third thing, or which side has more. The second scene swaps their roles.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import get_args

from eqforge.generators.scenes.claims import JUST_NOTICEABLE, STEPS
from eqforge.generators.scenes.contents import Noun, Vocabulary, recolourable
from eqforge.generators.scenes.drafts import Drafter, shuffled, usual_scale
from eqforge.generators.scenes.families import CLOSE
from eqforge.generators.scenes.palette import PALETTE, paled, shifted
from eqforge.generators.scenes.pieces import Piece, Spots, StagedDraft
from eqforge.generators.scenes.view import DECIMALS, camera_axes, to_camera
from eqforge.schemas.records.scenes import (
    Claim,
    Comparison,
    Grade,
    SceneObject,
    ScenePair,
    SceneSpec,
)

GRADES: tuple[Grade, ...] = get_args(Grade)
LEFT, RIGHT = "left", "right"
SIDES = (LEFT, RIGHT)

APART_M = (0.12, 0.3)  # between two things that are compared
ROOM_M = 0.45  # on both sides of a thing in their middle, at least
COPY_M = 0.32  # largest extent of a copy that is counted
CELLS = 3  # copies stand in a square of so many rows and columns on each side
CELL_M, DEEP_M = 0.46, 0.7  # width and depth of a cell
AISLE_M = 0.5  # between the two sides
HIGH = 1.5  # where copies are counted the camera is higher by half of its range
LIGHTNESS, CHROMA = 52.0, 0.4
"""L* in the middle of a lightness ladder, and the share of chroma kept: a colour this pale has room
to become lighter and darker."""

_BASES = ("red", "green", "blue", "purple", "pink", "grey")  # they keep their name when pale


def num_ladders(vocabulary: Vocabulary, grade: Grade) -> int:
    return len(_heads(vocabulary)[grade])


def draft_ladder(drafter: Drafter, grade: Grade, number: int, rng: Random) -> StagedDraft:
    noun, colour = _heads(drafter.vocabulary)[grade][number]
    order = shuffled(SIDES, rng)
    if grade == "count":
        return _count(drafter, noun, colour, order, rng)
    if grade == "place":
        others = [each for each in drafter.vocabulary.nouns if each is not noun]
        return _place(drafter, (noun, rng.choice(others)), colour, order, rng)
    return _size_or_lightness(drafter, noun, colour, grade, order, rng)


def ladder_spots(draft: StagedDraft, rng: Random) -> tuple[Spots, Spots]:
    if draft.change == "count":
        cells = {name: _cell(name, rng) for name in (piece.name for piece in draft.pieces)}
        return cells, cells
    *middle, left, right = draft.pieces
    across = CLOSE * (left.radius + right.radius) + rng.uniform(*APART_M)
    if middle:
        across += 2 * middle[0].radius + 2 * ROOM_M
    sides = {LEFT: (-across / 2, 0.0, 0.0), RIGHT: (across / 2, 0.0, 0.0)}
    if not middle:
        return sides, sides
    off = ROOM_M * 0.6
    first, second = (
        {**sides, "target": (off if claim.reference == RIGHT else -off, 0.0, 0.0)}
        for claim in draft.claims
    )
    return first, second


def ladder_step(pair: ScenePair, draft: StagedDraft, number: int) -> ScenePair:
    change: Grade = next(each for each in GRADES if each == draft.change)
    size = STEPS[number] * JUST_NOTICEABLE[change]
    # If lightness changes, all sides have to get the same light.
    scenes = pair.scenes if change == "lightness" else tuple(map(_facing, pair.scenes))
    (first, one), (second, two) = (
        _STEPPED[change](scene, claim, size)
        for scene, claim in zip(scenes, draft.claims, strict=True)
    )
    return replace(pair, scenes=(first, second), claims=(one, two))


def _heads(vocabulary: Vocabulary) -> dict[Grade, Sequence[tuple[Noun, str]]]:
    one = [each for each in vocabulary.coloured if not each[0].words.is_plural]
    tinted = [(noun, base) for noun, base in one if base in _BASES and recolourable(noun, [base])]
    return {"size": one, "lightness": tinted, "place": one, "count": one}


def _size_or_lightness(
    drafter: Drafter, noun: Noun, colour: str, change: str, order: tuple[str, str], rng: Random
) -> StagedDraft:
    copy = _tinted(drafter, noun, colour, rng) if change == "lightness" else None
    copy = copy or drafter.piece(noun, colour, LEFT, rng)
    relation: Comparison = "larger" if change == "size" else "lighter"
    ways = (order, order[::-1])
    claims = [
        Claim(target=side, copies=(side,), relation=relation, reference=other)
        for side, other in ways
    ]
    name = noun.words.noun
    captions = [
        f"The {name} on the {side} is {relation} than the {name} on the {other}."
        for side, other in ways
    ]
    return drafter.staged(change, (noun,), [_named(copy, side) for side in SIDES], claims,
                    captions, rng)  # fmt: skip


def _tinted(drafter: Drafter, noun: Noun, colour: str, rng: Random) -> Piece:
    asset = rng.choice(recolourable(noun, [colour]))
    piece = drafter.piece(noun, colour, LEFT, rng)
    item = replace(
        piece.variants[0],
        asset=asset.asset_id,
        scale=usual_scale(asset),
        colour=paled(PALETTE[colour], LIGHTNESS, CHROMA),
    )
    return replace(piece, asset=asset, variants=(item, item))


def _place(
    drafter: Drafter, nouns: tuple[Noun, Noun], colour: str, order: tuple[str, str], rng: Random
) -> StagedDraft:
    target = drafter.piece(nouns[0], colour, "target", rng)
    copy = drafter.piece(nouns[1], rng.choice(list(nouns[1].colours)), LEFT, rng)
    near = Claim(target="target", copies=("target",), relation="nearer")
    ways = (order, order[::-1])
    claims = [replace(near, reference=side, others=(other,)) for side, other in ways]
    verb = "are" if nouns[0].words.is_plural else "is"
    ones = "ones" if nouns[1].words.is_plural else "one"
    captions = [
        f"The {nouns[0].words.noun} {verb} nearer to the {nouns[1].words.noun} on the {side} than "
        f"to the {ones} on the {other}."
        for side, other in ways
    ]
    pieces = [target, *(_named(copy, side) for side in SIDES)]
    return drafter.staged("place", nouns, pieces, claims, captions, rng)


def _count(
    drafter: Drafter, noun: Noun, colour: str, order: tuple[str, str], rng: Random
) -> StagedDraft:
    piece = drafter.piece(noun, colour, LEFT, rng)
    copy = piece.scaled(COPY_M / (max(piece.asset.extent) * piece.variants[0].scale))
    most = 1 + STEPS[-1]
    copies = [_named(copy, f"{side}{each}") for side in SIDES for each in range(1, most + 1)]
    claims = [_more(side, STEPS[-1]) for side in order]
    captions = [
        f"There are more {noun.words.plural} on the {side} than on the {_other(side)}."
        for side in order
    ]
    draft = drafter.staged("count", (noun,), copies, claims, captions, rng)
    return replace(draft, raised=HIGH, least=0.0)


def _more(side: str, step: int) -> Claim:
    return Claim(
        target=f"{side}1",
        copies=tuple(f"{side}{number}" for number in range(1, step + 2)),
        relation="more",
        reference=f"{_other(side)}1",
    )


def _named(piece: Piece, name: str) -> Piece:
    first, second = (replace(variant, name=name) for variant in piece.variants)
    return replace(piece, variants=(first, second))


def _other(side: str) -> str:
    return RIGHT if side == LEFT else LEFT


def _cell(name: str, rng: Random) -> tuple[float, float, float]:
    """Draw where a copy stands in the square of its side; the first stands in its middle."""
    side, number = (LEFT, name[4:]) if name.startswith(LEFT) else (RIGHT, name[5:])
    order = (4, 0, 8, 2, 6, 1, 7, 3, 5)
    row, column = divmod(order[int(number) - 1], CELLS)
    jitter = [rng.uniform(-0.05, 0.05) * CELL_M for _ in range(2)]
    stagger = (row % 2 - 0.5) * CELL_M / 2
    across = AISLE_M / 2 + (column + 0.5) * CELL_M + jitter[0]
    return (
        (-across if side == LEFT else across) + stagger,
        (row - 1) * DEEP_M + jitter[1],
        0.0,
    )


def _facing(scene: SceneSpec) -> SceneSpec:
    axes = camera_axes(scene.camera)
    objects = []
    for item in scene.objects:
        if item.name.startswith(SIDES):
            x, _, z = to_camera(scene.camera, [item.position])[0].tolist()
            middle = math.degrees(math.atan2(x, z * float((axes[2, :2] ** 2).sum() ** 0.5)))
            item = replace(item, yaw_deg=round((item.yaw_deg - middle) % 360, 2))
        objects.append(item)
    return replace(scene, objects=tuple(objects))


Stepped = tuple[SceneSpec, Claim]


def _sized(scene: SceneSpec, claim: Claim, percent: float) -> Stepped:
    root = math.sqrt(1 + percent / 100)
    factors = {claim.target: root, str(claim.reference): 1 / root}
    return _changed(scene, lambda item: replace(
        item, scale=round(item.scale * factors.get(item.name, 1.0), 6)
    )), claim  # fmt: skip


def _lit(scene: SceneSpec, claim: Claim, steps: float) -> Stepped:
    halves = {claim.target: steps / 2, str(claim.reference): -steps / 2}

    def change(item: SceneObject) -> SceneObject:
        if item.name not in halves or item.colour is None:
            return item
        return replace(item, colour=shifted(item.colour, halves[item.name]))

    return _changed(scene, change), claim


def _moved(scene: SceneSpec, claim: Claim, degrees: float) -> Stepped:
    """Move the target along the line between the two, away from the middle by half of the angle."""
    items = {item.name: item for item in scene.objects}
    left, right = items[LEFT].position, items[RIGHT].position
    (lx, _, lz), (rx, _, rz) = to_camera(scene.camera, [left, right]).tolist()
    middle = (math.atan2(lx, lz) + math.atan2(rx, rz)) / 2
    toward = 1.0 if claim.reference == RIGHT else -1.0
    slope = math.tan(middle + toward * math.radians(degrees) / 2)
    # On the line from left to right, where x / z is the slope.
    share = (slope * lz - lx) / ((rx - lx) - slope * (rz - lz))
    x, y = (round(a + share * (b - a), DECIMALS + 2) for a, b in zip(left[:2], right[:2],
                                                                     strict=True))  # fmt: skip
    return _changed(scene, lambda item: (
        replace(item, position=(x, y, 0.0)) if item.name == "target" else item
    )), claim  # fmt: skip


def _counted(scene: SceneSpec, claim: Claim, copies: float) -> Stepped:
    side = LEFT if claim.target.startswith(LEFT) else RIGHT
    new_claim = _more(side, round(copies))
    kept = {*new_claim.copies, str(new_claim.reference)}
    others = [item for item in scene.objects if not item.name.startswith(SIDES)]
    firsts = [item for item in scene.objects if item.name in ("left1", "right1")]
    extra = [item for item in scene.objects if item.name in kept and item not in firsts]
    return replace(scene, objects=(*firsts, *others, *extra)), new_claim


def _changed(scene: SceneSpec, change: Callable[[SceneObject], SceneObject]) -> SceneSpec:
    return replace(scene, objects=tuple(map(change, scene.objects)))


_STEPPED: Mapping[Grade, Callable[[SceneSpec, Claim, float], Stepped]] = {
    "size": _sized,
    "lightness": _lit,
    "place": _moved,
    "count": _counted,
}
