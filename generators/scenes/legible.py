"""Check from objects' boxes whether photographic scenes show what their captions say.

The gates measure the same on the renderings. The limits here are stricter, since an object fills
its box only in part: nearly everything that passes here passes there.
"""

import numpy as np

from eqforge.generators.scenes.claims import COMPARED, names_of, side_margin
from eqforge.generators.scenes.pieces import MIN_NAMED, StagedDraft
from eqforge.generators.scenes.placement import Layout, Placed
from eqforge.generators.scenes.view import FILL, to_camera
from eqforge.schemas.records.scenes import Claim, Relation

SIDES = ("left", "right")
MIN_SIDE = 0.11  # how far left or right of its reference a target is at least, in picture widths
MAX_CROSSED_SIDE = 0.06  # how far it is at most, where only the other caption says so
MIN_DEPTH_M = 0.5  # least distance in front of or behind the reference, along the view
MAX_CROSSED_DEPTH_M = 0.3  # how far it is at most, where only the other caption says so
MIN_COPY = 0.01  # the same of copies, if they are few
MAX_NAMED = 0.27  # greatest share of the picture that one covers
FEW = 5  # copies beyond this number may be smaller
SPREAD = 1.3  # how much larger than drawn the larger one of an object's two silhouettes may be
LENIENCE = 0.9  # by how much these shares fall over the first eighth of the tries


def share(placed: Placed) -> float:
    return FILL * placed.silhouette.area()


def is_related(layout: Layout, relations: tuple[Relation, Relation], progress: float) -> bool:
    reference, *targets = layout.placed
    if not all(is_sized(layout, placed, MIN_NAMED, progress) for placed in layout.placed):
        return False
    for scene, target in enumerate(targets):
        relation, other = relations[scene], relations[1 - scene]
        margins = _margins(layout, target, reference)
        if _along(margins, relation) < (MIN_SIDE if relation in SIDES else MIN_DEPTH_M):
            return False
        most = MAX_CROSSED_SIDE if other in SIDES else MAX_CROSSED_DEPTH_M
        if relation != other and _along(margins, other) > most:
            return False
        if (
            max(layout.hidden(target, scene), layout.hidden(reference, scene))
            > layout.settings.most_hidden
        ):
            return False
    return True


def is_counted(layout: Layout, number: int, progress: float) -> bool:
    least = MIN_COPY * min(1.0, FEW / number)
    copies = [placed for placed in layout.placed if not placed.is_support]
    return all(
        is_sized(layout, placed, least, progress)
        and layout.hidden(placed, scene) <= layout.settings.most_hidden
        for placed in copies
        for scene in placed.scenes
    )


def is_sized(layout: Layout, placed: Placed, least: float, progress: float) -> bool:
    if layout.settings.distance_m is not None:
        return True
    smallest, largest = layout.settings.target_area
    demand = 1 - LENIENCE * min(8 * progress, 1.0)
    return min(least, smallest) * demand <= share(placed) <= max(MAX_NAMED, SPREAD * largest)


def _margins(layout: Layout, target: Placed, reference: Placed) -> tuple[float, float]:
    """Return how far a target is to the right, in image widths, and behind, in metres."""
    middles = [
        placed.silhouette.low[0] + placed.silhouette.high[0] for placed in (target, reference)
    ]
    points = np.array([target.middle, reference.middle])
    depths = to_camera(layout.camera, points)[:, 2]
    return float(middles[0] - middles[1]) / 2, float(depths[0] - depths[1])


def _along(margins: tuple[float, float], relation: Relation) -> float:
    right, behind = margins
    return {"right": right, "left": -right, "behind": behind, "front": -behind}[relation]


MAX_NEAR = 0.03  # greatest gap of things that are next to each other, in picture widths
MAX_CROSSED_HEIGHT = 0.04
"""Maximum height of an object's base, in image widths, if only the other caption says that it is on
top."""

MIN_FAR = 0.28  # least gap of things that are far from each other


def is_shown(layout: Layout, draft: StagedDraft, progress: float) -> bool:
    claims = draft.claims
    named = {name for claim in claims for name in names_of(claim)}
    for placed in layout.placed:
        if placed.item.name in named and not is_sized(layout, placed, draft.least, progress):
            return False
    for scene, claim in enumerate(claims):
        seen = {placed.item.name: placed for placed in layout.placed if scene in placed.scenes}
        if not _holds(seen, claim) or _is_crossed(seen, claims[1 - scene]):
            return False
    return layout.is_plain(named)


def _holds(seen: dict[str, Placed], claim: Claim) -> bool:
    if claim.relation in COMPARED:
        return True  # by as much as the step says, which comes later
    if claim.relation in ("near", "far"):
        gap = seen[claim.target].silhouette.gap(seen[str(claim.reference)].silhouette)
        return gap <= MAX_NEAR if claim.relation == "near" else gap >= MIN_FAR
    if claim.relation in ("on", "in", "under") or claim.reference is None:
        return True
    return _side(seen, claim) >= MIN_SIDE


def _is_crossed(seen: dict[str, Placed], other: Claim) -> bool:
    if other.relation == "on":
        ends = [seen[name].silhouette.high[1] for name in (str(other.reference), other.target)]
        return float(ends[0]) - float(ends[1]) > MAX_CROSSED_HEIGHT
    if other.relation in ("near", "far", "in", "under", *COMPARED) or other.reference is None:
        return False  # they exclude each other, and what is on a thing is not next to it
    return _side(seen, other) > MAX_CROSSED_SIDE


def _side(seen: dict[str, Placed], claim: Claim) -> float:
    middles = {name: float(seen[name].silhouette.low[0] + seen[name].silhouette.high[0]) / 2
               for name in names_of(claim)}  # fmt: skip
    return side_margin(claim, middles)
