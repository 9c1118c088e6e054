"""Folders of scanned objects, in the layouts of Google Scanned Objects."""

import functools
import io
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

from eqforge.generators.scenes.adopt import Adopted, Axis, adopt
from eqforge.transforms.generated.scene_renderer import ScanLooker

CORNERS = "".join(f"v {x} {y} {z}\n" for x in (0, 1) for y in (0, 0.8) for z in (0, 1.2))
PLACES = "vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\n"
SIDES = ((1, 5, 6, 2), (3, 4, 8, 7), (1, 2, 4, 3), (5, 7, 8, 6), (1, 3, 7, 5), (2, 6, 8, 4))
FACES = "".join(
    "f " + " ".join(f"{corner}/{place}" for place, corner in enumerate(side, 1)) + "\n"
    for side in SIDES
)
BLUE, PINK, WHITE, RED = (20, 60, 190), (235, 120, 170), (235, 235, 235), (190, 20, 25)


@functools.cache
def looker() -> ScanLooker:
    """The looker of the tests' process."""
    return ScanLooker()


def texture(path: Path, colour: tuple[int, int, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    grain = np.random.default_rng(0).uniform(0.8, 1.1, (32, 32, 1))
    Image.fromarray((grain * colour).clip(0, 255).astype(np.uint8)).save(path)


def mujoco(root: Path, name: str, colour: tuple[int, int, int], library: str = "") -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    head = f"mtllib {library}\n" if library else ""
    (folder / "model.obj").write_text(f"{head}o box\n{CORNERS}{PLACES}usemtl m\n{FACES}")
    (folder / "model_collision_0.obj").write_text(f"{CORNERS}f 1 5 6\n")
    (folder / "model.xml").write_text("<mujoco/>")
    texture(folder / "texture.png", colour)
    return folder


def gazebo(root: Path, name: str, colour: tuple[int, int, int], category: str = "None") -> Path:
    folder = root / name
    (folder / "meshes").mkdir(parents=True)
    obj = f"mtllib model.mtl\no box\n{CORNERS}{PLACES}usemtl m\n{FACES}"
    (folder / "meshes" / "model.obj").write_text(obj)
    map_of = "newmtl m\nKd 1 1 1\nmap_Kd ../materials/textures/texture.png\n"
    (folder / "meshes" / "model.mtl").write_text(map_of)
    texture(folder / "materials" / "textures" / "texture.png", colour)
    (folder / "metadata.pbtxt").write_text(f'name: "x"\ncategories {{\n  first: "{category}"\n}}\n')
    return folder


def glb(folder: Path, up: str = "Y", suffix: str = ".glb", **material: object) -> Path:
    """A red box of 1 x 0.8 x 1.2, the last of them its height."""
    import trimesh

    folder.mkdir(parents=True)
    box = trimesh.creation.box((1, 1.2, 0.8) if up == "Y" else (1, 0.8, 1.2))
    box.apply_translation(-box.bounds[0])
    box.visual = trimesh.visual.TextureVisuals(
        uv=np.tile([[0.0, 0.0], [1.0, 1.0]], (4, 1)),
        material=trimesh.visual.material.PBRMaterial(
            name="m", **{"baseColorTexture": Image.new("RGB", (8, 8), RED), **material}
        ),
    )
    if suffix == ".glb":
        box.export(folder / "chair.glb")
        return folder
    for name, data in box.export(file_type="gltf").items():
        (folder / ("chair.gltf" if name == "model.gltf" else name)).write_bytes(data)
    return folder


def files_in(made: Adopted) -> dict[str, bytes]:
    """The files of an adopted scan's archive."""
    with tarfile.open(fileobj=io.BytesIO(made.archive)) as archive:
        return {name: archive.extractfile(name).read() for name in archive.getnames()}  # type: ignore[union-attr]


def taken(folder: Path, axis_up: Axis | None = None, licence: str = "") -> Adopted:
    """A scan, adopted without words of a user."""
    return adopt(folder, {}, axis_up, licence, looker().look)
