"""Times rendered pairs against kubric's own way, one process for each image.

    python benchmarks/rendering.py --pairs 20 --rounds 3

Both render the same scenes of kubric's own shapes, at the same resolution and samples. Kubric's
way is a process that imports kubric, builds a scene, renders it with all of kubric's layers and
ends; it is spared TensorFlow, whose import takes longer than the rest. They run in turn; pairs per
minute and the ratio of the totals are printed. Goal: at least 3 times as many.

Then: the memory of the renderer's process over 200 small renders of the assets that eqforge
brings, and what a render costs at other resolutions and samples.
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil

from eqforge.generators.scenes.assets import BUILTIN, AssetLibrary
from eqforge.generators.scenes.kubric_import import stand_in_for_tensorflow
from eqforge.generators.scenes.surfaces import override_surface
from eqforge.schemas.records.scenes import (
    Backdrop,
    RenderSettings,
    SceneCamera,
    SceneLight,
    SceneObject,
    SceneSpec,
)
from eqforge.transforms.generated.scene_renderer import SceneRenderer

COLOURS = ((0.8, 0.03, 0.03), (0.05, 0.1, 0.8), (0.8, 0.6, 0.02), (0.05, 0.5, 0.1))
SHAPES = ("kubric:sphere", "kubric:cube")
MEMORY_RENDERS = 200
COSTS = ((128, 16), (256, 4), (256, 16), (256, 64), (512, 16))


def make_scene(number: int, colour: int, assets: tuple[str, ...] = SHAPES) -> SceneSpec:
    """Returns a scene of three objects; the number decides all but the first one's colour."""
    objects = tuple(
        SceneObject(
            name=f"object {place}",
            asset=assets[(number + 7 * place) % len(assets)],
            position=(2.4 * place - 2.4, 0.2 * (number % 5), 0.0),
            yaw_deg=17.0 * number,
            colour=COLOURS[(colour if place == 0 else number + place) % len(COLOURS)],
        )
        for place in range(3)
    )
    return SceneSpec(
        objects=objects,
        camera=SceneCamera(position=(0.5, -9.0, 4.0), look_at=(0.0, 0.0, 0.8)),
        light=SceneLight(sun_position=(2.0, -3.0, 5.0)),
        backdrop=Backdrop(),
        seed=number,
    )


def make_pair(number: int) -> tuple[SceneSpec, SceneSpec]:
    """Returns two scenes that differ in a colour."""
    return make_scene(number, 0), make_scene(number, 1)


def render_as_kubric_does(spec: SceneSpec, settings: RenderSettings, output: Path) -> None:
    """Renders one scene as kubric's examples do: one `render_still` with all layers."""
    stand_in_for_tensorflow()
    import kubric
    from kubric.renderer.blender import Blender

    shapes = {"kubric:sphere": kubric.Sphere, "kubric:cube": kubric.Cube}
    side, sky = settings.resolution, kubric.Color(*(spec.light.ambient,) * 3)
    scene = kubric.Scene(resolution=(side, side), ambient_illumination=sky, background=sky)
    renderer = Blender(
        scene, output, samples_per_pixel=settings.samples, use_denoising=settings.denoise
    )
    floor = kubric.Cube(name="floor", scale=(20, 20, 0.1), position=(0, 0, -0.1), background=True)
    scene += floor
    override_surface(floor.linked_objects[renderer], spec.backdrop.floor_colour, "rubber")
    for each in spec.objects:
        x, y, z = each.position
        thing = shapes[each.asset](name=each.name, position=(x, y, z + 1))
        scene += thing
        override_surface(thing.linked_objects[renderer], each.colour, None)
    scene += kubric.DirectionalLight(
        position=spec.light.sun_position, look_at=(0, 0, 0), intensity=spec.light.sun_intensity
    )
    scene += kubric.PerspectiveCamera(
        position=spec.camera.position,
        look_at=spec.camera.look_at,
        focal_length=spec.camera.focal_length_mm,
        sensor_width=spec.camera.sensor_width_mm,
    )
    frame = renderer.render_still()
    kubric.write_png(frame["rgba"], output / "rgba.png")
    kubric.write_palette_png(frame["segmentation"], output / "segmentation.png")


@contextmanager
def timed(seconds: dict[str, float]) -> Iterator[None]:
    """Adds the wall clock and the processor time of all ended child processes."""
    started, used = time.perf_counter(), sum(os.times()[2:4])
    yield
    seconds["wall"] = seconds.get("wall", 0.0) + time.perf_counter() - started
    seconds["cpu"] = seconds.get("cpu", 0.0) + sum(os.times()[2:4]) - used


def run_kubric(number: int, settings: RenderSettings, seconds: dict[str, float]) -> None:
    """Renders a pair in two processes, one after the other."""
    for index in range(2):
        with tempfile.TemporaryDirectory(prefix="eqforge-bench-") as folder, timed(seconds):
            command = [sys.executable, __file__, "--kubric", str(number), str(index), folder]
            options = ["--settings", msgspec.json.encode(settings).decode()]
            subprocess.run([*command, *options], check=True, capture_output=True)


def run_eqforge(numbers: range, settings: RenderSettings, seconds: dict[str, float]) -> None:
    """Renders pairs with one renderer, its start and its end included."""
    with tempfile.TemporaryDirectory(prefix="eqforge-bench-") as folder, timed(seconds):
        renderer = SceneRenderer(settings, assets=BUILTIN, cache=folder)
        for number in numbers:
            renderer.render(make_pair(number))
        renderer.close()


def compare(pairs: int, rounds: int, settings: RenderSettings) -> dict[str, object]:
    """Runs both sides in turn; kubric's, whose processes are all alike, on fewer pairs."""
    few = max(1, pairs // 5)
    kubric: dict[str, float] = {}
    eqforge: dict[str, float] = {}
    for turn in range(rounds):
        for number in range(few):
            run_kubric(turn * pairs + number, settings, kubric)
        run_eqforge(range(turn * pairs, (turn + 1) * pairs), settings, eqforge)
    report: dict[str, object] = {}
    for clock in ("wall", "cpu"):
        theirs = 60 * rounds * few / kubric[clock]
        ours = 60 * rounds * pairs / eqforge[clock]
        report[f"pairs_per_minute_{clock}"] = {
            "kubric": round(theirs, 1),
            "eqforge": round(ours, 1),
            "ratio": round(ours / theirs, 2),
        }
    return report


def measure_memory(renders: int) -> dict[str, float]:
    """Returns the renderer's memory in MB after some renders at 64 x 64 pixels, 1 sample."""
    settings = RenderSettings(resolution=64, samples=1)
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="eqforge-bench-") as folder:
        assets = tuple(AssetLibrary(BUILTIN, folder).assets)
        renderer = SceneRenderer(settings, assets=BUILTIN, cache=folder)
        for done in range(1, renders + 1):
            renderer.render([make_scene(done, done, assets)])
            if done in (1, 10, 50) or done % 100 == 0:
                (child,) = psutil.Process().children()
                found[f"after_{done}"] = round(child.memory_info().rss / 1e6, 1)
        renderer.close()
    return found


def measure_costs() -> dict[str, float]:
    """Returns the processor seconds of one render, start of the process excluded."""
    found = {}
    for resolution, samples in COSTS:
        settings = RenderSettings(resolution=resolution, samples=samples)
        found[f"{resolution} px, {samples} samples"] = _cost(settings)
    denoised = dataclasses.replace(RenderSettings(), denoise=True)
    return {**found, "256 px, 16 samples, denoised": _cost(denoised)}


def _cost(settings: RenderSettings) -> float:
    with tempfile.TemporaryDirectory(prefix="eqforge-bench-") as folder:
        renderer = SceneRenderer(settings, assets=BUILTIN, cache=folder)
        renderer.render(make_pair(0))
        (child,) = psutil.Process().children()
        before = sum(child.cpu_times()[:2])
        for number in (1, 2):
            renderer.render(make_pair(number))
        used = sum(child.cpu_times()[:2]) - before
        renderer.close()
    return round(used / 4, 2)


def main() -> None:
    """Runs all of it and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20, help="pairs of each round")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side")
    parser.add_argument("--kubric", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--settings", help=argparse.SUPPRESS)
    args = parser.parse_args()
    settings = RenderSettings().of_stage("plain")
    if args.kubric:
        number, index, output = args.kubric
        settings = msgspec.json.decode(args.settings, type=RenderSettings)
        render_as_kubric_does(make_pair(int(number))[int(index)], settings, Path(output))
        return
    report = compare(args.pairs, args.rounds, settings)
    report["memory_mb"] = measure_memory(MEMORY_RENDERS)
    report["cpu_seconds_of_a_render"] = measure_costs()
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
