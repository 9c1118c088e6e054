"""Imports meshes from files into Blender, in the coordinates that kubric expects."""

import contextlib
import io
import math
from collections.abc import Mapping
from typing import Any

from eqforge.core.errors import InputError

_AXES = {"axis_forward": "forward_axis", "axis_up": "up_axis"}


def import_mesh(path: str, import_kwargs: Mapping[str, Any]) -> Any:
    """Imports a file into the current Blender scene as one mesh object, which is returned.

    Args:
      path: an OBJ, glTF or GLB file.
      import_kwargs: arguments of the importers of Blender 2.93, as manifests of kubric have them.

    Raises:
      InputError: the file has another format, or holds no mesh.
    """
    import bpy

    importers = {"obj": _import_obj, "glb": _import_gltf, "gltf": _import_gltf}
    extension = path.rpartition(".")[2].lower()
    if extension not in importers:
        raise InputError(f"{path}: expected a mesh in {', '.join(importers)}")
    bpy.ops.object.select_all(action="DESELECT")
    with contextlib.redirect_stdout(io.StringIO()):
        importers[extension](path, import_kwargs)
    meshes = [made for made in bpy.context.selected_objects if made.type == "MESH"]
    if not meshes:
        raise InputError(f"{path}: it holds no mesh")
    return _joined(meshes)


def _import_obj(path: str, import_kwargs: Mapping[str, Any]) -> None:
    import bpy

    kwargs = {_AXES.get(key, key): value for key, value in import_kwargs.items()}
    for axis in _AXES.values():
        if axis in kwargs:
            kwargs[axis] = kwargs[axis].replace("-", "NEGATIVE_")
    bpy.ops.wm.obj_import(filepath=path, **{"use_split_objects": False, **kwargs})
    for made in bpy.context.selected_objects:
        # Kubric gives the object a place and a turn of its own.
        if made.type == "MESH" and made.matrix_world != made.matrix_world.Identity(4):
            made.data.transform(made.matrix_world)
            made.matrix_world.identity()


def _import_gltf(path: str, import_kwargs: Mapping[str, Any]) -> None:
    """Imports the meshes of a glTF file in the file's own coordinates, as kubric does.

    Blender turns them from y up to z up; its importer has no arguments for other axes. Nodes
    without a mesh only carry transformations.
    """
    import bpy

    kwargs = {key: value for key, value in import_kwargs.items() if key not in _AXES}
    bpy.ops.import_scene.gltf(filepath=path, **kwargs)
    imported = list(bpy.context.selected_objects)
    places = {made.name: _turned_back(made.matrix_world) for made in imported}
    for made in imported:
        if made.type != "MESH":
            bpy.data.objects.remove(made, do_unlink=True)
            continue
        made.parent = None
        made.matrix_world.identity()
        if made.data.users > 1:
            made.data = made.data.copy()
        made.data.transform(places[made.name])


def _turned_back(matrix: Any) -> Any:
    return matrix.Rotation(-math.pi / 2, 4, "X") @ matrix


def _joined(meshes: list[Any]) -> Any:
    import bpy

    bpy.context.view_layer.objects.active = meshes[0]
    if len(meshes) > 1:
        bpy.ops.object.join()
    return bpy.context.view_layer.objects.active
