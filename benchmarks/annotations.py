"""Measures time and peak memory of reading and planning annotations of Action Genome's size.

    python benchmarks/annotations.py

The real file is not ours to ship, so one of its size is made up: 290,000 frames in 9,848 videos,
750,000 objects of which 476,000 are visible, 1.7 million relations, with the published types. No
two strings in it are the same object, as in a file made from parsed JSON, which is the worst case
for a reader. Reader and `eqforge plan` run in processes of their own. Goal: under 1 GB each.
"""

import argparse
import json
import pickle
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eqforge.transforms.video.scene_graphs import OBJECT_NAMES

FRAMES, VIDEOS = 290_000, 9_848
OBJECTS_PER_FRAME = (1, 2, 3, 4)  # 2.6 of them on average, by the weights below
OBJECT_WEIGHTS = (0.15, 0.35, 0.25, 0.25)
VISIBLE = 0.635
ATTENTION = ("unsure", "not_looking_at", "looking_at")
SPATIAL = ("in_front_of", "beneath", "behind", "on_the_side_of", "in", "above")
CONTACTING = ("holding", "touching", "not_contacting", "sitting_on", "wearing", "leaning_on")
_READ = """
from eqforge.sources.action_genome import read_action_genome
videos = list(read_action_genome(sys.argv[1], sys.argv[2]))
assert len(videos) == int(sys.argv[3]), len(videos)
"""
_PLAN = """
from eqforge.cli import main
main(["plan", "eq-ag", "--objects", sys.argv[1], "--persons", sys.argv[2],
      "--videos", sys.argv[4], "--output", sys.argv[4] + "/out"])
"""
_MEASURE = """
import resource, sys, time
started = time.perf_counter()
{body}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(time.perf_counter() - started, peak, file=sys.stderr)
"""


def frame_keys(frames: int, videos: int) -> Iterator[tuple[str, int]]:
    """Yields (video, number) of every frame: about 30 a video, in shuffled order."""
    rng = random.Random(0)
    keys = [
        (f"V{video:04d}.mp4", 7 * place + 1)
        for video in range(videos)
        for place in range(frames // videos + (video < frames % videos))
    ]
    rng.shuffle(keys)
    yield from keys


def object_boxes(frames: int, videos: int) -> dict[str, list[dict[str, Any]]]:
    """Returns the content of an object_bbox_and_relationship.pkl."""
    rng = random.Random(1)
    names = sorted(set(OBJECT_NAMES) - {"person"})
    return {
        f"{video}/{number:06d}.png": [
            object_row(rng, video, number, name)
            for name in rng.sample(names, rng.choices(OBJECTS_PER_FRAME, OBJECT_WEIGHTS)[0])
        ]
        for video, number in frame_keys(frames, videos)
    }


def object_row(rng: random.Random, video: str, number: int, name: str) -> dict[str, Any]:
    """Returns one object; no string is shared with another's."""
    is_visible = rng.random() < VISIBLE
    tag = f"{video}/{name.replace('/', '_')}/{number:06d}"
    return {
        "class": _fresh(name),
        "bbox": tuple(rng.uniform(0, 270) for _ in range(4)) if is_visible else None,
        "attention_relationship": _some(rng, ATTENTION, 1) if is_visible else None,
        "spatial_relationship": _some(rng, SPATIAL, 2) if is_visible else None,
        "contacting_relationship": _some(rng, CONTACTING, 2) if is_visible else None,
        "metadata": {"tag": tag, "set": _fresh("train" if video < "V7600" else "test")},
        "visible": is_visible,
    }


def _some(rng: random.Random, names: tuple[str, ...], most: int) -> list[str]:
    return [_fresh(name) for name in rng.sample(names, rng.randint(1, most))]


def _fresh(text: str) -> str:
    """Returns an equal string that is another object, so that the pickle spells it again."""
    return text.encode().decode()


def person_boxes(frames: int, videos: int) -> dict[str, dict[str, Any]]:
    """Returns the content of a person_bbox.pkl, key points included."""
    import numpy as np

    rng = np.random.default_rng(2)
    return {
        f"{video}/{number:06d}.png": {
            "bbox": rng.random((1, 4), dtype=np.float32) * 270,
            "bbox_score": rng.random(1, dtype=np.float32),
            "bbox_size": tuple([480, 270]),
            "bbox_mode": "xyxy",
            "keypoints": rng.random((1, 17, 3), dtype=np.float32),
            "keypoints_logits": rng.random((1, 17), dtype=np.float32),
        }
        for video, number in frame_keys(frames, videos)
    }


def make_files(folder: Path, frames: int, videos: int) -> None:
    """Writes both files; in a process of its own, so that its memory is not measured."""
    for name, make in (("objects", object_boxes), ("persons", person_boxes)):
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(make(frames, videos), protocol=4))


def measure(body: str, folder: Path, videos: int) -> dict[str, float]:
    """Returns the seconds and the peak megabytes of some code in a process of its own."""
    files = [str(folder / "objects.pkl"), str(folder / "persons.pkl")]
    command = [sys.executable, "-c", _MEASURE.format(body=body), *files, str(videos), str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, peak = map(float, done.stderr.split()[-2:])
    return {"seconds": round(seconds, 1), "peak_mb": round(peak)}


def main() -> None:
    """Measures reader and plan, and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=FRAMES, help="annotated frames")
    parser.add_argument("--videos", type=int, default=VIDEOS, help="videos")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eqforge-bench-") as name:
        folder = Path(name)
        make = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        make += "from pathlib import Path; import annotations\n"
        make += f"annotations.make_files(Path({name!r}), {args.frames}, {args.videos})"
        subprocess.run([sys.executable, "-c", make], check=True)
        sizes = {path.name: round(path.stat().st_size / 1e6) for path in folder.glob("*.pkl")}
        found = {"read": _READ, "plan": _PLAN}
        measured = {what: measure(body, folder, args.videos) for what, body in found.items()}
    print(json.dumps({"frames": args.frames, "files_mb": sizes, **measured}))


if __name__ == "__main__":
    main()
