"""By how much two things in a scene differ that a caption compares, from their descriptions alone.

A step is the size of such a difference; a ladder has the same scene with several of them.
"""

import math
from collections.abc import Mapping

from eqforge.generators.scenes.tints import lightness_of
from eqforge.generators.scenes.view import to_camera
from eqforge.schemas.records.scenes import (
    STEP_SIZES,
    Claim,
    Comparison,
    Grade,
    SceneObject,
    SceneSpec,
)

STEPS = (1, 2, 4, 8)
"""Of a ladder, in just-noticeable differences."""

COMPARED: Mapping[Comparison, Grade] = {
    "larger": "size",
    "lighter": "lightness",
    "nearer": "place",
    "more": "count",
}

JUST_NOTICEABLE: Mapping[Grade, float] = {grade: sizes[0] for grade, sizes in STEP_SIZES.items()}
"""One step. A length has to differ by about a fortieth and a colour by 2.3 of CIE 1976 to be told
from another one (Ono 1967, Weber's law for length; Mahy et al. 1994, Color Research & Application
19); half a degree of the view is 2.6 of 256 pixels at eqforge's lens."""


def step_size(scene: SceneSpec, claim: Claim) -> float:
    """Return by how much what a claim compares differs the way it says.

    Returns:
      Percent by which a length is greater, steps of L*, degrees by which a thing is nearer to one
      than to another as the camera sees it, or a number of copies; negative where it is false.

    Raises:
      ValueError: the claim compares nothing.
    """
    items = {item.name: item for item in scene.objects}
    target = items[claim.target]
    if claim.relation == "more":
        return float(len(claim.copies) - 1 - len(claim.others))
    assert claim.reference is not None
    reference = items[claim.reference]
    if claim.relation == "larger":
        return 100 * (target.scale / reference.scale - 1)
    if claim.relation == "lighter":
        assert target.colour is not None
        assert reference.colour is not None
        return lightness_of(target.colour) - lightness_of(reference.colour)
    if claim.relation == "nearer":
        (other,) = claim.others
        near, far = (_between(scene, target, items[name]) for name in (claim.reference, other))
        return far - near
    raise ValueError(f"{claim.relation} compares nothing")


def _between(scene: SceneSpec, first: SceneObject, second: SceneObject) -> float:
    """Return the angle to the side between two things as the camera sees it, in degrees."""
    (ax, _, az), (bx, _, bz) = to_camera(scene.camera, [first.position, second.position]).tolist()
    return abs(math.degrees(math.atan2(ax, az) - math.atan2(bx, bz)))
