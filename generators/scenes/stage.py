"""Build a scene in kubric and Blender from its description."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.generators.scenes.assets import AssetFiles, AssetLibrary
from eqforge.generators.scenes.blender import renderer_class
from eqforge.generators.scenes.looks import apply_look
from eqforge.generators.scenes.manifest import tipped
from eqforge.generators.scenes.photograph import photograph
from eqforge.generators.scenes.surfaces import changed_slots, override_surface
from eqforge.schemas.records.scenes import RenderSettings, SceneObject, SceneSpec, StageName, Vector

PRIMITIVES: dict[str, tuple[Vector, Vector]] = {
    "kubric:cube": ((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0)),
    "kubric:sphere": ((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0)),
}
"""Bounds of kubric's own shapes: assets that are in no manifest."""

FLOOR_THICKNESS = 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """An object in its place.

    Attributes:
      files: its asset's files; None for a primitive.
      bounds: in the asset's own units, tipped over if it lies.
    """

    spec: SceneObject
    files: AssetFiles | None
    bounds: tuple[Vector, Vector]

    @property
    def origin(self) -> Vector:
        """The asset origin in the scene; the spec has the middle of the footprint."""
        (x0, y0, z0), (x1, y1, _) = self.bounds
        x, y, yaw = (x0 + x1) / 2, (y0 + y1) / 2, math.radians(self.spec.yaw_deg)
        turned_x = x * math.cos(yaw) - y * math.sin(yaw)
        turned_y = x * math.sin(yaw) + y * math.cos(yaw)
        at, scale = self.spec.position, self.spec.scale
        return (at[0] - scale * turned_x, at[1] - scale * turned_y, at[2] - scale * z0)

    @property
    def quaternion(self) -> tuple[float, float, float, float]:
        """Its rotation as a unit quaternion, real part first."""
        half = math.radians(self.spec.yaw_deg) / 2
        real, up = math.cos(half), math.sin(half)
        if self.spec.posture == "upright":
            return (real, 0.0, 0.0, up)
        # The yaw comes after a 90-degree rotation about the y axis, from z to x.
        root = math.sqrt(0.5)
        return (real * root, -up * root, real * root, up * root)


def place(spec: SceneObject, library: AssetLibrary) -> Placed:
    files = None if spec.asset in PRIMITIVES else library.unpack(spec.asset)
    bounds = PRIMITIVES[spec.asset] if files is None else files.bounds
    is_upright = spec.posture == "upright"
    return Placed(spec=spec, files=files, bounds=bounds if is_upright else tipped(bounds))


class Stage:
    """A scene in kubric and in Blender, ready to be rendered; Blender has one at a time.

    Args:
      pictures: files of the environment image and the floor texture, by asset id.
      scratch: an empty folder for the renderer's files; the caller deletes it.
    """

    def __init__(
        self,
        spec: SceneSpec,
        placed: tuple[Placed, ...],
        pictures: Mapping[str, Path],
        settings: RenderSettings,
        scratch: Path,
    ) -> None:
        import kubric

        # Resets the counter in names, so that a scene's names do not depend on earlier scenes.
        kubric.utils.next_global_count("", reset=True)
        sky = kubric.Color(*(spec.light.ambient,) * 3)
        self.scene = kubric.Scene(
            frame_start=1,
            frame_end=1,
            resolution=(settings.resolution, settings.resolution),
            ambient_illumination=sky,
            background=sky,
        )
        wanted = settings.of_stage(spec.stage)
        self._renderer = renderer_class()(self.scene, scratch, wanted, spec.seed)
        self._objects = tuple(
            self._add_object(index, each, spec.stage) for index, each in enumerate(placed)
        )
        if spec.stage == "photo":
            self.scene += _camera(spec)
            photograph(self._renderer.blender_scene, spec, pictures, settings.resolution)
            return
        self.scene += _surroundings(spec)
        if spec.backdrop.hdri is not None:
            picture = str(pictures[spec.backdrop.hdri])
            self._renderer._set_ambient_light_hdri(picture)
            self._renderer._set_background_hdri(picture)

    def render(self) -> tuple[NDArray[np.uint8], NDArray[np.intp]]:
        """Render the image, uint8 [size, size, 3], and the objects' numbers, intp [size, size].

        Numbers count from 1 in scene order; 0 is no object.
        """
        import kubric

        layers = self._renderer.render_still()
        numbers = kubric.adjust_segmentation_idxs(
            layers["segmentation"], self.scene.assets, self._objects
        )
        return layers["rgb"], numbers[..., 0].astype(np.intp)

    def triangles(self, index: int) -> NDArray[np.float64]:
        """Return an object's surface, float64 [triangles, 3 corners, 3], in scene metres."""
        import bpy

        obj = self._objects[index].linked_objects[self._renderer]
        obj = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        mesh = obj.to_mesh()
        mesh.calc_loop_triangles()
        vertices = np.empty(len(mesh.vertices) * 3, np.float32)
        corners = np.empty(len(mesh.loop_triangles) * 3, np.int32)
        mesh.vertices.foreach_get("co", vertices)
        mesh.loop_triangles.foreach_get("vertices", corners)
        matrix = np.array(obj.matrix_world, np.float64)
        obj.to_mesh_clear()
        placed = vertices.reshape(-1, 3) @ matrix[:3, :3].T + matrix[:3, 3]
        return placed[corners.reshape(-1, 3)]

    def _add_object(self, index: int, placed: Placed, stage: StageName) -> Any:
        import kubric

        common = {
            "name": f"object_{index:04d}",
            "position": placed.origin,
            "quaternion": placed.quaternion,
            "scale": placed.spec.scale,
            "bounds": placed.bounds,
        }
        if placed.files is None:
            shapes = {"kubric:cube": kubric.Cube, "kubric:sphere": kubric.Sphere}
            thing = shapes[placed.spec.asset](**common)
        else:
            thing = kubric.FileBasedObject(
                asset_id=placed.spec.asset,
                render_filename=str(placed.files.render),
                render_import_kwargs=dict(placed.files.import_kwargs),
                simulation_filename=None,
                **common,
            )
        self.scene += thing
        parts = None if placed.files is None else placed.files.parts
        obj = thing.linked_objects[self._renderer]
        colour, material = placed.spec.colour, placed.spec.material
        if stage == "photo" and material is not None:
            apply_look(obj, colour, material, parts)
        else:
            override_surface(obj, colour, material, parts)
        for part, trim in placed.spec.trims:
            if not changed_slots(obj, (part,)):
                raise InputError(
                    f"asset {placed.spec.asset!r}: its words list {part!r} under `trims`, but "
                    "its mesh has no material with this name"
                )
            override_surface(obj, trim, "rubber", (part,))  # a colour that shines looks another
        return thing


def _surroundings(spec: SceneSpec) -> list[Any]:
    import kubric

    side = spec.backdrop.floor_size / 2
    floor = kubric.Cube(
        name="floor",
        scale=(side, side, FLOOR_THICKNESS / 2),
        position=(0.0, 0.0, -FLOOR_THICKNESS / 2),
        material=kubric.PrincipledBSDFMaterial(
            name="floor_material",
            color=kubric.Color(*spec.backdrop.floor_colour),
            roughness=1.0,
            specular=0.0,
        ),
        background=True,
    )
    if spec.light.sun_intensity == 0:
        return [floor, _camera(spec)]
    sun = kubric.DirectionalLight(
        name="sun",
        position=spec.light.sun_position,
        look_at=(0.0, 0.0, 0.0),
        intensity=spec.light.sun_intensity,
    )
    return [floor, sun, _camera(spec)]


def _camera(spec: SceneSpec) -> Any:
    import kubric

    return kubric.PerspectiveCamera(
        name="camera",
        position=spec.camera.position,
        look_at=spec.camera.look_at,
        focal_length=spec.camera.focal_length_mm,
        sensor_width=spec.camera.sensor_width_mm,
    )
