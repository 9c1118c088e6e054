"""Real photographs with real captions, shown one after the other in clips."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image

SECONDS_SHOWN = 1
FRAMES_PER_S = 4


@dataclass(frozen=True)
class Photograph:
    """A photograph of COCO and the first of its captions."""

    path: Path
    caption: str

    def read(self) -> Image.Image:
        with Image.open(self.path) as image:
            return image.convert("RGB")


def captioned_photographs(data_folder: Path, number: int) -> list[Photograph]:
    """The photographs of the smallest ids."""
    root = data_folder / "photos" / "coco_mini"
    found = json.loads((root / "annotations" / "captions_train2017.json").read_text())
    names = {image["id"]: image["file_name"] for image in found["images"]}
    first: dict[int, str] = {}
    for annotation in sorted(found["annotations"], key=lambda each: each["id"]):
        first.setdefault(annotation["image_id"], annotation["caption"].strip())
    paths = {key: root / "train2017" / names[key] for key in sorted(first)}
    there = [key for key, path in paths.items() if path.is_file()]
    return [Photograph(paths[key], first[key]) for key in there[:number]]


def write_clip_of(path: Path, photographs: Sequence[Photograph]) -> Path:
    """Writes a clip that shows each photograph for a second."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FRAMES_PER_S, options={"crf": "12"})
        stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
        stream.time_base = Fraction(1, FRAMES_PER_S)
        for photograph in photographs:
            pixels = np.asarray(photograph.read().resize((320, 240)))
            for _ in range(SECONDS_SHOWN * FRAMES_PER_S):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode(None))
    return path
