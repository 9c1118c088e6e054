"""Small datasets to be scored, and what counts how often a model is asked."""

import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from eqforge.schemas.dataset.manifest import DataFile, Manifest, to_json
from eqforge.schemas.io import storage

WORDS = ["red", "blue", "green", "cup", "ball", "box", "dog", "cat"]


def picture(seed: int, width: int = 40, height: int = 30) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).resize((width, height)).save(stream, "PNG")
    return stream.getvalue()


def caption(seed: int) -> str:
    """Some words: from 2 to 30 of them, so that captions are padded to different lengths."""
    rng = np.random.default_rng(seed)
    return f"a {' '.join(rng.choice(WORDS, rng.integers(1, 30 if seed % 5 == 0 else 4)))}"


def write_dataset(
    folder: Path,
    tables: dict[str, list[dict[str, Any]]],
    files: int = 2,
    group_rows: int = 5,
    config: dict[str, Any] | None = None,
) -> Path:
    """Writes tables in several files of small row groups, and their manifest."""
    (folder / "data").mkdir(parents=True)
    found: dict[str, list[DataFile]] = {}
    for name, rows in tables.items():
        content = pa.Table.from_pylist(rows)
        for number in range(files):
            part = content.take(pa.array(range(number, len(content), files), pa.int64()))
            path = f"data/{name}-{number:05d}-of-{files:05d}.parquet"
            pq.write_table(part, folder / path, row_group_size=group_rows)
            size, digest = storage.digest(str(folder / path))
            file = DataFile(path=path, rows=len(part), num_bytes=size, sha256=digest)
            found.setdefault(name, []).append(file)
    manifest = Manifest(
        dataset="made",
        mode="corrected",
        config=config or {},
        inputs=[],
        versions={},
        stages={},
        tables=found,
    )
    (folder / "dataset.json").write_bytes(to_json(manifest))
    return folder


def image_rows(pictures: dict[str, bytes]) -> list[dict[str, Any]]:
    return [
        {"image_id": name, "image": {"bytes": data, "path": f"{name}.png"}}
        for name, data in sorted(pictures.items())
    ]


def pair_tables(videos: int, frames: int = 4, first: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Every two of the frames of a video, as Eq-YouCook2 pairs them; equal captions among them."""
    samples, pictures = [], {}
    for video in range(first, first + videos):
        for frame in range(frames):
            pictures[f"v{video:03d}-f{frame}"] = picture(100 * video + frame)
        for i in range(frames):
            for j in range(i + 1, frames):
                samples.append(
                    {
                        "sample_id": f"made/v{video:03d}/{i}-{j}",
                        "source_id": f"v{video:03d}",
                        "image_0_id": f"v{video:03d}-f{i}",
                        "image_1_id": f"v{video:03d}-f{j}",
                        "caption_0": caption(10 * (video % 7) + i),
                        "caption_1": caption(10 * (video % 7) + j),
                    }
                )
    return {"samples": samples, "images": image_rows(pictures)}


class Counting:
    """Passes everything on to a scorer and counts what it is asked, repetitions of a batch aside.

    Batches that are filled up repeat their last row: the same object, or the same text.
    """

    def __init__(self, scorer: Any, stop_after: int | None = None) -> None:
        self._scorer = scorer
        self._left = stop_after
        self.images = 0
        self.captions: Counter[str] = Counter()
        self.pairs: Counter[tuple[int, str]] = Counter()
        self.sizes: set[tuple[str, int]] = set()

    def __getattr__(self, name: str) -> Any:
        if name in ("encode_captions", "compare") and not hasattr(self._scorer, name):
            raise AttributeError(name)
        return getattr(self._scorer, name)

    def encode_images(self, prepared: Any) -> Any:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise KeyboardInterrupt
        rows = np.array([np.asarray(one) for one in prepared])
        self.images += len(np.unique(rows.reshape(len(rows), -1), axis=0))
        self.sizes.add(("images", len(rows)))
        return self._scorer.encode_images(prepared)


class CountingDual(Counting):
    """Counts captions of a dual encoder."""

    def encode_captions(self, captions: Sequence[str], **padded: Any) -> Any:
        self.captions.update(dict.fromkeys(captions, 1))
        self.sizes.add(("captions", len(captions)))
        return self._scorer.encode_captions(captions, **padded)


class CountingFusion(Counting):
    """Counts pairs of a fusion encoder."""

    def match(self, images: Any, captions: Sequence[str], pairs: Any, **padded: Any) -> Any:
        asked = {(id(images[image]), captions[place]) for image, place in pairs}
        self.pairs.update(dict.fromkeys(asked, 1))
        self.captions.update(caption for _, caption in asked)
        self.sizes.add(("pairs", len(pairs)))
        return self._scorer.match(images, captions, pairs, **padded)
