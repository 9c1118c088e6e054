"""Scenes to render: objects, camera and light, and what two scenes of a pair differ in.

Lengths are metres, angles degrees. The floor is the plane z = 0, z points up. A scene says
everything that its picture depends on; nothing about it is drawn at random while it is rendered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from eqforge.core.errors import InputError
from eqforge.schemas.records.values import Finite, PixelBox, Share, Text, Whole32

Vector = tuple[float, float, float]
Kind = Literal[
    "attribute", "counting", "location", "beside", "between", "row", "support",
    "inside", "under", "facing", "posture", "trim", "graded",
]  # fmt: skip
Attribute = Literal["colour", "size", "material"]
Grade = Literal["size", "lightness", "place", "count"]
Comparison = Literal["larger", "lighter", "nearer", "more"]
Place = Literal[
    "left", "right", "front", "behind", "near", "far", "between", "row", "on", "in", "under"
]
Facing = Literal["facing left", "facing right", "facing the camera", "facing away"]
Posture = Literal["upright", "lying"]
Relation = Place | Comparison | Facing | Posture
SurfaceMaterial = Literal["rubber", "metal", "glass", "wooden"]
StageName = Literal["photo", "plain"]


STEP_SIZE = "step_size"
"""The score that says how large the step of a ladder is that a pair is."""

STEP_UNITS: Mapping[Grade, str] = {
    "size": "percent",
    "lightness": "steps of L*",
    "place": "degrees",
    "count": "copies",
}
"""Units of the step sizes."""


STEP_SIZES: Mapping[Grade, tuple[float, ...]] = {
    "size": (2.5, 5.0, 10.0, 20.0),
    "lightness": (2.3, 4.6, 9.2, 18.4),
    "place": (0.5, 1.0, 2.0, 4.0),
    "count": (1.0, 2.0, 4.0, 8.0),
}
"""The steps of a ladder: one, two, four and eight just-noticeable differences."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SceneObject:
    """An object that stands on the floor.

    Attributes:
      name: unique in the scene; the same object has the same name in both scenes of a pair.
      asset: id of an asset in the manifest, such as `mug`.
      position: the middle of the asset's footprint, at its lowest point.
      yaw_deg: rotation about the vertical, counter-clockwise seen from above.
      scale: factor on the asset's own size.
      colour: red, green and blue in [0, 1], linear; None keeps the asset's own texture.
      material: of its surface; None keeps the asset's own.
      posture: as the asset stands, or tipped over about its y axis, its top towards its x axis.
      trims: by the names of materials, the colours of parts besides, linear.
    """

    name: str
    asset: str
    position: Vector
    yaw_deg: float = 0.0
    scale: float = 1.0
    colour: Vector | None = None
    material: SurfaceMaterial | None = None
    posture: Posture = "upright"
    trims: tuple[tuple[str, Vector], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SceneCamera:
    """A perspective camera, upright.

    Attributes:
      position, look_at: where it is, and the point in the middle of its picture.
      focal_length_mm, sensor_width_mm: the lens.
    """

    position: Vector
    look_at: Vector
    focal_length_mm: float = 35.0
    sensor_width_mm: float = 32.0


@dataclass(frozen=True, kw_only=True, slots=True)
class SceneLight:
    """A sun and light from everywhere.

    Attributes:
      sun_position: the sun shines from there to the origin.
      sun_intensity: its strength; 0 is none.
      ambient: grey level in [0, 1] of the light from everywhere; an HDRI replaces it.
    """

    sun_position: Vector
    sun_intensity: float = 1.5
    ambient: float = 0.3


@dataclass(frozen=True, kw_only=True, slots=True)
class Sun:
    """A far, round light, which takes over what an environment picture was clamped by.

    Attributes:
      direction: unit vector towards it.
      strength: its irradiance on a surface that faces it, red, green and blue, in the units of the
        environment picture after its exposure.
      angle_deg: its diameter as seen from the scene: small for sharp shadows.
    """

    direction: Vector
    strength: Vector
    angle_deg: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """An environment picture as the light and the background of a photographic scene.

    Attributes:
      asset: id of the picture.
      turn_deg: rotation about the vertical, counter-clockwise seen from above.
      exposure: factor on its light, so that all environments are as bright.
      clamp: greatest value of its pixels before the exposure: single brighter ones make noise.
      sun: what the clamp took away; None where that is next to nothing.
    """

    asset: str
    turn_deg: float
    exposure: float
    clamp: float
    sun: Sun | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FloorTexture:
    """A texture repeated over the floor around the objects.

    Attributes:
      asset: id of the texture: a picture that can be put edge to edge with itself.
      tile_m: side of one tile.
      turn_deg: rotation about the vertical.
      tint: factors on its linear red, green and blue.
      radius_m: where the floor goes over into the ground of the environment picture, from the
        origin.
    """

    asset: str
    tile_m: float
    turn_deg: float
    tint: Vector
    radius_m: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Backdrop:
    """What is behind and below the objects.

    Attributes:
      floor_colour: red, green and blue in [0, 1], linear.
      floor_size: side of the square floor.
      hdri: id of an environment picture in the manifest, which lights the scene and stands behind
        it, as it is; None leaves the ambient light alone.
      environment, floor: of a photographic scene; None in a plain one.
    """

    floor_colour: Vector = (0.5, 0.5, 0.5)
    floor_size: float = 40.0
    hdri: str | None = None
    environment: Environment | None = None
    floor: FloorTexture | None = None

    @property
    def pictures(self) -> tuple[str, ...]:
        named = [each.asset for each in (self.environment, self.floor) if each is not None]
        return tuple(named if self.hdri is None else [*named, self.hdri])


@dataclass(frozen=True, kw_only=True, slots=True)
class SceneSpec:
    """Everything that a rendered picture depends on, except for the RenderSettings.

    Attributes:
      objects: the objects, in the order of their numbers in the instance mask: 1, 2, ...; 0 is the
        backdrop.
      camera, light, backdrop: the rest of the scene.
      seed: of the renderer's sampling noise, in [0, 2**31); both scenes of a pair have the same.
    """

    objects: tuple[SceneObject, ...]
    camera: SceneCamera
    light: SceneLight
    backdrop: Backdrop
    seed: int

    @property
    def stage(self) -> StageName:
        return "plain" if self.backdrop.environment is None else "photo"


def lean_spec(scene: SceneSpec) -> dict[str, Any]:
    """Return a scene as JSON values, without the fields that only some scenes fill.

    The specs of other scenes, and the ids and seeds made of them, stay the same.
    """
    spec: dict[str, Any] = msgspec.to_builtins(scene)
    for item in spec["objects"]:
        if item["posture"] == "upright":
            del item["posture"]
        if not item["trims"]:
            del item["trims"]
    backdrop = spec["backdrop"]
    spec["backdrop"] = {
        key: value
        for key, value in backdrop.items()
        if value is not None or key not in ("environment", "floor")
    }
    return spec


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """What a caption says about its picture, for the gates to check against the rendering.

    Attributes:
      target: name of the object spoken of; in a counting scene, of the first copy.
      copies: names of all objects that the caption counts; the target alone elsewhere.
      relation: where the target is, seen by the camera; None where the caption does not say.
      reference: name of the object it is related to.
      others: names of further objects that it is related to; in a `row`, of what
        follows the reference, from left to right.
      trim: noun of a part of the target whose colour the caption says, such as `roof`.
    """

    target: str
    copies: tuple[str, ...]
    relation: Relation | None = None
    reference: str | None = None
    others: tuple[str, ...] = ()
    trim: str | None = None


def lean_claim(claim: Claim) -> dict[str, Any]:
    """Return a claim as JSON values without empty fields: rows of old claims stay the same."""
    values: dict[str, Any] = msgspec.to_builtins(claim)
    for name in ("others", "trim"):
        if not values[name]:
            del values[name]
    return values


@dataclass(frozen=True, kw_only=True, slots=True)
class ScenePair:
    """Two scenes that differ in one declared thing, with a caption for each.

    Attributes:
      sample_id: the id the sample will have, such as `eq-kubric/attribute/000017`.
      kind: what sort of thing differs.
      change: which: `colour`, `size` or `material`; `count`; `position`; `order`, where two objects
        change places; `orientation`; `posture`; or `trim`, the colour of a part.
      scenes: the first and the second scene.
      captions: caption i describes scene i.
      claims: what caption i says of scene i.
      source_id: what it shares with other pairs, such as the steps of a ladder; None for nothing.
    """

    sample_id: str
    kind: Kind
    change: str
    scenes: tuple[SceneSpec, SceneSpec]
    captions: tuple[str, str]
    claims: tuple[Claim, Claim]
    source_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderSettings:
    """Size, quality and device for rendering."""

    resolution: int = 256
    """Image width and height in pixels, 16 to 4096. The rendering time grows with the square of the
    resolution."""

    samples: int | None = None
    """Number of light paths per pixel, 1 to 65536 (default: depends on --stage)."""

    denoise: bool | None = None
    """Remove noise with Open Image Denoise (default: depends on --stage)."""

    device: Literal["cpu", "gpu"] = "cpu"
    """Device on which Cycles renders. For byte-identical images, use the same device and driver."""

    def __post_init__(self) -> None:
        if not 16 <= self.resolution <= 4096:
            raise InputError(f"resolution: expected 16 to 4096, found {self.resolution}")
        if self.samples is not None and not 1 <= self.samples <= 65536:
            raise InputError(f"samples: expected 1 to 65536, found {self.samples}")

    def of_stage(self, stage: StageName) -> "RenderSettings":
        samples, denoise = _NEEDS[stage]
        return replace(
            self,
            samples=samples if self.samples is None else self.samples,
            denoise=denoise if self.denoise is None else self.denoise,
        )


_NEEDS: Mapping[StageName, tuple[int, bool]] = {"photo": (8, True), "plain": (16, False)}
"""Samples, and whether noise is removed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderedObject:
    """How much the picture shows of an object.

    Attributes:
      name: name of the object in the scene.
      asset: id of the object's asset.
      box: bounding box of the visible pixels, or None if no pixel is visible.
      visible_px: number of visible pixels.
      full_px: number of pixels that the object would cover without occlusion or cropping.
      visible_fraction: visible_px / full_px, in [0, 1].
      depth_m: distance from the camera to the object's centre along the viewing direction, in
        metres.
    """

    name: Text
    asset: Text
    box: PixelBox | None
    visible_px: Whole32
    full_px: Whole32
    visible_fraction: Share
    depth_m: Finite


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlap:
    """Two objects of a scene that intersect.

    Attributes:
      first, second: their names, in the order of the scene.
      depth_m: how far one would have to move for them to touch only, in metres.
    """

    first: str
    second: str
    depth_m: float
