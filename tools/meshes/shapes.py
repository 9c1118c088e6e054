"""Solids to model objects from. All are lofts: surfaces through a row of closed rings.

Lengths have no unit; an object is scaled as a whole at the end. z points up.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from eqforge.schemas.records.scenes import Vector

Points = npt.NDArray[np.float64]
CREASE_DEG = 40.0
"""Faces that meet at a smaller angle are shaded as one smooth surface."""
DECIMALS = 4
AROUND = 40
"""Corners of a ring that approximates a circle."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Solid:
    """A closed surface of one material.

    Attributes:
      material: its name.
      vertices: (n, 3).
      faces: polygons of 3 or more vertices, counter-clockwise seen from outside.
      places: where in its texture the corners of each face are, (corners, 2) for each; none where
        it has no texture.
    """

    material: str
    vertices: Points
    faces: tuple[tuple[int, ...], ...]
    places: tuple[Points, ...] = ()

    def moved(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> "Solid":
        """Returns the solid moved."""
        return replace(self, vertices=self.vertices + np.array((x, y, z)))

    def stretched(self, x: float = 1.0, y: float = 1.0, z: float = 1.0) -> "Solid":
        """Returns the solid stretched by positive factors."""
        return replace(self, vertices=self.vertices * np.array((x, y, z)))

    def turned(self, axis: str, angle_deg: float) -> "Solid":
        """Returns the solid turned about an axis through the origin, counter-clockwise."""
        first, second = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
        cosine, sine = np.cos(np.radians(angle_deg)), np.sin(np.radians(angle_deg))
        vertices = self.vertices.copy()
        vertices[:, first] = self.vertices[:, first] * cosine - self.vertices[:, second] * sine
        vertices[:, second] = self.vertices[:, first] * sine + self.vertices[:, second] * cosine
        return replace(self, vertices=vertices)


def loft(material: str, rings: Sequence[Points], is_open: bool = True) -> Solid:
    """Returns the solid between rings of equally many points.

    Args:
      material: its name.
      rings: (n, 3) each, counter-clockwise seen from where the row leads to.
      is_open: the row has two ends, which are closed by flat faces; else the last ring is joined to
        the first.
    """
    size = len(rings[0])
    sides = [
        tuple((row + down) % len(rings) * size + (place + right) % size for down, right in CORNERS)
        for row in range(len(rings) - is_open)
        for place in range(size)
    ]
    last = (len(rings) - 1) * size
    ends = [tuple(range(size))[::-1], tuple(range(last, last + size))] if is_open else []
    return _merged(material, np.concatenate(rings), [*sides, *ends])


CORNERS = ((0, 0), (0, 1), (1, 1), (1, 0))


def lathe(material: str, profile: Iterable[tuple[float, float]], around: int = AROUND) -> Solid:
    """Returns what a profile of (radius, height) sweeps about the z axis, from bottom to top.

    A profile that comes back down inside makes a vessel.
    """
    circle = _circle(around)
    return loft(material, [_ring(circle * radius, height) for radius, height in profile])


def hoop(material: str, section: Iterable[tuple[float, float]], around: int = AROUND) -> Solid:
    """Returns what a closed section of (radius, height) sweeps about the z axis.

    The section goes up outside and comes down inside.
    """
    circle = _circle(around)
    return loft(material, [_ring(circle * radius, height) for radius, height in section], False)


def prism(
    material: str, outline: Points, height: float, bevel: float = 0.0, lean: float = 1.0
) -> Solid:
    """Returns a solid that stands on an outline.

    Args:
      material: its name.
      outline: (n, 2), counter-clockwise seen from above.
      height: its height.
      bevel: how far its horizontal edges are cut.
      lean: size of the top relative to the bottom.
    """
    half = np.abs(outline).max(axis=0)
    inset = outline * (1 - bevel / half)
    rings = [(inset, 0.0), (outline, bevel), (outline, height - bevel), (inset, height)]
    levels = rings if bevel else [(outline, 0.0), (outline, height)]
    return loft(material, [_ring(o * (1 + (lean - 1) * z / height), z) for o, z in levels])


def block(
    material: str, size: tuple[float, float, float], bevel: float = 0.02, lean: float = 1.0
) -> Solid:
    """Returns a box with bevelled edges that stands on the floor, centred above the origin."""
    return prism(material, rectangle(size[0], size[1], bevel), size[2], bevel, lean)


def rectangle(width: float, depth: float, corner: float, steps: int = 3) -> Points:
    """Returns the outline of a rectangle with round corners."""
    angles = np.radians(np.linspace(0, 90, steps)) if corner else np.zeros(1)
    arc = np.stack([np.cos(angles), np.sin(angles)], axis=1) * corner
    x, y = width / 2 - corner, depth / 2 - corner
    quarters = [
        np.array((sx * x, sy * y)) + arc @ turn
        for (sx, sy), turn in zip(((1, 1), (-1, 1), (-1, -1), (1, -1)), _QUARTERS, strict=True)
    ]
    return np.concatenate(quarters)


_QUARTERS = [
    np.linalg.matrix_power(np.array([[0.0, 1.0], [-1.0, 0.0]]), quarter) for quarter in range(4)
]


def disc(material: str, radius: float, height: float, bevel: float = 0.02) -> Solid:
    """Returns an upright cylinder that stands on the floor."""
    return prism(material, _circle(AROUND) * radius, height, bevel)


def ellipsoid(material: str, x: float, y: float, z: float, rings: int = 20) -> Solid:
    """Returns an ellipsoid of three semi-axes about the origin; small ones need few rings."""
    angles = np.radians(np.linspace(-90, 90, rings + 1))
    profile = zip(np.cos(angles), np.sin(angles), strict=True)
    return lathe(material, profile, around=2 * rings).stretched(x, y, z)


def tube(
    material: str,
    path: npt.ArrayLike,
    radius: float | Sequence[float],
    around: int = 14,
    is_open: bool = True,
) -> Solid:
    """Returns a round bar along a path.

    Args:
      material: its name.
      path: (n, 3).
      radius: of the bar; one for all points, or one for each.
      around: corners of its cross-section.
      is_open: the path has two ends; else its last point is joined to its first.
    """
    points = np.asarray(path, dtype=np.float64)
    along = np.gradient(points, axis=0) if is_open else _closed_gradient(points)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    # The cross-section keeps one side in a fixed direction: paths here are flat or nearly so.
    spread = np.linalg.svd(points - points.mean(axis=0))[2][-1] if len(points) > 2 else None
    aside = _perpendicular(along[0]) if spread is None else spread
    circle, radii = _circle(around), np.broadcast_to(radius, len(points))
    rings = []
    for point, direction, width in zip(points, along, radii, strict=True):
        first = aside - direction * (aside @ direction)
        first /= np.linalg.norm(first)
        second = np.cross(direction, first)
        rings.append(point + width * (circle[:, :1] * first + circle[:, 1:] * second))
    return loft(material, rings, is_open)


def bar(material: str, start: Vector, end: Vector, radius: float, end_radius: float = 0.0) -> Solid:
    """Returns a straight round bar; it may taper."""
    return tube(material, [start, end], [radius, end_radius or radius], around=20)


def arc(
    centre: tuple[float, float], radius: tuple[float, float], angles_deg: tuple[float, float],
    steps: int = 16,
) -> Points:  # fmt: skip
    """Returns points on an ellipse in the x-z plane, y = 0, as a path; (steps, 3)."""
    angles = np.radians(np.linspace(*angles_deg, steps))
    x = centre[0] + radius[0] * np.cos(angles)
    return np.stack([x, np.zeros(steps), centre[1] + radius[1] * np.sin(angles)], axis=1)


def wrapped(solid: Solid, how: str) -> Solid:
    """Returns a solid in a texture, as it stands; it keeps it where it is moved or turned.

    Args:
      solid: what is wrapped.
      how: `around` is once about the z axis, from the bottom to the top; `ball` the same from pole
        to pole; `sides` is the whole texture on each side of a box.
    """
    low, high = solid.vertices.min(axis=0), solid.vertices.max(axis=0)
    shares = (solid.vertices - low) / (high - low)
    place = _flat_places if how == "sides" else _round_places
    places = tuple(
        place(shares[list(face)], _newell(solid.vertices[list(face)]), how) for face in solid.faces
    )
    return replace(solid, places=places)


def _flat_places(shares: Points, normal: Points, _: str) -> Points:
    """Returns the places of a face's corners on the side of a box that it is on."""
    axis = int(np.abs(normal).argmax())
    across, up = {0: (1, 2), 1: (0, 2), 2: (0, 1)}[axis]
    is_mirrored = (axis == 1) == (normal[axis] > 0)
    u = 1 - shares[:, across] if is_mirrored else shares[:, across]
    return np.stack((u, shares[:, up]), axis=-1)


def _round_places(shares: Points, _: Points, how: str) -> Points:
    """Returns the places of a face's corners around an axis; a face over the seam runs beyond 1."""
    out = 2 * shares - 1
    u = np.arctan2(out[:, 1], out[:, 0]) / (2 * np.pi) % 1.0
    is_pole = np.hypot(out[:, 0], out[:, 1]) < 1e-6
    if np.ptp(u[~is_pole]) > 0.5:
        u = np.where(u < 0.5, u + 1, u)
    u = np.where(is_pole, u[~is_pole].mean(), u)
    v = np.arcsin(np.clip(out[:, 2], -1, 1)) / np.pi + 0.5 if how == "ball" else shares[:, 2]
    return np.stack((u, v), axis=-1)


def corner_normals(solid: Solid) -> list[Points]:
    """Returns the unit normals at the corners of each face: means over faces smooth with it."""
    normals = np.array([_newell(solid.vertices[list(face)]) for face in solid.faces])
    units = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    touching: list[list[int]] = [[] for _ in solid.vertices]
    for number, face in enumerate(solid.faces):
        for vertex in face:
            touching[vertex].append(number)
    limit = np.cos(np.radians(CREASE_DEG))
    return [
        np.array([_mean_normal(normals, units, number, touching[v], limit) for v in face])
        for number, face in enumerate(solid.faces)
    ]


def _mean_normal(
    normals: Points, units: Points, number: int, near: list[int], limit: float
) -> Points:
    smooth = [other for other in near if units[other] @ units[number] >= limit]
    mean: Points = normals[smooth].sum(axis=0)
    return mean / np.linalg.norm(mean)


def _newell(corners: Points) -> Points:
    """Returns the normal of a polygon, of twice its area in length."""
    around: Points = np.cross(corners, np.roll(corners, -1, axis=0)).sum(axis=0)
    return around


def _merged(material: str, vertices: Points, faces: Iterable[tuple[int, ...]]) -> Solid:
    """Returns a solid in which points at one place are one vertex, and no face is a line."""
    rounded = np.round(vertices, DECIMALS + 2) + 0.0
    unique, place = np.unique(rounded, axis=0, return_inverse=True)
    kept = []
    for face in faces:
        corners = [int(place[corner]) for corner in face]
        distinct = tuple(c for i, c in enumerate(corners) if c != corners[i - 1])
        if len(set(distinct)) >= 3 and np.linalg.norm(_newell(unique[list(distinct)])) > 1e-12:
            kept.append(distinct)
    return Solid(material=material, vertices=unique, faces=tuple(kept))


def _circle(corners: int) -> Points:
    angles = 2 * np.pi * np.arange(corners) / corners
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _ring(outline: Points, height: float) -> Points:
    return np.column_stack([outline, np.full(len(outline), height)])


def _closed_gradient(points: Points) -> Points:
    return np.roll(points, -1, axis=0) - np.roll(points, 1, axis=0)


def _perpendicular(direction: Points) -> Points:
    axis = np.eye(3)[np.abs(direction).argmin()]
    found: Points = np.cross(direction, axis)
    return found / np.linalg.norm(found)
