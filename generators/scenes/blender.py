"""Adapt Kubric's renderer to Blender 4.2 to 5.2, rendering only image and segmentation.

kubric 2023.12 was written for Blender 2.93 to 3.x; a subclass handles what has changed since.
kubric renders the segmentation separately with one sample per pixel, which makes jagged edges. Here
it comes from the image's own render: the object that covers most of a pixel.

Source: kubric/renderer/blender.py and blender_utils.py of kubric-nightly 2023.12.27.
"""

import contextlib
import functools
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from eqforge.core.errors import InputError
from eqforge.schemas.records.scenes import RenderSettings

CRYPTOMATTE_OBJECTS = 6  # how many objects are distinguished within one pixel; Blender's default
_LAYERS = [f"CryptoObject{index:02d}" for index in range(CRYPTOMATTE_OBJECTS // 2)]

VIEW_TRANSFORM = "Standard"
"""AgX, the default of Blender 4, turns yellow into beige; Standard keeps the captioned colour."""


@functools.cache
def renderer_class() -> Any:
    """Return the class `Renderer(scene, scratch_dir, settings, seed)`, a `kubric` view.

    Constructing one resets Blender. `render_still` returns `rgb`, uint8 [height, width, 3], and
    `segmentation`, uint32 [height, width, 1]: the asset's number from 1, or 0 for none.
    """
    import bpy
    from kubric import core
    from kubric.renderer import blender

    # Skips passes and nodes that we would remove again; Blender 5 lacks some of them.
    blender.blender_utils.activate_render_passes = lambda **_: None
    blender.blender_utils.set_up_exr_output_node = lambda **_: None

    class Renderer(blender.Blender):  # type: ignore[misc]
        def __init__(self, scene: Any, scratch_dir: Path, settings: RenderSettings, seed: int):
            super().__init__(
                scene,
                scratch_dir=str(scratch_dir),
                samples_per_pixel=settings.samples,
                use_denoising=settings.denoise,
            )
            self.blender_scene.cycles.seed = seed
            self.blender_scene.view_settings.view_transform = VIEW_TRANSFORM
            use_device(self.blender_scene, settings.device)
            _keep_picture_and_cryptomatte(self, _LAYERS)

        @staticmethod
        def clear_and_reset_blender_scene(verbose: bool = False, custom_scene: Any = None) -> None:
            # kubric reloads the factory settings, which starts all add-ons: 50 ms.
            bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
            bpy.context.scene.world = bpy.data.worlds.new("World")

        def add_asset(self, asset: Any) -> Any:
            if isinstance(asset, core.PrincipledBSDFMaterial):
                return _add_material(self, asset)
            if isinstance(asset, core.FileBasedObject):
                return _add_mesh(self, asset)
            return super().add_asset(asset)

        def set_exr_output_path(self, path_prefix: Any) -> None:
            output, folder = self.exr_output_node, Path(path_prefix).parent
            if hasattr(output, "directory"):  # since Blender 5.0
                output.directory, output.file_name = f"{folder}/", "frame_"
            else:
                output.base_path = f"{folder}/frame_"

        def postprocess(self, from_dir: Any, return_layers: Any) -> dict[str, NDArray[Any]]:
            # kubric reads PNG files with a decoder written in Python: 1 s at 1024 x 1024 pixels.
            (exr,), (file,) = Path(from_dir).glob("exr/*"), Path(from_dir).glob("images/*")
            with Image.open(file, formats=("PNG",)) as picture:
                rgb = np.asarray(picture)
            return {"rgb": rgb[None], "segmentation": _segmentation(exr, self.scene)[None]}

    return Renderer


def _keep_picture_and_cryptomatte(renderer: Any, names: Sequence[str]) -> None:
    import bpy

    scene = renderer.blender_scene
    scene.render.image_settings.color_mode = "RGB"
    scene.render.image_settings.compression = 0  # the file is read again at once
    layer = scene.view_layers[0]
    layer.use_pass_cryptomatte_object = True
    layer.pass_cryptomatte_depth = CRYPTOMATTE_OBJECTS
    layer.use_pass_z = False
    if hasattr(scene, "compositing_node_group"):  # since Blender 5.0
        tree = bpy.data.node_groups.new("Layers", "CompositorNodeTree")
        scene.compositing_node_group = tree
    else:
        scene.use_nodes = True
        tree = scene.node_tree
        tree.nodes.clear()
    layers = tree.nodes.new("CompositorNodeRLayers")
    output = tree.nodes.new("CompositorNodeOutputFile")
    if hasattr(output.format, "media_type"):  # since Blender 5.0
        output.format.media_type = "MULTI_LAYER_IMAGE"
    output.format.file_format = "OPEN_EXR_MULTILAYER"
    output.format.color_depth = "32"  # a cryptomatte holds hashes, not colours
    if hasattr(output, "file_output_items"):  # since Blender 5.0
        output.file_output_items.clear()
        for name in names:
            output.file_output_items.new("RGBA", name)
    else:
        output.file_slots.clear()
        for name in names:
            output.file_slots.new(name)
    for name in names:
        tree.links.new(layers.outputs[name], output.inputs[name])
    renderer.exr_output_node = output


def _segmentation(exr: Path, scene: Any) -> NDArray[np.uint32]:
    """Return the number of the asset that covers most of each pixel; 0 for the sky.

    A layer holds two objects with their share of the pixel, the largest first.
    """
    import OpenEXR
    from kubric.renderer import blender_utils

    with OpenEXR.File(str(exr), separate_channels=True) as file:
        # Blender 4.2 writes CryptoObject00.R, 4.5 CryptoObject00.r, and 5.0 one part per layer.
        found = {
            name.lower(): channel.pixels
            for part in file.parts
            for name, channel in part.channels.items()
        }
    names = [f"{layer}.{channel}".lower() for layer in _LAYERS for channel in "RGBA"]
    channels = np.stack([found[name] for name in names], axis=-1)
    largest, shares = channels[..., :1].view(np.uint32), channels[..., 1::2]
    sky = 1 - shares.sum(axis=-1)
    numbers: NDArray[np.uint32] = blender_utils.replace_cryptomatte_hashes_by_asset_index(
        np.where((shares[..., 0] > sky)[..., None], largest, 0), scene.assets
    )
    return numbers


def _link_object(renderer: Any, asset: Any, obj: Any) -> Any:
    from kubric.renderer import blender_utils

    return blender_utils.prepare_blender_object(lambda _, __: obj)(renderer, asset)


def _add_material(renderer: Any, asset: Any) -> Any:
    import bpy
    from kubric.renderer.blender import AttributeSetter

    material = bpy.data.materials.new(asset.uid)
    material.use_nodes = True
    inputs = material.node_tree.nodes["Principled BSDF"].inputs
    for trait, name in (
        ("color", "Base Color"),
        ("roughness", "Roughness"),
        ("metallic", "Metallic"),
        ("specular", "Specular IOR Level"),
        ("ior", "IOR"),
        ("transmission", "Transmission Weight"),
        ("emission", "Emission Color"),
    ):
        asset.observe(AttributeSetter(inputs[name], "default_value"), trait)
    inputs["Emission Strength"].default_value = 1.0  # its default before 4.0
    return _link_object(renderer, asset, material)


def _add_mesh(renderer: Any, asset: Any) -> Any:
    from kubric.renderer.blender import AttributeSetter, register_object3d_setters

    obj = import_mesh(asset.render_filename, asset.render_import_kwargs)
    register_object3d_setters(asset, obj)
    asset.observe(AttributeSetter(obj, "scale"), "scale")
    return _link_object(renderer, asset, obj)


GPU_KINDS = ("OPTIX", "CUDA")  # OptiX is faster, and needs a newer driver


def use_device(scene: Any, device: Literal["cpu", "gpu"]) -> None:
    import bpy

    scene.cycles.device = device.upper()
    if device == "cpu":
        return
    preferences = bpy.context.preferences.addons["cycles"].preferences
    preferences.refresh_devices()
    found: list[str] = []
    for kind in GPU_KINDS:
        found += [f"{name} ({type_})" for name, type_, *_ in preferences.get_device_list(kind)]
        devices = preferences.get_devices_for_type(kind)
        if devices:
            preferences.compute_device_type = kind
            for card in devices:
                card.use = card.type == kind
            return
    raise InputError(
        f"--device gpu: Cycles needs an {' or '.join(GPU_KINDS)} graphics card; it found "
        f"{', '.join(dict.fromkeys(found)) or 'nothing'}"
    )


_AXES = {"axis_forward": "forward_axis", "axis_up": "up_axis"}


def import_mesh(path: str, import_kwargs: Mapping[str, Any]) -> Any:
    """Import an OBJ, glTF or GLB file into the current Blender scene as one mesh object.

    It takes the arguments of the Blender 2.93 importers, as in kubric's manifests.
    """
    import bpy

    importers = {"obj": _import_obj, "glb": _import_gltf, "gltf": _import_gltf}
    extension = path.rpartition(".")[2].lower()
    if extension not in importers:
        raise InputError(f"{path}: expected a .obj, .glb or .gltf mesh")
    bpy.ops.object.select_all(action="DESELECT")
    with contextlib.redirect_stdout(io.StringIO()):
        importers[extension](path, import_kwargs)
    meshes = [obj for obj in bpy.context.selected_objects if obj.type == "MESH"]
    if not meshes:
        raise InputError(f"{path}: contains no mesh")
    bpy.context.view_layer.objects.active = meshes[0]
    if len(meshes) > 1:
        bpy.ops.object.join()
    return bpy.context.view_layer.objects.active


def _import_obj(path: str, import_kwargs: Mapping[str, Any]) -> None:
    import bpy

    kwargs = {_AXES.get(key, key): value for key, value in import_kwargs.items()}
    for axis in _AXES.values():
        if axis in kwargs:
            kwargs[axis] = kwargs[axis].replace("-", "NEGATIVE_")
    bpy.ops.wm.obj_import(filepath=path, **{"use_split_objects": False, **kwargs})
    for obj in bpy.context.selected_objects:
        # Kubric sets the object's position and rotation itself.
        if obj.type == "MESH" and obj.matrix_world != obj.matrix_world.Identity(4):
            obj.data.transform(obj.matrix_world)
            obj.matrix_world.identity()


def _import_gltf(path: str, import_kwargs: Mapping[str, Any]) -> None:
    """Import the meshes of a glTF file in the file's own coordinates, as kubric does.

    Blender rotates them from y up to z up, and its importer takes no other axes.
    """
    import bpy

    kwargs = {key: value for key, value in import_kwargs.items() if key not in _AXES}
    bpy.ops.import_scene.gltf(filepath=path, **kwargs)
    imported = list(bpy.context.selected_objects)
    places = {
        obj.name: obj.matrix_world.Rotation(-math.pi / 2, 4, "X") @ obj.matrix_world
        for obj in imported
    }
    for obj in imported:
        if obj.type != "MESH":
            bpy.data.objects.remove(obj, do_unlink=True)
            continue
        obj.parent = None
        obj.matrix_world.identity()
        if obj.data.users > 1:
            obj.data = obj.data.copy()
        obj.data.transform(places[obj.name])
