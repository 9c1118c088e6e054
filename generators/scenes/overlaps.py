"""Measures with PyBullet how deeply the objects of a scene penetrate one another."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from eqforge.generators.scenes.stage import Placed
from eqforge.schemas.errors import InputError
from eqforge.schemas.records.scenes import Overlap

MESH_MARGIN_M = 0.001
"""PyBullet enlarges convex meshes by this margin, whatever their scale."""

TOUCH_M = 1e-4
"""Objects that overlap by no more only touch: this is PyBullet's accuracy."""


def overlaps(placed: Sequence[Placed]) -> tuple[Overlap, ...]:
    """Returns the pairs of objects that overlap, in the order of the scene.

    PyBullet treats every part of a collision mesh as convex. An asset without a collision mesh
    overlaps nothing, and one that stands on another only touches it.

    Raises:
      InputError: PyBullet cannot read a collision mesh.
    """
    import pybullet

    client = pybullet.connect(pybullet.DIRECT)
    try:
        bodies = [(each, _body(each, client)) for each in placed]
        return tuple(_found([(each, body) for each, body in bodies if body is not None], client))
    finally:
        pybullet.disconnect(client)


def _found(bodies: list[tuple[Placed, int]], client: int) -> Iterator[Overlap]:
    import pybullet

    for (first, body), (second, other) in itertools.combinations(bodies, 2):
        points = pybullet.getClosestPoints(body, other, distance=0.0, physicsClientId=client)
        margins = MESH_MARGIN_M * sum(each.files is not None for each in (first, second))
        depth_m = -min((point[8] for point in points), default=0.0) - margins
        if depth_m > TOUCH_M:
            yield Overlap(first=first.spec.name, second=second.spec.name, depth_m=depth_m)


def _body(placed: Placed, client: int) -> int | None:
    import pybullet

    real, *imaginary = placed.quaternion
    orientation = (*imaginary, real)
    if placed.files is None:
        return pybullet.createMultiBody(
            baseCollisionShapeIndex=_shape(placed, client),
            basePosition=placed.origin,
            baseOrientation=orientation,
            physicsClientId=client,
        )
    if placed.files.simulation is None:
        return None
    try:
        return pybullet.loadURDF(
            str(placed.files.simulation),
            basePosition=placed.origin,
            baseOrientation=orientation,
            globalScaling=placed.spec.scale,
            useFixedBase=True,
            physicsClientId=client,
        )
    except pybullet.error as error:
        raise InputError(
            f"asset {placed.spec.asset!r}: {placed.files.simulation}: {error}"
        ) from error


def _shape(placed: Placed, client: int) -> Any:
    import pybullet

    if placed.spec.asset == "kubric:sphere":
        return pybullet.createCollisionShape(
            pybullet.GEOM_SPHERE, radius=placed.spec.scale, physicsClientId=client
        )
    return pybullet.createCollisionShape(
        pybullet.GEOM_BOX, halfExtents=(placed.spec.scale,) * 3, physicsClientId=client
    )
