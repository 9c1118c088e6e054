"""Measures in a rendered picture by how much two things differ that its caption compares."""

from __future__ import annotations

import math

from eqforge.core.late import numpy as np
from eqforge.generators.scenes.claims import names_of
from eqforge.schemas.records.scenes import Claim, SceneSpec
from eqforge.transforms.filters import lab
from eqforge.transforms.generated.scene_colours import core
from eqforge.transforms.generated.scene_view import RenderedView

COUNTED = 0.3
"""Share of a copy that has to be visible for it to count."""


def seen_step(view: RenderedView, claim: Claim, scene: SceneSpec) -> float | None:
    """Returns by how much two things differ in the picture, in the units of `step_size`."""
    shown = {each.name: each for each in view.objects}
    if claim.relation == "more":
        sides = claim.copies, (str(claim.reference), *claim.others)
        many, few = (
            sum(shown[name].visible_fraction >= COUNTED for name in side) for side in sides
        )
        return many - few
    target, reference = shown[claim.target], shown[str(claim.reference)]
    if claim.relation == "larger":
        if not reference.full_px:
            return None
        return 100 * (math.sqrt(target.full_px / reference.full_px) - 1)
    if claim.relation == "lighter":
        light, dark = (_mean_lightness(view, each.name) for each in (target, reference))
        return None if light is None or dark is None else light - dark
    here, near, far = (_heading(view, name, scene) for name in names_of(claim))
    if here is None or near is None or far is None:
        return None
    return abs(far - here) - abs(near - here)


def _mean_lightness(view: RenderedView, name: str) -> float | None:
    mask = view.mask([name])
    if not mask.any():
        return None
    return float(lab.lightness(view.pixels)[core(mask)].mean(dtype=np.float64)) * 100 / 255


def _heading(view: RenderedView, name: str, scene: SceneSpec) -> float | None:
    """Returns how far to the right of the line of sight the middle of a thing is, in degrees."""
    box = view.shown(name).box
    if box is None:
        return None
    aside = (box.x + box.width / 2) / view.numbers.shape[1] - 0.5
    lens = scene.camera.sensor_width_mm / scene.camera.focal_length_mm
    return math.degrees(math.atan(aside * lens))
