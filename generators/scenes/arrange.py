"""Arranges the objects of a draft: one attempt at both scenes of a pair."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random

from eqforge.generators.scenes.claims import HALF_SECTOR_DEG, HEADING_DEG, relation_holds
from eqforge.generators.scenes.drafts import CountedDraft, Piece, RelatedDraft
from eqforge.generators.scenes.placement import (
    BOTH,
    DECIMALS,
    Layout,
    beside,
    draw_camera,
    turn_deg,
)
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.generators.scenes.surroundings import MUTED, draw_backdrop, draw_light, draw_muted
from eqforge.schemas.records.scenes import Claim, Relation, SceneObject, SceneSpec, Vector

FARTHER = 1.1
"""How much farther the camera is from a support with copies than from two objects."""

SPOTS = 25
"""Places tried for one object before an attempt is given up."""

REACH_M = 2.0
"""How far from the middle distractors may stand, along each axis."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """The top of a support: width and depth in metres, height, and turn about the vertical."""

    sides_m: tuple[float, float]
    top_m: float
    yaw_deg: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Arranged:
    """Two scenes, and what their captions claim about them."""

    scenes: tuple[SceneSpec, SceneSpec]
    claims: tuple[Claim, Claim]


def arrange_related(
    draft: RelatedDraft, settings: SceneSettings, step_back: float, seed: int, rng: Random
) -> Arranged | None:
    """Tries once to place a target beside a reference; returns None on failure.

    Args:
      draft: the objects.
      settings: the limits.
      step_back: factor on the camera's distance.
      seed: of the renderer's noise.
      rng: what to draw with.
    """
    layout = Layout(camera=draw_camera(settings, rng, 0.35, step_back), settings=settings)
    target, reference = draft.target, draft.reference
    moves = _moves(draft, settings, rng)
    middle = _middle(layout, moves, rng)
    item = _put(layout, reference, middle, rng)
    if not layout.add(item, reference.asset):
        return None
    yaw = turn_deg(layout.camera, middle, _front_of(target), rng)
    for scene, (heading, distance) in enumerate(moves):
        place = beside(layout.camera, middle, heading, distance)
        item = replace(target.variants[scene], position=place, yaw_deg=yaw)
        if not layout.add(item, target.asset, (scene,)):
            return None
    if not all(_add_somewhere(layout, piece, rng) for piece in draft.distractors):
        return None
    floor = draw_muted(rng, _colours_of((target, reference, *draft.distractors)))
    scenes = _scenes(layout, floor, seed, rng)
    claims = _claims(draft.relations)
    margin = settings.min_relation_margin_deg
    is_plain = layout.is_plain(("target", "reference")) and all(
        relation_holds(scene, claim, margin) for scene, claim in zip(scenes, claims, strict=True)
    )
    return Arranged(scenes=scenes, claims=claims) if is_plain else None


def arrange_counted(
    draft: CountedDraft, settings: SceneSettings, step_back: float, seed: int, rng: Random
) -> Arranged | None:
    """Tries once to place copies on a support; returns None on failure.

    Args:
      draft: the objects.
      settings: the limits.
      step_back: factor on the camera's distance.
      seed: of the renderer's noise.
      rng: what to draw with.
    """
    base, copies = draft.support, draft.copies
    colours = _colours_of((copies[0], *draft.distractors))
    floor = draw_muted(rng, colours)
    paint = MUTED[draw_muted(rng, colours, avoid=floor)][0]
    yaw = round(rng.uniform(0.0, 360.0), 2)
    stand = replace(base.variants[0], colour=_if_allowed(base, paint), yaw_deg=yaw)
    top = round(base.asset.extent[2] * stand.scale, DECIMALS)
    camera = draw_camera(settings, rng, top, FARTHER * step_back)
    layout = Layout(camera=camera, settings=settings)
    if not layout.add_support(stand, base.asset):
        return None
    fewer = min(draft.counts)
    fuller = (draft.counts.index(max(draft.counts)),)
    # Copies in only one scene come last, so all others keep their numbers in the mask.
    ordered: list[tuple[Piece, tuple[int, ...]]] = [
        (piece, BOTH) for piece in (*copies[:fewer], *draft.distractors)
    ]
    ordered += [(piece, fuller) for piece in copies[fewer:]]
    ground = Ground(sides_m=_sides(stand, base), top_m=top, yaw_deg=stand.yaw_deg)
    if not all(_add_on(layout, ground, piece, where, rng) for piece, where in ordered):
        return None
    if not layout.is_plain([piece.variants[0].name for piece in copies]):
        return None
    claims = [_count_claim(draft, count) for count in draft.counts]
    return Arranged(scenes=_scenes(layout, floor, seed, rng), claims=(claims[0], claims[1]))


def _moves(
    draft: RelatedDraft, settings: SceneSettings, rng: Random
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Returns direction and distance of the target from the reference, in both scenes."""
    target, reference = draft.target, draft.reference
    reach = _radius(reference.variants[0], reference)
    reach += max(_radius(variant, target) for variant in target.variants)
    # Of two objects one behind the other, the nearer hides more the taller it is.
    apart = {
        "left": 0.15,
        "right": 0.15,
        "front": 0.3 + 0.4 * _height(target),
        "behind": 0.3 + 0.4 * _height(reference),
    }

    def move(relation: Relation) -> tuple[float, float]:
        half = HALF_SECTOR_DEG - settings.min_relation_margin_deg
        distance = 0.8 * reach + apart[relation] + rng.uniform(0.0, 0.9)
        return HEADING_DEG[relation] + rng.uniform(-half, half), distance

    first = move(draft.relations[0])
    return first, first if draft.change != "position" else move(draft.relations[1])


def _middle(
    layout: Layout, moves: tuple[tuple[float, float], tuple[float, float]], rng: Random
) -> Vector:
    """Returns a place for the reference such that the objects are near the image centre."""
    x = y = 0.0
    for heading, distance in moves:
        there = beside(layout.camera, (0.0, 0.0, 0.0), heading, distance)
        x, y = x - 0.25 * there[0], y - 0.25 * there[1]
    x, y = x + rng.uniform(-0.4, 0.4), y + rng.uniform(-0.4, 0.4)
    return (round(x, DECIMALS), round(y, DECIMALS), 0.0)


def _add_somewhere(layout: Layout, piece: Piece, rng: Random) -> bool:
    for _ in range(SPOTS):
        x, y = (round(rng.uniform(-REACH_M, REACH_M), DECIMALS) for _ in range(2))
        if layout.add(_put(layout, piece, (x, y, 0.0), rng), piece.asset):
            return True
    return False


def _add_on(
    layout: Layout, ground: Ground, piece: Piece, where: tuple[int, ...], rng: Random
) -> bool:
    """Adds an object at a random place on a support, fully on it at any rotation."""
    radius = _radius(piece.variants[0], piece)
    turn = math.radians(ground.yaw_deg)
    for _ in range(SPOTS):
        x, y = (rng.uniform(-1, 1) * max(side / 2 - radius, 0.0) for side in ground.sides_m)
        place = (
            round(x * math.cos(turn) - y * math.sin(turn), DECIMALS),
            round(x * math.sin(turn) + y * math.cos(turn), DECIMALS),
            ground.top_m,
        )
        if layout.add(
            _put(layout, piece, place, rng), piece.asset, where, layout.settings.min_copy_gap
        ):
            return True
    return False


def _put(layout: Layout, piece: Piece, place: Vector, rng: Random) -> SceneObject:
    yaw = turn_deg(layout.camera, place, _front_of(piece), rng)
    return replace(piece.variants[0], position=place, yaw_deg=yaw)


def _front_of(piece: Piece) -> float | None:
    return None if piece.asset.words is None else piece.asset.words.front_deg


def _scenes(layout: Layout, floor: str, seed: int, rng: Random) -> tuple[SceneSpec, SceneSpec]:
    backdrop = draw_backdrop(layout.settings, rng, floor)
    light = draw_light(rng, layout.camera, backdrop)
    first, second = (
        SceneSpec(
            objects=layout.objects(scene),
            camera=layout.camera,
            light=light,
            backdrop=backdrop,
            seed=seed,
        )
        for scene in BOTH
    )
    return first, second


def _claims(relations: tuple[Relation, Relation]) -> tuple[Claim, Claim]:
    first, second = (
        Claim(target="target", copies=("target",), relation=relation, reference="reference")
        for relation in relations
    )
    return first, second


def _count_claim(draft: CountedDraft, count: int) -> Claim:
    names = tuple(piece.variants[0].name for piece in draft.copies[:count])
    return Claim(target=names[0], copies=names)


def _if_allowed(piece: Piece, colour: Vector) -> Vector | None:
    words = piece.asset.words
    return colour if words is not None and words.is_recolourable else None


def _radius(item: SceneObject, piece: Piece) -> float:
    """Returns the distance from the middle of an object's footprint to its corners."""
    return math.hypot(*_sides(item, piece)) / 2


def _height(piece: Piece) -> float:
    return piece.asset.extent[2] * max(variant.scale for variant in piece.variants)


def _sides(item: SceneObject, piece: Piece) -> tuple[float, float]:
    width, depth, _ = piece.asset.extent
    return width * item.scale, depth * item.scale


def _colours_of(pieces: Iterable[Piece]) -> list[str]:
    return [colour for piece in pieces for colour in piece.colours]
