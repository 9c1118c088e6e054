"""Measure how deeply the objects of a scene penetrate one another."""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.generators.scenes.stage import Placed
from eqforge.schemas.records.scenes import Overlap

MESHES = (".obj", ".stl")
CYLINDER_SIDES = 128


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Part:
    """A convex body: all points within a radius of the convex hull of its corners.

    The corners are float64 [corners, 3]. A ball is its centre and a radius; all others have radius
    0.
    """

    corners: NDArray[np.float64]
    radius: float = 0.0


BALL = Part(corners=np.zeros((1, 3)), radius=1.0)  # kubric's sphere
BOX = Part(corners=np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T)  # kubric's cube


@functools.lru_cache(maxsize=256)
def collision_parts(urdf: Path) -> tuple[Part, ...]:
    """Return the parts of all collision elements of a URDF file, in the asset's units.

    Each object (`o`) and group (`g`) of an OBJ file is a part, represented by its convex hull.
    """
    try:
        robot = ElementTree.parse(urdf, ElementTree.XMLParser(target=_Builder())).getroot()
        if (links := len(robot.findall("link"))) != 1:
            raise ValueError(f"expected one 'link' element, found {links}")
        parts = (_placed(collision, urdf) for collision in robot.iterfind("link/collision"))
        return tuple(itertools.chain.from_iterable(parts))
    except Exception as error:  # of whatever kind trimesh and Qhull have for bad files
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"{urdf}: {reason}") from error


class _Builder(ElementTree.TreeBuilder):
    def doctype(self, name: str, *_others: object) -> None:
        raise ValueError(f"the document type {name!r} is not allowed; remove its declaration")


def _placed(collision: ElementTree.Element, urdf: Path) -> Iterator[Part]:
    from trimesh.transformations import euler_matrix

    origin = collision.find("origin")
    place = {} if origin is None else origin.attrib
    turn = euler_matrix(*_numbers(place.get("rpy", "0 0 0"), 3))[:3, :3]
    shapes = [shape for shape in collision.iterfind("geometry/*") if shape.tag in _SHAPES]
    if not shapes:
        raise ValueError("expected a mesh, box, cylinder or sphere as the geometry")
    for part in _SHAPES[shapes[0].tag](shapes[0], urdf):
        corners = part.corners @ turn.T + _numbers(place.get("xyz", "0 0 0"), 3)
        yield Part(corners=corners, radius=part.radius)


def _mesh(shape: ElementTree.Element, urdf: Path) -> list[Part]:
    import trimesh

    # Archives of assets have no folders inside, so a name leads nowhere else.
    name = PurePosixPath(shape.get("filename", "")).name
    file = urdf.parent / name
    if not name.lower().endswith(MESHES):
        found = repr(name) if name else "no file name"
        raise ValueError(f"expected a mesh file ({', '.join(MESHES)}), found {found}")
    if not file.is_file():
        raise ValueError(f"the collision mesh {name} does not exist")
    scene = trimesh.load_scene(
        file,
        process=False,
        skip_materials=True,
        group_material=False,
        split_objects=True,
        split_groups=True,
    )
    meshes = [each for each in scene.geometry.values() if isinstance(each, trimesh.Trimesh)]
    if not meshes:
        raise ValueError(f"{name} contains no mesh")
    scale = _numbers(shape.get("scale", "1 1 1"), 3)
    return [_hull(np.asarray(mesh.vertices)[np.unique(mesh.faces)] * scale) for mesh in meshes]


def _cylinder(shape: ElementTree.Element, _: Path) -> list[Part]:
    (radius,), (length,) = (_numbers(shape.get(name, ""), 1) for name in ("radius", "length"))
    turn = np.arange(CYLINDER_SIDES) * (2 * np.pi / CYLINDER_SIDES)
    rim = np.stack(
        [radius * np.cos(turn), radius * np.sin(turn), np.full_like(turn, length / 2)], 1
    )
    return [_hull(np.concatenate([rim, rim * (1, 1, -1)]))]


_SHAPES: dict[str, Callable[[ElementTree.Element, Path], list[Part]]] = {
    "mesh": _mesh,
    "box": lambda shape, _: [_hull(BOX.corners * _numbers(shape.get("size", ""), 3) / 2)],
    "cylinder": _cylinder,
    "sphere": lambda shape, _: [
        Part(corners=BALL.corners, radius=float(_numbers(shape.get("radius", ""), 1)[0]))
    ],
}


def _hull(points: NDArray[np.float64]) -> Part:
    from scipy.spatial import ConvexHull, QhullError  # type: ignore[import-untyped]

    try:
        return Part(corners=points[ConvexHull(points).vertices])
    except QhullError as error:
        raise ValueError("a part of the collision mesh has no volume") from error


def _numbers(text: str, count: int) -> NDArray[np.float64]:
    found = np.array(text.split(), np.float64)
    if found.shape != (count,) or not np.isfinite(found).all():
        raise ValueError(f"expected {count} number{'s' * (count > 1)}, found {text!r}")
    return found


TOUCH_M = 1e-4  # objects that overlap by no more only touch
EXACT_M, EXACT_SHARE = 1e-6, 1e-3  # of a depth: the larger of the two counts


def overlaps(placed: Sequence[Placed]) -> tuple[Overlap, ...]:
    """Return the pairs of objects that overlap, in scene order.

    The depth is the shortest move that separates two parts, for the pair of parts with the longest.
    """
    found = []
    bodies = [(each.spec.name, _parts(each)) for each in placed]
    for (first, parts), (second, others) in itertools.combinations(bodies, 2):
        depths = (_depth_m(part, other) for part, other in itertools.product(parts, others))
        if (depth_m := max(depths, default=0.0)) > TOUCH_M:
            found.append(Overlap(first=first, second=second, depth_m=depth_m))
    return tuple(found)


def _parts(placed: Placed) -> list[Part]:
    from trimesh.transformations import quaternion_matrix

    if placed.files is None:
        parts: tuple[Part, ...] = (BALL,) if placed.spec.asset == "kubric:sphere" else (BOX,)
    elif placed.files.simulation is None:
        return []
    else:
        try:
            parts = collision_parts(placed.files.simulation)
        except InputError as error:
            raise InputError(f"asset {placed.spec.asset!r}: {error}") from error
    turn = placed.spec.scale * quaternion_matrix(placed.quaternion)[:3, :3]
    return [
        Part(corners=part.corners @ turn.T + placed.origin, radius=part.radius * placed.spec.scale)
        for part in parts
    ]


def _depth_m(first: Part, second: Part) -> float:
    """Return how deeply two parts penetrate one another; at most TOUCH_M if they do not."""
    reach, one, other = first.radius + second.radius, first.corners, second.corners
    gaps = (one.min(axis=0) - other.max(axis=0), other.min(axis=0) - one.max(axis=0))
    if np.max(gaps) >= reach - TOUCH_M:  # the boxes around them, parallel to the axes, are apart
        return 0.0
    if reach == 0:
        return _penetration(one, other)
    return reach - _from_hull(one - other)  # one of them is a ball's centre


def _from_hull(points: NDArray[np.float64]) -> float:
    """Return the distance of the origin from a convex hull; negative inside."""
    from scipy.spatial import ConvexHull
    from trimesh.triangles import closest_point

    if len(points) == 1:
        return float(np.linalg.norm(points))
    hull = ConvexHull(points)
    if (offset := hull.equations[:, 3].max()) <= 0:
        return float(offset)
    near = closest_point(points[hull.simplices], np.zeros((len(hull.simplices), 3)))
    return float(np.linalg.norm(near, axis=1).min())


def _penetration(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the penetration depth of the convex hulls of two sets of points.

    It is the distance of the origin from the surface of their Minkowski difference, approached from
    inside: the face nearest to the origin moves out until it lies on the surface.

    Source: van den Bergen, Proximity queries and penetration depth computation on 3D game objects
    (2001), section 3.2, the expanding polytope algorithm.
    """
    from scipy.spatial import ConvexHull

    # Q12: faces may become wide if many corners lie in a plane.
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
