"""Counts what the limits for camera cuts refuse, in handheld and other shots, and what they miss.

    python benchmarks/cuts.py --photos PHOTOS film.mp4:30,76,137 shot.mp4

Every clip is given with the numbers of its frames at which a new shot begins; a clip without is one
shot. Of each photograph a shaky shot of six frames is made: the picture is shifted, turned, zoomed,
sheared, blurred by motion, made lighter or darker and saved as JPEG. The limits in the help of
--min-histogram-change were chosen on the even photographs; the odd ones judge them.
"""

import argparse
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise, product
from pathlib import Path

import av
import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from eqforge.transforms.filters.cuts import CutSettings, CutView, cut_view, decide_cut, score_cut

LIMITS = CutSettings(min_histogram_change=0.35, max_registered_points=7)
SIZE = (480, 360)
FRAMES = 6
CLIP_FRAMES = 24

Pixels = NDArray[np.uint8]
Pair = tuple[CutView, CutView]


def shaky_shot(photo: Pixels, seed: int) -> Iterator[Pixels]:
    """Yields the frames of somebody's hand moving over a photograph."""
    random = np.random.default_rng(seed)
    scale = 800 / max(photo.shape[:2])
    photo = np.asarray(cv2.resize(photo, None, fx=scale, fy=scale), np.uint8)
    size = np.array(photo.shape[1::-1], float)
    centre, zoom, angle = size * random.uniform(0.4, 0.6, 2), random.uniform(0.55, 0.8), 0.0
    for _ in range(FRAMES):
        width = size[0] * zoom
        margin = 0.4 * np.array([width, width * SIZE[1] / SIZE[0]])
        centre = np.clip(centre, margin, np.maximum(size - margin, margin))
        middle = (centre[0], centre[1])
        motion = np.asarray(cv2.getRotationMatrix2D(middle, angle, SIZE[0] / width), np.float64)
        motion[:, 2] += np.array(SIZE) / 2 - centre
        motion[0, 1] += random.uniform(-0.04, 0.04)
        frame = cv2.warpAffine(photo, motion, SIZE, borderMode=cv2.BORDER_REFLECT)
        yield as_filmed(np.asarray(frame, np.uint8), random)
        centre = centre + random.normal(0, 0.06, 2) * size
        zoom = float(np.clip(zoom * np.exp(random.normal(0, 0.12)), 0.45, 0.9))
        angle = float(np.clip(angle + random.normal(0, 4), -12, 12))


def as_filmed(frame: Pixels, random: np.random.Generator) -> Pixels:
    """Returns a frame with motion blur of up to 21 pixels, another exposure and JPEG's noise."""
    length = int(random.integers(1, 22))
    line = np.zeros((length, length), np.float32)
    line[length // 2] = 1
    middle = ((length - 1) / 2, (length - 1) / 2)
    turned = cv2.getRotationMatrix2D(middle, random.uniform(0, 180), 1)
    blur = cv2.warpAffine(line, turned, (length, length))
    frame = np.asarray(cv2.filter2D(frame, -1, blur / blur.sum()), np.uint8)
    lit = 255 * (frame / 255) ** random.uniform(0.8, 1.25)
    stored = io.BytesIO()
    Image.fromarray(lit.astype(np.uint8)).save(stored, "JPEG", quality=int(random.integers(40, 90)))
    return np.asarray(Image.open(stored))


def shots_of(clip: str) -> list[list[CutView]]:
    """Returns the views of some 24 evenly spread frames of a clip, by shot."""
    file, _, starts = clip.partition(":")
    with av.open(file) as container:
        shown = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    frames = [np.asarray(pixels, np.uint8) for pixels in shown]
    ends = [0, *(int(start) for start in starts.split(",") if start), len(frames)]
    step = max(1, len(frames) // CLIP_FRAMES)
    return [
        [cut_view(frame) for frame in frames[first:last:step]] for first, last in pairwise(ends)
    ]


def report(name: str, shots: Sequence[Sequence[CutView]]) -> None:
    """Prints the share of pairs taken for a cut, within the shots and across them."""
    within = share(pair for shot in shots for pair in combinations(shot, 2))
    across = share(
        pair for one, other in combinations(shots, 2) for pair in product(one[::3], other[::3])
    )
    print(f"| {name} | {within} | {across} |", flush=True)


def share(pairs: Iterable[Pair]) -> str:
    """Returns how many pairs are taken for a cut, of how many."""
    found = [decide_cut(score_cut(*pair), LIMITS) is not None for pair in pairs]
    return f"{sum(found):,} of {len(found):,} ({sum(found) / len(found):.1%})" if found else ""


def main() -> None:
    """Prints one row for each half of the photographs, and one for each clip."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clips", nargs="*", help="FILE or FILE:FRAME,FRAME,...")
    parser.add_argument("--photos", type=Path, help="folder of photographs")
    options = parser.parse_args()
    print("| | refused within a shot | found across shots |\n|---|---|---|")
    files = sorted(options.photos.iterdir()) if options.photos else []
    photos = [np.array(Image.open(file).convert("RGB")) for file in files]
    shots = [
        [cut_view(frame) for frame in shaky_shot(photo, seed)] for seed, photo in enumerate(photos)
    ]
    for half, name in enumerate(("even photographs", "odd photographs")):
        report(name, shots[half::2])
    for clip in options.clips:
        report(Path(clip.partition(":")[0]).name, shots_of(clip))


if __name__ == "__main__":
    main()
