"""Meshes, textures and environment pictures are shown as their files and manifests say."""

import base64
import dataclasses
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image

from eqforge.schemas.records.scenes import Backdrop, SceneCamera, SceneLight, SceneObject
from eqforge.transforms.generated.scene_renderer import SceneRenderer
from tests.renders import (
    BALL,
    BLUE,
    CAMERA,
    SIZE,
    agree,
    box,
    mask,
    needs_blender,
    open_renderer,
    pixels,
    rays,
    scene,
)

pytestmark = needs_blender


SIZES = (1.0, 2.0, 3.0)
CORNERS = (np.indices((2, 2, 2)).reshape(3, 8).T * SIZES).astype(np.float32)
# A box with a corner at the origin: not where the middle of the footprint is.
CORNERS_OF_FACES = "013 032 467 475 045 051 237 276 026 064 157 173"
FACES = np.array([list(face) for face in CORNERS_OF_FACES.split()]).astype(np.uint16)


def box_obj() -> dict[str, bytes]:
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS.tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in (FACES + 1).tolist()]
    return {"box.obj": "\n".join(lines).encode()}


def textured_obj() -> dict[str, bytes]:
    """The box in the form of Google Scanned Objects: half of its texture red, half green."""
    texture = Image.new("RGB", (16, 16), (200, 0, 0))
    texture.paste((0, 200, 0), (0, 0, 16, 8))
    stream = io.BytesIO()
    texture.save(stream, "png")
    lines = [
        "mtllib box.mtl",
        "usemtl scanned",
        *(f"v {x} {y} {z}" for x, y, z in CORNERS.tolist()),
    ]
    lines += [f"vt {x} {z / SIZES[2]}" for x, _, z in CORNERS.tolist()]
    lines += ["f " + " ".join(f"{i}/{i}" for i in face) for face in (FACES + 1).tolist()]
    return {
        "box.obj": "\n".join(lines).encode(),
        "box.mtl": b"newmtl scanned\nKd 1 1 1\nmap_Kd texture.png\n",
        "texture.png": stream.getvalue(),
    }


def box_gltf() -> dict[str, bytes]:
    """The same in two nodes; one of them has no mesh and turns and moves the other."""
    half = 0.5**0.5
    nodes = [
        {"children": [1], "translation": [0, 0, 2], "rotation": [0, 0, half, half]},
        {"mesh": 0, "translation": [0, 0, -2], "rotation": [0, 0, -half, half]},
    ]
    data = base64.b64encode(FACES.tobytes() + CORNERS.tobytes()).decode()
    document = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": nodes,
        "meshes": [{"primitives": [{"attributes": {"POSITION": 1}, "indices": 0}]}],
        "accessors": [
            {"bufferView": 0, "componentType": 5123, "count": 36, "type": "SCALAR"},
            {
                "bufferView": 1,
                "componentType": 5126,
                "count": 8,
                "type": "VEC3",
                "min": [0, 0, 0],
                "max": list(SIZES),
            },
        ],
        "bufferViews": [
            {"buffer": 0, "byteOffset": 0, "byteLength": 72},
            {"buffer": 0, "byteOffset": 72, "byteLength": 96},
        ],
        "buffers": [{"byteLength": 168, "uri": f"data:application/octet-stream;base64,{data}"}],
    }
    return {"box.gltf": json.dumps(document).encode()}


def archive(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as written:
        for path, data in {**files, "data.json": b"{}"}.items():
            member = tarfile.TarInfo(path)
            member.size = len(data)
            written.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def meadow() -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (8, 4), (0, 200, 0)).save(stream, "png")
    return stream.getvalue()


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SceneRenderer]:
    """A renderer with assets of our own, in a manifest as kubric has them."""
    folder = tmp_path_factory.mktemp("own")
    axes = {"render_import_kwargs": {"axis_forward": "Y", "axis_up": "Z"}}
    meshes = {"obj": (box_obj(), axes), "gltf": (box_gltf(), {}), "textured": (textured_obj(), {})}
    assets = {}
    for name, (files, kwargs) in meshes.items():
        data = archive(files)
        (folder / f"{name}.tar.gz").write_bytes(data)
        render = {
            "bounds": [[0, 0, 0], SIZES],
            "render_filename": f"{{asset_dir}}/{next(iter(files))}",
        }
        assets[name] = entry("FileBasedObject", data, {**render, **kwargs})
    (folder / "meadow.png").write_bytes(meadow())
    assets["meadow"] = entry("Texture", meadow(), {"filename": "meadow.png"}) | {"path": None}
    manifest = folder / "manifest.json"
    manifest.write_text(json.dumps({"name": "own", "version": "1", "assets": assets}))
    renderer = open_renderer(folder, str(manifest))
    yield renderer
    renderer.close()


def entry(kind: str, data: bytes, kwargs: dict[str, object]) -> dict[str, object]:
    sha256 = hashlib.sha256(data).hexdigest()
    return {"asset_type": kind, "license": "CC0", "sha256": sha256, "kwargs": kwargs}


@pytest.mark.parametrize("asset", ["obj", "gltf"])
def test_a_mesh_stands_on_the_middle_of_its_footprint(renderer: SceneRenderer, asset: str) -> None:
    tower = SceneObject(
        name="tower", asset=asset, position=(0.5, 1.0, 0.2), yaw_deg=30.0, scale=0.7
    )
    (render,) = renderer.render([scene(tower)])
    hits = box((0.5, 1.0, 0.2 + 0.7 * 1.5), (0.7, 1.4, 2.1), 30.0)
    assert agree(mask(render) == 1, hits(*rays(CAMERA)))


def test_a_texture_is_shown_until_a_colour_replaces_it(renderer: SceneRenderer) -> None:
    tower = SceneObject(name="tower", asset="textured", position=(0.0, 0.0, 0.0), yaw_deg=30.0)
    blue = dataclasses.replace(tower, colour=BLUE)
    textured, painted = renderer.render([scene(tower), scene(blue)])
    inside = mask(textured) == 1
    rows = np.nonzero(inside)[0]
    is_upper = (np.arange(SIZE) < np.quantile(rows, 0.3))[:, None]
    is_lower = (np.arange(SIZE) > np.quantile(rows, 0.7))[:, None]
    upper = pixels(textured)[inside & is_upper].mean(axis=0)
    lower = pixels(textured)[inside & is_lower].mean(axis=0)
    assert upper[1] > 2 * upper[0]
    assert lower[0] > 2 * lower[1]
    red, green, blue_light = pixels(painted)[inside].mean(axis=0)
    assert blue_light > 2 * max(red, green)


def test_an_environment_picture_lights_the_scene_and_stands_behind_it(
    renderer: SceneRenderer,
) -> None:
    plain = dataclasses.replace(
        scene(BALL, camera=SceneCamera(position=(0.0, -9.0, 1.0), look_at=(0.0, 0.0, 1.5))),
        light=SceneLight(sun_position=(0.0, 0.0, 1.0), sun_intensity=0.0),
    )
    green = dataclasses.replace(plain, backdrop=Backdrop(hdri="meadow"))
    without, around = map(pixels, renderer.render([plain, green]))
    assert np.ptp(without[:5], axis=-1).max() <= 2  # the sky is grey
    sky, floor = around[:5].mean(axis=(0, 1)), around[-5:].mean(axis=(0, 1))
    assert sky == pytest.approx([0, 200, 0], abs=3)
    assert floor[1] > 50 > 3 * max(floor[0], floor[2])
