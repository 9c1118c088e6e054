"""Whether photographic scenes show what their captions say, by the boxes of the objects.

The gates measure the same on the renderings. The limits here have a reserve, since an object fills
its box only in part: nearly all that passes here passes there.
"""

from eqforge.core.late import numpy as np
from eqforge.generators.scenes.framing import FILL
from eqforge.generators.scenes.placement import Layout, Placed
from eqforge.generators.scenes.view import to_camera
from eqforge.schemas.records.scenes import Relation

MIN_SIDE = 0.11
"""How far left or right of its reference a target is at least, in picture widths."""

MAX_CROSSED_SIDE = 0.06
"""How far it is at most, where only the other caption says so."""

MIN_DEPTH_M = 0.5
"""How far in front of or behind its reference a target is at least, along the view."""

MAX_CROSSED_DEPTH_M = 0.3
"""How far it is at most, where only the other caption says so."""

MIN_NAMED = 0.03
"""Least share of the picture that an object covers which a caption names, in the first try."""

MIN_COPY = 0.01
"""The same of copies, if they are few."""

MAX_NAMED = 0.27
"""Greatest share of the picture that one covers."""

FEW = 5
"""Copies beyond this number may be smaller."""

SPREAD = 1.3
"""How much larger than drawn the larger one of an object's two silhouettes may be."""

LENIENCE = 0.9
"""By how much these shares fall over the first eighth of the tries."""


def share(placed: Placed) -> float:
    """Returns about which share of the picture an object covers if nothing hides it."""
    return FILL * placed.silhouette.area()


def is_related(layout: Layout, relations: tuple[Relation, Relation], progress: float) -> bool:
    """Tells whether both scenes show the relation of their own caption, and no other's."""
    reference, *targets = layout.placed
    if not all(is_sized(layout, placed, MIN_NAMED, progress) for placed in layout.placed):
        return False
    for scene, target in enumerate(targets):
        own, other = relations[scene], relations[1 - scene]
        margins = _margins(layout, target, reference)
        if not _is_shown(margins, own) or (own != other and _is_crossed(margins, other)):
            return False
        if (
            max(layout.hidden(target, scene), layout.hidden(reference, scene))
            > layout.settings.most_hidden
        ):
            return False
    return True


def is_counted(layout: Layout, number: int, progress: float) -> bool:
    """Tells whether the copies are large enough to be seen; many may be smaller."""
    least = MIN_COPY * min(1.0, FEW / number)
    copies = [placed for placed in layout.placed if not placed.is_support]
    return all(
        is_sized(layout, placed, least, progress)
        and layout.hidden(placed, scene) <= layout.settings.most_hidden
        for placed in copies
        for scene in placed.scenes
    )


def is_sized(layout: Layout, placed: Placed, least: float, progress: float) -> bool:
    """Tells whether an object is of a size to be named, unless the user chose the distance."""
    if layout.settings.distance_m is not None:
        return True
    smallest, largest = layout.settings.target_area
    demand = 1 - LENIENCE * min(8 * progress, 1.0)
    return min(least, smallest) * demand <= share(placed) <= max(MAX_NAMED, SPREAD * largest)


def _margins(layout: Layout, target: Placed, reference: Placed) -> tuple[float, float]:
    """Returns how far a target is to the right, in picture widths, and behind, in metres."""
    middles = [
        placed.silhouette.low[0] + placed.silhouette.high[0] for placed in (target, reference)
    ]
    points = np.array([target.middle, reference.middle])
    depths = to_camera(layout.camera, points)[:, 2]
    return float(middles[0] - middles[1]) / 2, float(depths[0] - depths[1])


def _along(margins: tuple[float, float], relation: Relation) -> float:
    right, behind = margins
    return {"right": right, "left": -right, "behind": behind, "front": -behind}[relation]


def _is_shown(margins: tuple[float, float], relation: Relation) -> bool:
    least = MIN_SIDE if relation in ("left", "right") else MIN_DEPTH_M
    return _along(margins, relation) >= least


def _is_crossed(margins: tuple[float, float], relation: Relation) -> bool:
    most = MAX_CROSSED_SIDE if relation in ("left", "right") else MAX_CROSSED_DEPTH_M
    return _along(margins, relation) > most
