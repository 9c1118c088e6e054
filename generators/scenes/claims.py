"""Check claims about scenes, and differences between them, from their descriptions alone.

A step is the size of a difference that a caption compares; ladders have several in one scene.
"""

import dataclasses
import math
from collections.abc import Mapping
from itertools import pairwise

from eqforge.generators.scenes.palette import lightness_of
from eqforge.generators.scenes.view import to_camera
from eqforge.schemas.records.scenes import (
    STEP_SIZES,
    Claim,
    Comparison,
    Grade,
    Relation,
    SceneObject,
    ScenePair,
    SceneSpec,
)

HALF_SECTOR_DEG = 45.0  # the four relations share the directions around an object equally

HEADING_DEG: Mapping[Relation, float] = {
    "behind": 0.0,
    "right": 90.0,
    "front": 180.0,
    "left": 270.0,
}
"""Direction of each relation from the reference, clockwise from the line of sight as seen from
above."""


def relation_margin_deg(scene: SceneSpec, claim: Claim) -> float:
    """Return the margin, in degrees, by which the claimed relation holds as seen by the camera.

    Behind is the direction from the camera through the reference; right is perpendicular to it. The
    margin is 45 exactly in the relation's direction, 0 halfway to the next, negative if it is
    false.
    """
    if claim.relation is None or claim.reference is None:
        raise ValueError(f"the claim about {claim.target!r} has no relation")
    places = {item.name: item.position for item in scene.objects}
    eye, here, there = scene.camera.position, places[claim.reference], places[claim.target]
    forward = (here[0] - eye[0], here[1] - eye[1])
    offset = (there[0] - here[0], there[1] - here[1])
    ahead = offset[0] * forward[0] + offset[1] * forward[1]
    aside = offset[0] * forward[1] - offset[1] * forward[0]
    heading = math.degrees(math.atan2(aside, ahead))
    apart = abs((heading - HEADING_DEG[claim.relation] + 180.0) % 360.0 - 180.0)
    return HALF_SECTOR_DEG - apart


def names_of(claim: Claim) -> tuple[str, ...]:
    reference = () if claim.reference is None else (claim.reference,)
    return tuple(dict.fromkeys((claim.target, *claim.copies, *reference, *claim.others)))


def side_margin(claim: Claim, middles: dict[str, float]) -> float:
    """Return the smallest gap in a claimed left-to-right order; negative if the claim is false.

    Args:
      claim: `left` or `right` of all that it names, `between` two, or a `row` from left to right.
      middles: x of the objects, in any unit, growing to the right.
    """
    target = middles[claim.target]
    group = claim.copies if claim.target in claim.copies else (claim.target,)
    others = [middles[name] for name in names_of(claim)[1:] if name not in group]
    copies = [middles[name] for name in group]
    if claim.relation == "left":
        return min(others) - max(copies)
    if claim.relation == "right":
        return min(copies) - max(others)
    if claim.relation == "between":
        return min(target - min(others), max(others) - target)
    if claim.relation == "row":
        row = [target, *others]
        return min(after - before for before, after in pairwise(row))
    raise ValueError(f"the relation {claim.relation!r} is not an order from left to right")


def difference(first: SceneSpec, second: SceneSpec) -> tuple[str, ...]:
    """List the fields in which two scenes differ, sorted.

    The names are `camera`, `light`, `backdrop`, `seed`; `NAME.FIELD` for an object in both scenes;
    `+NAME` and `-NAME` for an object only in the second or the first; `order` for a different
    order.
    """
    found = [
        field.name
        for field in dataclasses.fields(SceneSpec)
        if field.name != "objects" and getattr(first, field.name) != getattr(second, field.name)
    ]
    items_0 = {item.name: item for item in first.objects}
    items_1 = {item.name: item for item in second.objects}
    found += [f"-{name}" for name in items_0.keys() - items_1.keys()]
    found += [f"+{name}" for name in items_1.keys() - items_0.keys()]
    common = [name for name in items_0 if name in items_1]
    for name in common:
        fields = dataclasses.fields(items_0[name])
        changed = (
            f.name
            for f in fields
            if getattr(items_0[name], f.name) != getattr(items_1[name], f.name)
        )
        found += [f"{name}.{field}" for field in changed]
    if common != [name for name in items_1 if name in items_0]:
        found.append("order")
    return tuple(sorted(found))


_CHANGED = {
    "colour": "colour",
    "size": "scale",
    "material": "material",
    "position": "position",
    "orientation": "yaw_deg",
    "posture": "posture",
    "trim": "trims",
}


def differs_as_declared(pair: ScenePair) -> bool:
    """Return True if two scenes differ only as declared; added copies come after all objects."""
    found = difference(*pair.scenes)
    if pair.kind == "graded":
        return _have_changed_roles(pair, found)
    if pair.change == "order":
        return _have_changed_places(pair, found)
    if pair.change in _CHANGED:
        target, copies = pair.claims[0].target, pair.claims[0].copies
        exchanged = (f"{target}.asset",), (f"{target}.asset", f"{target}.scale")
        is_exchange = pair.change == "colour" and found in exchanged
        field = _CHANGED[pair.change]
        return is_exchange or found == tuple(sorted(f"{name}.{field}" for name in copies))
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


_GRADED = {"size": "scale", "lightness": "colour", "place": "position"}


def _have_changed_roles(pair: ScenePair, found: tuple[str, ...]) -> bool:
    first, second = pair.claims
    if pair.change == "count":
        sides = [set(names_of(claim)) for claim in pair.claims]
        lost = {f"-{name}" for name in sides[0] - sides[1]}
        return bool(lost) and set(found) == lost | {f"+{name}" for name in sides[1] - sides[0]}
    compared = {first.target, second.target}
    return found == tuple(sorted(f"{name}.{_GRADED[pair.change]}" for name in compared))


def _have_changed_places(pair: ScenePair, found: tuple[str, ...]) -> bool:
    named = names_of(pair.claims[0])
    moved = [name for name in named if f"{name}.position" in found]
    before, after = (
        [item.position for name in moved for item in scene.objects if item.name == name]
        for scene in pair.scenes
    )
    return len(found) == len(moved) == 2 and before == after[::-1]


STEPS = (1, 2, 4, 8)  # of a ladder, in just-noticeable differences

COMPARED: Mapping[Comparison, Grade] = {
    "larger": "size",
    "lighter": "lightness",
    "nearer": "place",
    "more": "count",
}

JUST_NOTICEABLE: Mapping[Grade, float] = {grade: sizes[0] for grade, sizes in STEP_SIZES.items()}
"""One step: the smallest noticeable difference. It is about 1/40 of a length (Ono 1967, Weber's law
for length), or 2.3 of CIE 1976 for a colour (Mahy et al. 1994, Color Research & Application 19).
Half a degree of the view is 2.6 of 256 pixels at eqforge's lens."""


def step_size(scene: SceneSpec, claim: Claim) -> float:
    """Return the size of the difference that a claim compares; negative if the claim is false.

    The unit is percent of a length, steps of L*, degrees by which the camera sees a thing nearer to
    one than to the other, or a number of copies.
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
    raise ValueError(f"the relation {claim.relation!r} is not a comparison")


def _between(scene: SceneSpec, first: SceneObject, second: SceneObject) -> float:
    """Return the horizontal angle between two objects as the camera sees them, in degrees."""
    (ax, _, az), (bx, _, bz) = to_camera(scene.camera, [first.position, second.position]).tolist()
    return abs(math.degrees(math.atan2(ax, az) - math.atan2(bx, bz)))
