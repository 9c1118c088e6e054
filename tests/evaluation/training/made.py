"""Small datasets of coloured squares with captions, written without any pipeline."""

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from eqforge.schemas.dataset.manifest import DataFile, Manifest, to_json
from eqforge.schemas.identity import sha256_hex
from eqforge.schemas.io import storage
from eqforge.schemas.tables.pairs import IMAGES_TABLE, PAIRS_TABLE
from eqforge.schemas.tables.texts import TRAINING_TABLE
from tests.samples import SAMPLE

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (40, 40, 230), "grey": (128,) * 3}
PLACES = {"left": 4, "right": 18}


def picture(colour: str, place: str, seed: int = 0) -> bytes:
    """A square on noise, 32 x 32."""
    pixels = np.random.default_rng(seed).integers(0, 60, (32, 32, 3), dtype=np.uint8)
    pixels[8:24, PLACES[place] : PLACES[place] + 10] = COLOURS[colour]
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def write_dataset(folder: Path, name: str, tables: dict[str, tuple[pa.Schema, list[Any]]]) -> Path:
    """Writes tables and a manifest, as a finished dataset has them."""
    files = {}
    for table, (schema, rows) in tables.items():
        path = folder / "data" / f"{table}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
        size, digest = storage.digest(str(path))
        file = DataFile(path=f"data/{path.name}", rows=len(rows), num_bytes=size, sha256=digest)
        files[table] = [file]
    manifest = Manifest(
        dataset=name, mode="corrected", config={}, inputs=[], versions={}, stages={}, tables=files
    )
    (folder / "dataset.json").write_bytes(to_json(manifest))
    return folder


def describe(folder: Path) -> None:
    """Brings a manifest to what its files are, after one of them was written anew."""
    manifest = json.loads((folder / "dataset.json").read_text())
    for file in (file for files in manifest["tables"].values() for file in files):
        file["num_bytes"], file["sha256"] = storage.digest(str(folder / file["path"]))
    (folder / "dataset.json").write_text(json.dumps(manifest))


def image_rows(pictures: list[bytes]) -> list[dict[str, Any]]:
    """The rows of the distinct pictures."""
    return [
        {
            "image_id": name,
            "image": {"bytes": data, "path": f"{name}.png"},
            "width_px": 32,
            "height_px": 32,
            "num_bytes": len(data),
            "phash": "0" * 48,
            "scores": [],
        }
        for name, data in sorted({sha256_hex(data): data for data in pictures}.items())
    ]


def write_pairs(folder: Path, seeds: int = 2) -> Path:
    """Pairs whose square changes its side: one for each colour and noise."""
    rows, pictures = [], []
    base = msgspec.to_builtins(SAMPLE)
    for seed in range(seeds):
        for colour in COLOURS:
            both = [picture(colour, place, seed) for place in PLACES]
            pictures += both
            rows.append(
                base
                | {
                    "sample_id": f"made/{colour}-{seed}",
                    "split": "train" if seed == 0 else "val",
                    "image_0_id": sha256_hex(both[0]),
                    "image_1_id": sha256_hex(both[1]),
                    "caption_0": f"a {colour} box on the left",
                    "caption_1": f"a {colour} box on the right",
                }
            )
    tables = {
        "samples": (PAIRS_TABLE.schema, rows),
        "images": (IMAGES_TABLE.schema, image_rows(pictures)),
    }
    return write_dataset(folder, "eq-video", tables)


def write_captions(folder: Path, images: bool = True) -> Path:
    """Captions with hard texts in rows of their own; some lack one, one lacks its image."""
    rows, pictures = [], []
    for number, (colour, place) in enumerate((c, p) for c in COLOURS for p in PLACES):
        data = picture(colour, place)
        pictures.append(data)
        other = "right" if place == "left" else "left"
        texts = {
            "original": f"a {colour} box on the {place}",
            "hard_positive": f"on the {place} a {colour} box",
            "hard_negative": f"a {colour} box on the {other}",
        }
        if number == 2:
            del texts["hard_negative"]
        if number == 3:
            del texts["hard_positive"]
        for role, text in texts.items():
            rows.append(
                {
                    "sample_id": f"c/{number}/{role}",
                    "caption_id": f"c/{number}",
                    "image": f"{number}.png",
                    "image_id": sha256_hex(data) if images and number != 7 else None,
                    "split": "train",
                    "role": role,
                    "text": text,
                    "kind": None,
                    "generator": None,
                }
            )
    tables = {
        "samples": (TRAINING_TABLE.schema, rows),
        "images": (IMAGES_TABLE.schema, image_rows(pictures)),
    }
    return write_dataset(folder, "training-captions", tables)
