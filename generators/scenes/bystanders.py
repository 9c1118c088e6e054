"""Puts bystanders into photographic scenes: around and behind what the captions speak of."""

import math
from random import Random

from eqforge.generators.scenes.legible import share
from eqforge.generators.scenes.pieces import Piece
from eqforge.generators.scenes.placement import BOTH, Ground, Layout, Placed, put
from eqforge.generators.scenes.view import DECIMALS, camera_axes
from eqforge.schemas.records.scenes import SceneCamera, Vector

SPOTS = 30
"""Places tried for one of them before it is left out."""

LEAST = 0.006
"""Least share of the picture that one covers, unless the user wants smaller objects, or farther."""

MAX_HIDDEN = 0.35
"""Greatest share of the box of one that nearer boxes hide."""

MOST = 0.9
"""Greatest size of one in the picture, as a share of the largest named object's."""

AHEAD = (0.7, 2.6)
"""How far from the camera they stand, as a share of the distance of the scene's middle."""


def add_bystanders(
    layout: Layout, pieces: tuple[Piece, ...], ground: Ground | None, progress: float, rng: Random
) -> bool:
    """Adds bystanders where there is room for them.

    Args:
      layout: what is placed already.
      pieces: the bystanders.
      ground: the top of a support, on which they may stand as well.
      progress: share of the tries that failed, in [0, 1).
      rng: what to draw with.

    Returns:
      Whether most of them found room; later tries ask for fewer.
    """
    named = [placed for placed in layout.placed if not placed.is_support]
    added = [_add(layout, piece, named, ground, rng) for piece in pieces]
    return sum(added) >= (1 - 8 * progress) * len(added) / 2


def _add(
    layout: Layout, piece: Piece, named: list[Placed], ground: Ground | None, rng: Random
) -> bool:
    is_free = layout.settings.distance_m is not None
    least = 0.0 if is_free else min(LEAST, layout.settings.target_area[0] / 6)
    most = max(MOST * max(map(share, named)), 2 * least)
    for number in range(SPOTS):
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
    """Draws a place on the floor that is in the picture."""
    right, _, forward = camera_axes(camera)
    aside = rng.uniform(-0.45, 0.45) * camera.sensor_width_mm / camera.focal_length_mm
    ahead = math.dist(camera.position, (0.0, 0.0, 0.0)) * rng.uniform(*AHEAD)
    flat = math.hypot(forward[0], forward[1])
    x, y = (camera.position[k] + ahead * (forward[k] / flat + aside * right[k]) for k in (0, 1))
    return (round(float(x), DECIMALS), round(float(y), DECIMALS), 0.0)


def _is_aside(layout: Layout, new: Placed) -> bool:
    """Tells whether an object hides none of those that are placed, and they not much of it."""
    for other in layout.placed:
        if other.is_support:
            is_clear = new.item.position[2] > 0 or _is_off(layout, new, other)
        else:
            is_clear = other.distance_m < new.distance_m or _are_apart(new, other)
        if not is_clear:
            return False
    return all(layout.hidden(new, scene) <= MAX_HIDDEN for scene in BOTH)


def _is_off(layout: Layout, new: Placed, support: Placed) -> bool:
    """Tells whether an object on the floor is clear of a support, on the floor and in view."""
    is_clear = new.footprint.gap(support.footprint) >= layout.settings.min_clearance_m
    return is_clear and _are_apart(new, support)


def _are_apart(first: Placed, second: Placed) -> bool:
    return first.silhouette.gap(second.silhouette) >= 0
