"""Measures how deeply the objects of a scene penetrate one another."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.generators.scenes.collision import BALL, BOX, Part, collision_parts
from eqforge.generators.scenes.stage import Placed
from eqforge.schemas.records.scenes import Overlap

TOUCH_M = 1e-4
"""Objects that overlap by no more only touch."""

EXACT_M, EXACT_SHARE = 1e-6, 1e-3
"""A depth is found to so many metres, or to this share of it where that is more."""


def overlaps(placed: Sequence[Placed]) -> tuple[Overlap, ...]:
    """Returns the pairs of objects that overlap, in the order of the scene.

    The depth is the shortest way by which two parts come apart, of those parts that need the
    longest. An asset without a collision mesh overlaps nothing, and one that stands on another only
    touches it.

    Raises:
      InputError: a collision mesh cannot be read.
    """
    return tuple(_found([(each.spec.name, _body(each)) for each in placed]))


def _found(bodies: list[tuple[str, list[Part]]]) -> Iterator[Overlap]:
    for (first, parts), (second, others) in itertools.combinations(bodies, 2):
        depths = (_depth_m(part, other) for part, other in itertools.product(parts, others))
        if (depth_m := max(depths, default=0.0)) > TOUCH_M:
            yield Overlap(first=first, second=second, depth_m=depth_m)


def _body(placed: Placed) -> list[Part]:
    """Returns an object's parts where they stand in the scene, in metres."""
    from trimesh.transformations import quaternion_matrix

    turn = placed.spec.scale * quaternion_matrix(placed.quaternion)[:3, :3]
    return [
        Part(corners=part.corners @ turn.T + placed.origin, radius=part.radius * placed.spec.scale)
        for part in _parts(placed)
    ]


def _parts(placed: Placed) -> tuple[Part, ...]:
    if placed.files is None:
        return (BALL,) if placed.spec.asset == "kubric:sphere" else (BOX,)
    if placed.files.simulation is None:
        return ()
    try:
        return collision_parts(placed.files.simulation)
    except InputError as error:
        raise InputError(f"asset {placed.spec.asset!r}: {error}") from error


def _depth_m(first: Part, second: Part) -> float:
    """Returns how deeply two parts penetrate one another; at most TOUCH_M if they do not."""
    reach = first.radius + second.radius
    if _are_apart(first.corners, second.corners, reach):
        return 0.0
    if reach == 0:
        return _penetration(first.corners, second.corners)
    return reach - _from_hull(first.corners - second.corners)  # one of them is a ball's centre


def _are_apart(first: NDArray[np.float64], second: NDArray[np.float64], reach: float) -> bool:
    """Tells whether two bodies' boxes, parallel to the axes, overlap by no more than TOUCH_M."""
    gaps = (first.min(axis=0) - second.max(axis=0), second.min(axis=0) - first.max(axis=0))
    return bool(np.max(gaps) >= reach - TOUCH_M)


def _from_hull(points: NDArray[np.float64]) -> float:
    """Returns the distance of the origin from a convex hull; negative inside."""
    from scipy.spatial import ConvexHull  # type: ignore[import-untyped]
    from trimesh.triangles import closest_point

    if len(points) == 1:
        return float(np.linalg.norm(points))
    hull = ConvexHull(points)
    if (offset := hull.equations[:, 3].max()) <= 0:
        return float(offset)
    near = closest_point(points[hull.simplices], np.zeros((len(hull.simplices), 3)))
    return float(np.linalg.norm(near, axis=1).min())


def _penetration(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Returns the penetration depth of the convex hulls of two sets of points.

    It is the distance of the origin from the surface of their Minkowski difference. That is
    approached from inside: the face nearest to the origin is moved out until it is a real one.

    Source: van den Bergen, Proximity queries and penetration depth computation on 3D game objects
    (2001), section 3.2, the expanding polytope algorithm.
    """
    from scipy.spatial import ConvexHull

    # Q12: faces may become wide, where many corners lie in a plane.
    inside = ConvexHull(first - second[0], incremental=True, qhull_options="Qt Q12")
    depth_m = np.inf
    while True:
        face = inside.equations[inside.equations[:, 3].argmax()]
        normal, offset = face[:3], face[3]
        corner = first[(first @ normal).argmax()] - second[(second @ normal).argmin()]
        depth_m = min(depth_m, float(corner @ normal))
        if depth_m <= TOUCH_M or depth_m + offset <= max(EXACT_M, EXACT_SHARE * depth_m):
            return depth_m
        inside.add_points([corner])
