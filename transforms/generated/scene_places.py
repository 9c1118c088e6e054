"""Measures in a rendered picture what a caption says of where things are."""

from __future__ import annotations

import math
from itertools import combinations

from eqforge.generators.scenes.claims import names_of, side_margin
from eqforge.schemas.records.scenes import Claim
from eqforge.transforms.generated.scene_view import RenderedView


def within_margin(view: RenderedView, claim: Claim) -> float | None:
    """Returns how far a target is from the ends of its reference's box, inside of it.

    Those are its left, its right and its lower end, and its upper one where it is under it.
    """
    assert claim.reference is not None
    target, around = view.shown(claim.target).box, view.shown(claim.reference).box
    if target is None or around is None:
        return None
    slack = [
        target.x - around.x,
        around.x + around.width - target.x - target.width,
        around.y + around.height - target.y - target.height,
        *([target.y - around.y] if claim.relation == "under" else []),
    ]
    return min(slack) / view.numbers.shape[1]


def gap(view: RenderedView, claim: Claim) -> float | None:
    """Returns the gap between a target and its reference, as `copy_gap` does."""
    assert claim.reference is not None
    return copy_gap(view, (claim.target, claim.reference))


def depth_apart(view: RenderedView, claim: Claim) -> float | None:
    """Returns how far a target and its reference are apart in depth, in metres."""
    assert claim.reference is not None
    target, reference = view.shown(claim.target), view.shown(claim.reference)
    if target.box is None or reference.box is None:
        return None
    return abs(target.depth_m - reference.depth_m)


def height_margin(view: RenderedView, claim: Claim) -> float | None:
    """Returns how much higher the lowest pixel of a target is, as a share of the height."""
    assert claim.reference is not None
    target, reference = view.shown(claim.target).box, view.shown(claim.reference).box
    if target is None or reference is None:
        return None
    return (reference.y + reference.height - target.y - target.height) / view.numbers.shape[0]


def copy_gap(view: RenderedView, copies: tuple[str, ...]) -> float | None:
    """Returns the least gap of two copies as a share of the width; 0 if 8-connected."""
    import scipy.ndimage  # type: ignore[import-untyped]

    masks = [mask for name in copies if (mask := view.mask([name])).any()]
    gaps = [
        int(scipy.ndimage.distance_transform_cdt(~first, "chessboard")[second].min()) - 1
        for first, second in combinations(masks, 2)
    ]
    return min(gaps) / view.numbers.shape[1] if gaps else None


def posture_margin(
    views: tuple[RenderedView, RenderedView], claims: tuple[Claim, Claim]
) -> float | None:
    """Returns how much taller and narrower an upright thing looks than the same one lying.

    Both pictures are taken by one camera, so that their boxes can be compared.

    Returns:
      The lesser of the two, as log2 of the ratio of the sides; negative where a claim is false, and
      None where one of the two is not seen, or not claimed.
    """
    boxes = {
        claim.relation: view.shown(claim.target).box
        for view, claim in zip(views, claims, strict=True)
    }
    upright, lying = boxes.get("upright"), boxes.get("lying")
    if upright is None or lying is None:
        return None
    return math.log2(min(upright.height / lying.height, lying.width / upright.width))


def ordered_margin(view: RenderedView, claim: Claim) -> float | None:
    """Returns how far things are in their order from left to right, as a share of the width."""
    if claim.relation not in ("left", "right", "between", "row"):
        return None
    boxes = {name: view.shown(name).box for name in names_of(claim)}
    middles = {name: box.x + box.width / 2 for name, box in boxes.items() if box is not None}
    if len(middles) < len(boxes):
        return None
    return side_margin(claim, middles) / view.numbers.shape[1]


def depth_margin(view: RenderedView, claim: Claim) -> float | None:
    """Returns how far in front of another, or behind it, a thing is, in metres."""
    if claim.relation not in ("front", "behind") or claim.reference is None:
        return None
    target, reference = view.shown(claim.target), view.shown(claim.reference)
    if target.box is None or reference.box is None:
        return None
    shift = target.depth_m - reference.depth_m
    return shift if claim.relation == "behind" else -shift
