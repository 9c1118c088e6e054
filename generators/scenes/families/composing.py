"""Composes the scenes of a family: its things at their spots, a camera before them, and others."""

import math
from dataclasses import replace
from random import Random

from eqforge.core.late import numpy as np
from eqforge.generators.scenes.bystanders import add_bystanders
from eqforge.generators.scenes.compose import PIVOT_M, camera_before, draw_standpoint
from eqforge.generators.scenes.families.base import Spot, Spots, StagedDraft
from eqforge.generators.scenes.families.showing import is_shown
from eqforge.generators.scenes.framing import Subjects, frame
from eqforge.generators.scenes.pieces import Piece
from eqforge.generators.scenes.placement import Layout, beside, turn_deg
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.generators.scenes.view import corners
from eqforge.schemas.records.scenes import SceneCamera, SceneObject, Vector

ASKEW_DEG = 9.0
"""How far things that are all turned alike are turned from the camera at most."""

InPlace = tuple[Piece, tuple[SceneObject, SceneObject]]
"""A thing as the first and the second scene have it."""


def compose_staged(
    draft: StagedDraft,
    spots: tuple[Spots, Spots],
    settings: SceneSettings,
    progress: float,
    rng: Random,
) -> Layout | None:
    """Tries once to place the things of a draft at their spots.

    Args:
      draft: the things.
      spots: where they stand in the first and in the second scene.
      settings: the limits.
      progress: share of the tries that failed, in [0, 1).
      rng: what to draw with.
    """
    standpoint = replace(
        draw_standpoint(settings, draft.raised, progress, rng), pivot=(0.0, 0.0, PIVOT_M)
    )
    placed = _in_place(draft, spots, camera_before(standpoint), rng)
    boxes = [
        corners(item, asset.bounds)
        for piece, items in placed
        for item, asset in {each: piece.asset_in(scene) for scene, each in enumerate(items)}.items()
    ]
    subjects = Subjects(points=np.concatenate(boxes), boxes=boxes, is_centred=draft.is_even)
    layout = Layout(camera=frame(subjects, standpoint, settings, progress, rng), settings=settings)
    if not all(_add(layout, draft, each) for each in placed):
        return None
    if not is_shown(layout, draft, progress):
        return None
    return layout if add_bystanders(layout, draft.distractors, None, progress, rng) else None


def _in_place(
    draft: StagedDraft, spots: tuple[Spots, Spots], camera: SceneCamera, rng: Random
) -> list[InPlace]:
    """Returns the things in their places, those first that stay where they are."""
    every = [spot for each in spots for spot in each.values()]
    right, away = (sum(spot[axis] for spot in every) / len(every) for axis in (0, 1))
    placed: list[InPlace] = []
    askew = rng.uniform(-ASKEW_DEG, ASKEW_DEG) if draft.is_even else 0.0
    for piece in draft.pieces:
        if draft.is_even:
            yaw = round((facing_deg(camera, piece.front_deg) + askew) % 360.0, 2)
        else:
            yaw = turn_deg(camera, (0.0, 0.0, 0.0), piece.front_deg, rng)
        places = [_place(camera, each[piece.name], right, away) for each in spots]
        first, second = (
            replace(variant, position=place, yaw_deg=round((yaw + variant.yaw_deg) % 360.0, 2))
            for variant, place in zip(piece.variants, places, strict=True)
        )
        placed.append((piece, (first, second)))
    return sorted(placed, key=lambda each: each[1][0] != each[1][1])


def facing_deg(camera: SceneCamera, front_deg: float | None) -> float:
    """Returns the turn of a thing whose front, or else x axis, points to the camera."""
    x, y, _ = np.subtract(camera.position, camera.look_at).tolist()
    return math.degrees(math.atan2(y, x)) - (front_deg or 0.0)


def _place(camera: SceneCamera, spot: Spot, right: float, away: float) -> Vector:
    """Returns a spot in the scene's own axes, around a middle."""
    aside, ahead = spot[0] - right, spot[1] - away
    heading = math.degrees(math.atan2(aside, ahead))
    return beside(camera, (0.0, 0.0, spot[2]), heading, math.hypot(aside, ahead))


def _add(layout: Layout, draft: StagedDraft, placed: InPlace) -> bool:
    piece, (first, second) = placed
    if piece is draft.stand:
        return layout.add_support(first, piece.asset)
    if first == second:
        return layout.add(first, piece.asset)
    return layout.add(first, piece.asset_in(0), (0,)) and layout.add(
        second, piece.asset_in(1), (1,)
    )
