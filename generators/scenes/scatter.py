"""Places the objects of plain scenes: the camera comes first, and the objects where it sees them.

What is drawn, and in which order, is part of published specs: tests hold their digests.
"""

from dataclasses import replace
from random import Random

from eqforge.generators.scenes.claims import HALF_SECTOR_DEG, HEADING_DEG
from eqforge.generators.scenes.pieces import CountedDraft, Piece, RelatedDraft
from eqforge.generators.scenes.placement import (
    Ground,
    Layout,
    Moves,
    beside,
    draw_camera,
    put,
    turn_deg,
)
from eqforge.generators.scenes.settings import MAX_STEP_BACK, SceneSettings
from eqforge.generators.scenes.view import DECIMALS
from eqforge.schemas.records.scenes import Relation, Vector

FARTHER = 1.1
"""How much farther the camera is from a support with copies than from two objects."""

SPOTS = 25
"""Places tried for one object before an attempt is given up."""

REACH_M = 2.0
"""How far from the middle distractors may stand, along each axis."""


def scatter_related(
    draft: RelatedDraft, settings: SceneSettings, progress: float, rng: Random
) -> Layout | None:
    """Tries once to place a target beside a reference in view of a camera that is drawn."""
    farther = 1 + MAX_STEP_BACK * progress
    layout = Layout(camera=draw_camera(settings, rng, 0.35, farther), settings=settings)
    target, reference = draft.target, draft.reference
    moves = _draw_moves(draft, settings, rng)
    middle = _middle(layout, moves, rng)
    if not layout.add(put(layout.camera, reference, middle, rng), reference.asset):
        return None
    yaw = turn_deg(layout.camera, middle, target.front_deg, rng)
    for scene, (heading, distance) in enumerate(moves):
        place = beside(layout.camera, middle, heading, distance)
        item = replace(target.variants[scene], position=place, yaw_deg=yaw)
        if not layout.add(item, target.asset_in(scene), (scene,)):
            return None
    is_full = all(_add_somewhere(layout, piece, rng) for piece in draft.distractors)
    return layout if is_full else None


def scatter_counted(
    draft: CountedDraft, paint: Vector, settings: SceneSettings, progress: float, rng: Random
) -> Layout | None:
    """Tries once to place copies on a support in view of a camera that is drawn."""
    yaw = round(rng.uniform(0.0, 360.0), 2)
    stand = replace(draft.support.painted(paint), yaw_deg=yaw)
    ground = Ground.on(draft.support, yaw)
    farther = FARTHER * (1 + MAX_STEP_BACK * progress)
    camera = draw_camera(settings, rng, ground.top_m, farther)
    layout = Layout(camera=camera, settings=settings)
    if not layout.add_support(stand, draft.support.asset):
        return None
    # Copies in only one scene come last, so all others keep their numbers in the mask.
    both = [each for each in draft.by_scene if len(each[1]) == 2]
    others = [(piece, (0, 1)) for piece in draft.distractors]
    ordered = [*both, *others, *draft.by_scene[len(both) :]]
    is_full = all(_add_on(layout, ground, piece, where, rng) for piece, where in ordered)
    return layout if is_full else None


def _middle(layout: Layout, moves: Moves, rng: Random) -> Vector:
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
        if layout.add(put(layout.camera, piece, (x, y, 0.0), rng), piece.asset):
            return True
    return False


def _add_on(
    layout: Layout, ground: Ground, piece: Piece, where: tuple[int, ...], rng: Random
) -> bool:
    """Adds an object at a random place on a support, fully on it at any rotation."""
    for _ in range(SPOTS):
        place = ground.draw_place(piece.radius, rng)
        item = put(layout.camera, piece, place, rng)
        if layout.add(item, piece.asset, where, layout.settings.min_copy_gap):
            return True
    return False


def _draw_moves(draft: RelatedDraft, settings: SceneSettings, rng: Random) -> Moves:
    """Draws where a target stands beside its reference, in both scenes."""
    target, reference = draft.target, draft.reference
    reach = reference.radius + target.radius
    # Of two objects one behind the other, the nearer hides more the taller it is.
    apart = {
        "left": 0.15,
        "right": 0.15,
        "front": 0.3 + 0.4 * target.height,
        "behind": 0.3 + 0.4 * reference.height,
    }

    def move(relation: Relation) -> tuple[float, float]:
        half = HALF_SECTOR_DEG - settings.min_relation_margin_deg
        distance = 0.8 * reach + apart[relation] + rng.uniform(0.0, 0.9)
        return HEADING_DEG[relation] + rng.uniform(-half, half), distance

    first = move(draft.relations[0])
    return first, first if draft.change != "position" else move(draft.relations[1])
