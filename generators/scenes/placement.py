"""Place objects in both scenes of a pair at once: in view, apart and clearly visible."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from random import Random

from eqforge.generators.scenes.manifest import Asset
from eqforge.generators.scenes.pieces import Piece
from eqforge.generators.scenes.settings import DISTANCE_M, SceneSettings
from eqforge.generators.scenes.view import DECIMALS, Points, Shape, corners, project, shape_of
from eqforge.schemas.records.scenes import SceneCamera, SceneObject, Vector

Moves = tuple[tuple[float, float], tuple[float, float]]  # both scenes' direction and distance
BOTH = (0, 1)
MAX_HIDDEN_OF_OTHERS = 0.7  # greatest hidden share of an object's box if no caption names it
MAX_ASKEW_DEG = 55.0  # maximum angle between an object's front and the direction to the camera


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """An object in its place, in one or both scenes of a pair.

    Attributes:
      scenes: 0, 1 or both.
      footprint: the floor below it, in metres.
      silhouette: the part of the image that its box covers, in image widths.
      middle: the centre of its box.
    """

    item: SceneObject
    scenes: tuple[int, ...]
    footprint: Shape
    silhouette: Shape
    middle: Vector
    distance_m: float
    is_support: bool


@dataclass(kw_only=True, slots=True)
class Layout:
    """The objects placed so far, seen by one camera."""

    camera: SceneCamera
    settings: SceneSettings
    placed: list[Placed] = field(default_factory=list)

    def add(
        self, item: SceneObject, asset: Asset, scenes: Collection[int] = BOTH, gap: float = -1.0
    ) -> bool:
        new = self.fit(item, asset, scenes, gap)
        if new is not None:
            self.placed.append(new)
        return new is not None

    def fit(
        self, item: SceneObject, asset: Asset, scenes: Collection[int] = BOTH, gap: float = -1.0
    ) -> Placed | None:
        """Return an object in its place; None if it is out of view or too close to others.

        `gap` is the minimum distance to the others in the image, in image widths; negative for
        none.
        """
        box = corners(item, asset.bounds)
        seen = project(self.camera, box)
        if not _is_in_view(seen, self.settings.image_margin):
            return None
        new = self._placed(item, box, seen, scenes, False)
        for other in self.placed:
            if other.is_support or not set(new.scenes) & set(other.scenes):
                continue
            if new.footprint.gap(other.footprint) < self.settings.min_clearance_m:
                return None
            if gap >= 0 and new.silhouette.gap(other.silhouette) < gap:
                return None
        return new

    def is_taken(self, piece: Piece, place: Vector) -> bool:
        radius = min(piece.sides()) / 2
        return any(
            math.dist(place, other.item.position) < radius
            for other in self.placed
            if not other.is_support
        )

    def add_support(self, item: SceneObject, asset: Asset) -> bool:
        box = corners(item, asset.bounds)
        seen = project(self.camera, box)
        if not _is_in_view(seen[4:], 0.0):
            return False
        self.placed.append(self._placed(item, box, seen, BOTH, True))
        return True

    def objects(self, scene: int) -> tuple[SceneObject, ...]:
        return tuple(placed.item for placed in self.placed if scene in placed.scenes)

    def is_plain(self, names: Collection[str]) -> bool:
        return all(
            self.hidden(placed, scene)
            <= (self.settings.most_hidden if placed.item.name in names else MAX_HIDDEN_OF_OTHERS)
            for placed in self.placed
            if not placed.is_support
            for scene in placed.scenes
        )

    def hidden(self, placed: Placed, scene: int) -> float:
        """Return the share of an object's silhouette that nearer ones cover, in [0, 1]."""
        nearer = [
            other.silhouette
            for other in self.placed
            if scene in other.scenes and not other.is_support
            if other.distance_m < placed.distance_m and other is not placed
            if other.silhouette.gap(placed.silhouette) < 0
        ]
        return placed.silhouette.covered_by(nearer) if nearer else 0.0

    def _placed(
        self,
        item: SceneObject,
        box: Points,
        seen: Points,
        scenes: Collection[int],
        is_support: bool,
    ) -> Placed:
        x, y, z = box.mean(axis=0).tolist()
        return Placed(
            item=item,
            scenes=tuple(scenes),
            footprint=shape_of(box[:4, :2]),
            silhouette=shape_of(seen),
            middle=(x, y, z),
            distance_m=math.dist((x, y, z), self.camera.position),
            is_support=is_support,
        )


def _is_in_view(seen: Points, margin: float) -> bool:
    return bool(seen.min() >= margin and seen.max() <= 1 - margin)


def draw_camera(
    settings: SceneSettings, rng: Random, height_m: float, farther: float
) -> SceneCamera:
    elevation = math.radians(rng.uniform(*settings.elevations_deg))
    azimuth = rng.uniform(0.0, 2 * math.pi)
    distance = rng.uniform(*(settings.distance_m or DISTANCE_M)) * farther
    flat = distance * math.cos(elevation)
    position = (flat * math.cos(azimuth), flat * math.sin(azimuth), distance * math.sin(elevation))
    x, y, z = (round(value, DECIMALS) for value in position)
    return SceneCamera(
        position=(x, y, round(z + height_m, DECIMALS)),
        look_at=(0.0, 0.0, round(height_m, DECIMALS)),
    )


def beside(camera: SceneCamera, place: Vector, heading_deg: float, distance_m: float) -> Vector:
    """Return the point in a direction (0 away from the camera, 90 to its right)."""
    away = math.atan2(place[1] - camera.position[1], place[0] - camera.position[0])
    angle = away - math.radians(heading_deg)
    x = place[0] + distance_m * math.cos(angle)
    y = place[1] + distance_m * math.sin(angle)
    return (round(x, DECIMALS), round(y, DECIMALS), place[2])


def turn_deg(camera: SceneCamera, place: Vector, front_deg: float | None, rng: Random) -> float:
    """Draw an object's yaw in degrees; a front is roughly towards the camera."""
    if front_deg is None:
        return round(rng.uniform(0.0, 360.0), 2)
    towards = math.atan2(camera.position[1] - place[1], camera.position[0] - place[0])
    askew = rng.uniform(-MAX_ASKEW_DEG, MAX_ASKEW_DEG)
    return round((math.degrees(towards) - front_deg + askew) % 360.0, 2)


def put(camera: SceneCamera, piece: Piece, place: Vector, rng: Random) -> SceneObject:
    yaw = turn_deg(camera, place, piece.front_deg, rng)
    return replace(piece.variants[0], position=place, yaw_deg=yaw)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """The top of a rotated support in the scene's middle."""

    support: Piece
    yaw_deg: float

    @property
    def top_m(self) -> float:
        return round(self.support.height, DECIMALS)

    def draw_place(self, radius: float, rng: Random) -> Vector:
        """Draw a place whose surroundings within a radius, in metres, are on the support."""
        turn = math.radians(self.yaw_deg)
        x, y = (rng.uniform(-1, 1) * max(side / 2 - radius, 0.0) for side in self.support.sides())
        return (
            round(x * math.cos(turn) - y * math.sin(turn), DECIMALS),
            round(x * math.sin(turn) + y * math.cos(turn), DECIMALS),
            self.top_m,
        )
