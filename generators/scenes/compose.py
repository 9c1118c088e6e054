"""Compose photographic scenes: place the objects first, then the camera near them."""

import math
from dataclasses import replace
from random import Random

import numpy as np

from eqforge.generators.scenes.claims import HALF_SECTOR_DEG, HEADING_DEG
from eqforge.generators.scenes.legible import is_counted, is_related, share
from eqforge.generators.scenes.pieces import CountedDraft, Piece, RelatedDraft
from eqforge.generators.scenes.placement import (
    BOTH,
    Ground,
    Layout,
    Moves,
    Placed,
    beside,
    put,
    turn_deg,
)
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.generators.scenes.view import (
    DECIMALS,
    Standpoint,
    Subjects,
    camera_axes,
    corners,
    frame,
)
from eqforge.schemas.records.scenes import Relation, SceneCamera, Vector

BYSTANDER_SPOTS = 30  # places tried for one of them before it is left out
LEAST = 0.006  # least share of the picture that one covers, unless the user wants less
MAX_HIDDEN = 0.35  # greatest share of the box of one that nearer boxes hide
MOST = 0.9  # greatest size of one in the picture, as a share of the largest named object's
AHEAD = (0.7, 2.6)  # their distances from the camera, as shares of the scene's


def add_bystanders(
    layout: Layout, pieces: tuple[Piece, ...], ground: Ground | None, progress: float, rng: Random
) -> bool:
    named = [placed for placed in layout.placed if not placed.is_support]
    added = [_add(layout, piece, named, ground, rng) for piece in pieces]
    return sum(added) >= (1 - 8 * progress) * len(added) / 2


def _add(
    layout: Layout, piece: Piece, named: list[Placed], ground: Ground | None, rng: Random
) -> bool:
    is_free = layout.settings.distance_m is not None
    least = 0.0 if is_free else min(LEAST, layout.settings.target_area[0] / 6)
    most = max(MOST * max(map(share, named)), 2 * least)
    for number in range(BYSTANDER_SPOTS):
        if ground is None or number % 2:
            place = _draw_spot(layout.camera, rng)
        else:
            place = ground.draw_place(piece.radius, rng)
        if layout.is_taken(piece, place):
            continue
        new = layout.fit(put(layout.camera, piece, place, rng), piece.asset)
        if new is not None and least <= share(new) <= most and _is_aside(layout, new):
            layout.placed.append(new)
            return True
    return False


def _draw_spot(camera: SceneCamera, rng: Random) -> Vector:
    right, _, forward = camera_axes(camera)
    aside = rng.uniform(-0.45, 0.45) * camera.sensor_width_mm / camera.focal_length_mm
    ahead = math.dist(camera.position, (0.0, 0.0, 0.0)) * rng.uniform(*AHEAD)
    flat = math.hypot(forward[0], forward[1])
    x, y = (camera.position[k] + ahead * (forward[k] / flat + aside * right[k]) for k in (0, 1))
    return (round(float(x), DECIMALS), round(float(y), DECIMALS), 0.0)


def _is_aside(layout: Layout, new: Placed) -> bool:
    for other in layout.placed:
        if other.is_support:
            gap = new.footprint.gap(other.footprint)
            is_clear = new.item.position[2] > 0 or (
                gap >= layout.settings.min_clearance_m and _are_apart(new, other)
            )
        else:
            is_clear = other.distance_m < new.distance_m or _are_apart(new, other)
        if not is_clear:
            return False
    return all(layout.hidden(new, scene) <= MAX_HIDDEN for scene in BOTH)


def _are_apart(first: Placed, second: Placed) -> bool:
    return first.silhouette.gap(second.silhouette) >= 0


SPOTS = 50  # places tried for one copy before an attempt is given up
PIVOT_M = 0.35  # height of the point around which the camera is turned, above the floor
USUAL_M = 4.0  # a distance of the camera, to judge what hides what before it is known
RAISED = 0.6  # share of the elevations that is left out where one object is behind the other
STEEPER_DEG = 16.0  # how much higher the camera may be in the last try: tall objects hide others
STRAIGHT_DEG = 5.0  # how far a target is off its direction where the captions name two
GAPS_M = (0.1, 0.45)  # between two objects side by side
MAX_APART_M = 3.0  # between the middles of two objects one behind the other, in the first try
INNER = 0.94  # share of a support's sides that keeps the margin to the picture's edge
RAISED_SIDE = 0.7  # share of a support's sides above which the tops of the copies are in view
SHRINK = 0.3  # by how much copies shrink over the first quarter of the tries
STEEPEST_DEG = 70.0  # how high the camera is at most where it is higher than all of its elevations
SUPPORT_TURN_DEG = 15.0  # how far the nearest side of a support is turned from the camera at most


def compose_related(
    draft: RelatedDraft, settings: SceneSettings, progress: float, rng: Random
) -> Layout | None:
    is_deep = any(relation in ("front", "behind") for relation in draft.relations)
    standpoint = draw_standpoint(settings, RAISED * is_deep, progress, rng)
    moves = _draw_moves(draft, standpoint, settings, progress, rng)
    places = [beside(camera_before(standpoint), (0.0, 0.0, 0.0), *move) for move in moves]
    x, y = (round(-sum(place[k] for place in places) / 4, DECIMALS) for k in (0, 1))
    standpoint = replace(standpoint, pivot=(x, y, PIVOT_M))
    before, place = camera_before(standpoint), (x, y, 0.0)
    item = put(before, draft.reference, place, rng)
    yaw = turn_deg(before, place, draft.target.front_deg, rng)
    targets = [
        replace(variant, position=beside(before, place, *move), yaw_deg=yaw)
        for variant, move in zip(draft.target.variants, moves, strict=True)
    ]
    boxes = [
        corners(target, draft.target.asset_in(scene).bounds) for scene, target in enumerate(targets)
    ]
    points = np.concatenate([*boxes, corners(item, draft.reference.asset.bounds)])
    camera = frame(Subjects(points=points, boxes=boxes), standpoint, settings, progress, rng)
    layout = Layout(camera=camera, settings=settings)
    is_placed = layout.add(item, draft.reference.asset) and all(
        layout.add(target, draft.target.asset_in(scene), (scene,))
        for scene, target in enumerate(targets)
    )
    if not is_placed or not is_related(layout, draft.relations, progress):
        return None
    return layout if add_bystanders(layout, draft.distractors, None, progress, rng) else None


def compose_counted(
    draft: CountedDraft, paint: Vector, settings: SceneSettings, progress: float, rng: Random
) -> Layout | None:
    factor = 1 - SHRINK * min(4 * progress, 1.0)
    draft = replace(draft, copies=tuple(piece.scaled(factor) for piece in draft.copies))
    number = len(draft.copies)
    standpoint = draw_standpoint(settings, (number - 1) / (number + 1), progress, rng)
    turn = 90 * rng.randrange(4) + rng.uniform(-SUPPORT_TURN_DEG, SUPPORT_TURN_DEG)
    yaw = round((standpoint.azimuth_deg + turn) % 360.0, 2)
    stand = replace(draft.support.painted(paint), yaw_deg=yaw)
    ground = Ground(support=draft.support, yaw_deg=yaw)
    standpoint = replace(standpoint, pivot=(0.0, 0.0, ground.top_m))
    # Unlike two objects one behind the other, copies do not gain from distance.
    stepped = 0.0 if settings.distance_m is None else progress
    # Frame the top of the support and the room above; a copy in its middle sets the size.
    copy = draft.copies[0]
    top = corners(stand, draft.support.asset.bounds)[4:]
    raised = top * (RAISED_SIDE, RAISED_SIDE, 1.0) + (0.0, 0.0, copy.height)
    item = replace(copy.variants[0], position=(0.0, 0.0, ground.top_m))
    subjects = Subjects(
        points=np.concatenate([top * (INNER, INNER, 1.0), raised]),
        boxes=[corners(item, copy.asset.bounds)],
    )
    camera = frame(subjects, standpoint, settings, stepped, rng)
    layout = Layout(camera=camera, settings=settings)
    is_placed = layout.add_support(stand, draft.support.asset) and all(
        _add_copy(layout, ground, each, where, rng) for each, where in draft.by_scene
    )
    if not is_placed or not is_counted(layout, number, progress):
        return None
    if not add_bystanders(layout, draft.distractors, ground, progress, rng):
        return None
    # Copies in only one scene come last, so all others keep their numbers in the mask.
    layout.placed.sort(key=lambda placed: len(placed.scenes) == 1)
    return layout


def draw_standpoint(
    settings: SceneSettings, raised: float, progress: float, rng: Random
) -> Standpoint:
    """Draw the camera position; `raised` in [0, 1] leaves out the lower elevations.

    Above 1, the camera rises above the usual range by `raised - 1` times its width.
    """
    low, high = settings.elevations_deg
    share = max(raised, min(raised + 4 * progress, 1.0))
    low = min(low + share * (high - low), max(high, STEEPEST_DEG))
    high = max(low, high)
    if settings.elevation_deg is None:
        high += STEEPER_DEG * progress
    return Standpoint(
        pivot=(0.0, 0.0, 0.0),
        azimuth_deg=rng.uniform(0.0, 360.0),
        elevation_deg=rng.uniform(low, high),
    )


def _draw_moves(
    draft: RelatedDraft,
    standpoint: Standpoint,
    settings: SceneSettings,
    progress: float,
    rng: Random,
) -> Moves:
    half = HALF_SECTOR_DEG - settings.min_relation_margin_deg
    is_straight = draft.relations[0] != draft.relations[1]

    def move(relation: Relation) -> tuple[float, float]:
        is_deep = relation in ("front", "behind")
        if is_straight:
            askew = rng.uniform(-1, 1) * min(half, STRAIGHT_DEG)
        else:
            # Off the line of sight it hides less, or less of it is hidden.
            askew = rng.choice((-1, 1)) * rng.uniform(0.6 if is_deep else 0.0, 0.98) * half
        reach = 0.8 * (draft.reference.radius + draft.target.radius) + rng.uniform(*GAPS_M)
        apart = (
            _apart(draft, relation, standpoint, settings.most_hidden)
            * (rng.uniform(0.8, 1.2) + 3 * progress)
            if is_deep
            else 0.0
        )
        return HEADING_DEG[relation] + askew, max(reach, min(apart, MAX_APART_M * (1 + progress)))

    first = move(draft.relations[0])
    return first, first if draft.change != "position" else move(draft.relations[1])


def _apart(
    draft: RelatedDraft, relation: Relation, standpoint: Standpoint, most_hidden: float
) -> float:
    """Return a distance, in metres, at which the nearer object hides little of the other."""
    near, far = draft.target, draft.reference
    if relation == "behind":
        near, far = far, near
    flat = USUAL_M * math.hypot(*standpoint.towards[:2])
    eye = PIVOT_M + USUAL_M * standpoint.towards[2]
    if eye <= near.height:
        return MAX_APART_M
    steps = max(near.height - most_hidden * min(far.heights), 0.0) / (eye - near.height)
    edges = 0.5 * (near.radius + far.radius)
    # The camera is about as far from the reference, which the target is nearer or farther than.
    return edges + flat * (steps / (1 + steps) if relation == "front" else steps)


def camera_before(standpoint: Standpoint) -> SceneCamera:
    return SceneCamera(position=standpoint.position(USUAL_M), look_at=standpoint.pivot)


def _add_copy(
    layout: Layout, ground: Ground, piece: Piece, where: tuple[int, ...], rng: Random
) -> bool:
    for _ in range(SPOTS):
        place = ground.draw_place(piece.radius, rng)
        if layout.is_taken(piece, place):
            continue
        item = put(layout.camera, piece, place, rng)
        if layout.add(item, piece.asset, where, layout.settings.min_copy_gap):
            return True
    return False
