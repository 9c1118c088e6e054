"""What is true of a scene, and how two scenes differ, from their descriptions alone."""

import dataclasses
import math
from collections.abc import Mapping

from eqforge.schemas.records.scenes import Claim, Relation, ScenePair, SceneSpec

HALF_SECTOR_DEG = 45.0
"""Left, right, front and behind share the directions around an object equally."""

HEADING_DEG: Mapping[Relation, float] = {
    "behind": 0.0,
    "right": 90.0,
    "front": 180.0,
    "left": 270.0,
}
"""The direction of each relation from the reference, clockwise from the line
of sight, seen from above."""


def relation_margin_deg(scene: SceneSpec, claim: Claim) -> float:
    """Returns the margin, in degrees, by which the claimed relation holds as seen by the camera.

    Behind is the direction from the camera through the reference, and right is at a right angle to
    it. A relation holds in the 90 degrees around its direction.

    Returns:
      45 exactly in the relation's direction, 0 halfway to the next, negative if it is false.

    Raises:
      ValueError: the claim names no relation.
    """
    if claim.relation is None or claim.reference is None:
        raise ValueError(f"the claim of {claim.target!r} names no relation")
    places = {item.name: item.position for item in scene.objects}
    eye, here, there = scene.camera.position, places[claim.reference], places[claim.target]
    forward = (here[0] - eye[0], here[1] - eye[1])
    offset = (there[0] - here[0], there[1] - here[1])
    ahead = offset[0] * forward[0] + offset[1] * forward[1]
    aside = offset[0] * forward[1] - offset[1] * forward[0]
    heading = math.degrees(math.atan2(aside, ahead))
    apart = abs((heading - HEADING_DEG[claim.relation] + 180.0) % 360.0 - 180.0)
    return HALF_SECTOR_DEG - apart


def relation_holds(scene: SceneSpec, claim: Claim, min_margin_deg: float = 0.0) -> bool:
    """Tells whether a claimed relation holds by a margin; a claim without one always does."""
    return claim.relation is None or relation_margin_deg(scene, claim) >= min_margin_deg


def difference(first: SceneSpec, second: SceneSpec) -> tuple[str, ...]:
    """Returns the fields in which two scenes differ, sorted.

    They are named `camera`, `light`, `backdrop`, `seed`; `NAME.FIELD` for an object that both have;
    `+NAME` and `-NAME` for one that only the second or the first has; `order` where the objects
    that both have come in another order.
    """
    found = [
        field.name
        for field in dataclasses.fields(SceneSpec)
        if field.name != "objects" and getattr(first, field.name) != getattr(second, field.name)
    ]
    here = {item.name: item for item in first.objects}
    there = {item.name: item for item in second.objects}
    found += [f"-{name}" for name in here.keys() - there.keys()]
    found += [f"+{name}" for name in there.keys() - here.keys()]
    common = [name for name in here if name in there]
    for name in common:
        fields = dataclasses.fields(here[name])
        changed = (
            f.name for f in fields if getattr(here[name], f.name) != getattr(there[name], f.name)
        )
        found += [f"{name}.{field}" for field in changed]
    if common != [name for name in there if name in here]:
        found.append("order")
    return tuple(sorted(found))


_CHANGED = {"colour": "colour", "size": "scale", "material": "material", "position": "position"}


def differs_as_declared(pair: ScenePair) -> bool:
    """Tells whether two scenes differ only as the pair declares.

    An attribute or the place of the target changes; or copies are added, or taken away, behind all
    other objects, so that the rest keep their numbers in the instance mask.
    """
    found = difference(*pair.scenes)
    if pair.change in _CHANGED:
        return found == (f"{pair.claims[0].target}.{_CHANGED[pair.change]}",)
    fewer, more = sorted(pair.scenes, key=lambda scene: len(scene.objects))
    extra = more.objects[len(fewer.objects) :]
    sign = "+" if more is pair.scenes[1] else "-"
    counted = {name for claim in pair.claims for name in claim.copies}
    return (
        bool(extra)
        and fewer.objects == more.objects[: len(fewer.objects)]
        and {item.name for item in extra} <= counted
        and found == tuple(sorted(f"{sign}{item.name}" for item in extra))
    )
