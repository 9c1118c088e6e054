"""Measures how few light paths do for photographic scenes, and what a picture of one costs.

    python benchmarks/photographs.py --pictures 4 --pairs 6

The same scenes are rendered at several numbers of samples, with and without the noise removed, and
held against 512 samples: the structural similarity of the pictures, and the intersection over union
of the least similar object's mask. Beside it stand the CPU seconds of a picture, start of the
process excluded, and those of the same objects on the plain stage. Then, over pairs: how far the
two pictures of a pair are apart, in levels of 255, outside the objects that differ.
"""

import argparse
import io
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import psutil
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import binary_dilation  # type: ignore[import-untyped]

from eqforge.generators.scenes.assets import BUILTIN, AssetLibrary
from eqforge.generators.scenes.propose import SceneProposer
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.schemas.records.scenes import (
    Backdrop,
    Kind,
    RenderSettings,
    SceneLight,
    ScenePair,
    SceneSpec,
)
from eqforge.transforms.filters.minimality import similarity
from eqforge.transforms.generated.scene_renderer import Render, SceneRenderer

REFERENCE = 512
SAMPLES = (2, 4, 8, 16, 32)
SUN = SceneLight(sun_position=(2.0, -3.0, 5.0), ambient=0.45)
KINDS: tuple[Kind, ...] = ("attribute", "counting", "location")
AROUND_PX = 2
"""How far around an object its edge shows."""

Pixels = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rendered:
    """Scenes rendered with one setting, and the CPU seconds of each."""

    renders: tuple[Render, ...]
    cpu_s: float


def render_all(scenes: Sequence[SceneSpec], settings: RenderSettings, cache: str) -> Rendered:
    """Renders scenes in a process of their own."""
    renderer = SceneRenderer(settings, assets=BUILTIN, cache=cache)
    renderer.render([replace(scenes[0], objects=())])
    (child,) = psutil.Process().children()
    before = sum(child.cpu_times()[:2])
    renders = renderer.render(scenes)
    used = sum(child.cpu_times()[:2]) - before
    renderer.close()
    return Rendered(renders=renders, cpu_s=round(used / len(scenes), 2))


def decoded(png: bytes) -> Pixels:
    """Returns the pixels of a PNG file."""
    return np.asarray(Image.open(io.BytesIO(png)))


def least_iou(render: Render, reference: Render) -> float:
    """Returns the intersection over union of the object on which two masks agree least."""
    first, second = decoded(render.mask_png), decoded(reference.mask_png)
    return min(
        float(((first == number) & (second == number)).sum())
        / float(((first == number) | (second == number)).sum())
        for number in np.unique(second)[1:]
    )


def alike(first: Pixels, second: Pixels) -> float:
    """Returns the mean structural similarity of the red, green and blue of two pictures."""
    planes = (each.astype(np.float32).transpose(2, 0, 1) for each in (first, second))
    return float(np.mean([similarity(*pair)[0] for pair in zip(*planes, strict=True)]))


def compared(found: Rendered, reference: Rendered) -> dict[str, float]:
    """Holds renders against those of the reference."""
    both = list(zip(found.renders, reference.renders, strict=True))
    likeness = [alike(decoded(one.image_png), decoded(other.image_png)) for one, other in both]
    return {
        "ssim": round(float(np.mean(likeness)), 4),
        "least_ssim": round(float(min(likeness)), 4),
        "least_mask_iou": round(min(least_iou(*each) for each in both), 4),
        "cpu_s": found.cpu_s,
    }


def measure_samples(scenes: Sequence[SceneSpec], cache: str) -> dict[str, object]:
    """Returns the table of samples and denoising, and the cost of the plain stage."""
    reference = render_all(scenes, RenderSettings(samples=REFERENCE, denoise=False), cache)
    table: dict[str, object] = {"512": {"cpu_s": reference.cpu_s}}
    for samples in SAMPLES:
        for denoise in (False, True):
            settings = RenderSettings(samples=samples, denoise=denoise)
            name = f"{samples}{', denoised' if denoise else ''}"
            table[name] = compared(render_all(scenes, settings, cache), reference)
    plain = [replace(each, backdrop=Backdrop(), light=SUN) for each in scenes]
    table["plain stage"] = {"cpu_s": render_all(plain, RenderSettings(), cache).cpu_s}
    return table


def changed_area(pair: ScenePair, renders: Sequence[Render]) -> NDArray[np.bool_]:
    """Returns where an object stands, in either picture, that the scenes do not share."""
    area = np.zeros((RenderSettings().resolution,) * 2, bool)
    for scene, other, render in zip(pair.scenes, pair.scenes[::-1], renders, strict=True):
        numbers = decoded(render.mask_png)
        for number, item in enumerate(scene.objects, start=1):
            if item not in other.objects:
                area |= numbers == number
    return binary_dilation(area, iterations=AROUND_PX)


def apart(renders: Sequence[Render]) -> NDArray[np.int64]:
    """Returns how far two pictures are apart in each pixel, in levels of 255."""
    first, second = (decoded(each.image_png).astype(np.int64) for each in renders)
    return np.abs(first - second).max(axis=-1)


def measure_pairs(pairs: Sequence[ScenePair], cache: str) -> list[dict[str, float]]:
    """Returns how far pairs are apart elsewhere, and what removing the noise has to do with it.

    Shadows and reflections change too. Where they do not, two pictures with the same noise are the
    same as rendered; what they differ by after the noise is removed was smeared there.
    """
    scenes = [scene for pair in pairs for scene in pair.scenes]
    raw, clean = (
        render_all(scenes, RenderSettings(denoise=denoise), cache).renders
        for denoise in (False, True)
    )
    found = []
    for index, pair in enumerate(pairs):
        both = slice(2 * index, 2 * index + 2)
        elsewhere = ~changed_area(pair, raw[both])
        as_rendered, denoised = apart(raw[both]), apart(clean[both])
        smeared = denoised[elsewhere & (as_rendered == 0)]
        found.append(
            {
                "mean_as_rendered": round(float(as_rendered[elsewhere].mean()), 3),
                "max_as_rendered": int(as_rendered[elsewhere].max()),
                "mean_denoised": round(float(denoised[elsewhere].mean()), 3),
                "max_denoised": int(denoised[elsewhere].max()),
                "share_the_same_as_rendered": round(float((as_rendered[elsewhere] == 0).mean()), 3),
                "mean_smeared": round(float(smeared.mean()), 3),
                "max_smeared": int(smeared.max()),
            }
        )
    return found


def main() -> None:
    """Runs all of it and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=4, help="compared with 512 samples")
    parser.add_argument("--pairs", type=int, default=6, help="compared with each other")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eqforge-bench-") as cache:
        proposer = SceneProposer(SceneSettings(), AssetLibrary(BUILTIN, cache), "corrected", 0)
        proposed = (proposer.pair(kind, number) for number in range(99) for kind in KINDS)
        found = (pair for pair in proposed if isinstance(pair, ScenePair))
        pairs = list(islice(found, max(args.pictures, args.pairs)))
        report: dict[str, object] = {}
        if args.pictures:
            scenes = [pair.scenes[0] for pair in pairs[: args.pictures]]
            report["samples"] = measure_samples(scenes, cache)
        if args.pairs:
            report["pairs"] = measure_pairs(pairs[: args.pairs], cache)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
