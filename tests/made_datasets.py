"""Small datasets that were built, and others made of their rows, with every column of a build."""

import contextlib
import functools
import io
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from eqforge.cli import main
from eqforge.core.files import storage
from eqforge.core.identity import sha256_hex
from eqforge.evaluation.scoring.gather import Folder
from eqforge.evaluation.scoring.index import TASKS, Index
from eqforge.generators.demo.workspace import workspace_at
from eqforge.schemas.dataset import score_tables
from eqforge.schemas.dataset.manifest import DataFile, load_manifest, to_json
from eqforge.schemas.dataset.score_tables import Counts, ScoresManifest
from eqforge.schemas.records.scores import Identity
from tests import small_builds
from tests.builds import rows as built_rows
from tests.clips import Clip, write_clip
from tests.small_builds import PICTURES

Rows = Sequence[Mapping[str, Any]]

# --- datasets as they are built

TURNED, DEEP = "1.jpg", "2.jpg"


def slopes(folder: Path) -> Path:
    """Writes pictures that are darker on the right, each in its own measure.

    One is darker at the bottom, with EXIF data that turn it; one has 16 bits.
    """
    images = folder / "images"
    images.mkdir(exist_ok=True)
    for number in range(PICTURES):
        slope = np.linspace(200, 20 * number, 128)[None, :, None]
        pixels = np.broadcast_to(slope, (96, 128, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(images / f"{number}.jpg", quality=100)
    exif = Image.Exif()
    exif[0x0112] = 8  # to be turned a quarter to the left
    down = np.broadcast_to(np.linspace(240, 0, 128)[:, None, None], (128, 96, 3)).astype(np.uint8)
    Image.fromarray(down).save(images / TURNED, quality=100, exif=exif)
    deep = np.broadcast_to(np.linspace(0, 65_535, 128)[None, :], (96, 128)).astype(np.uint16)
    Image.fromarray(deep).save(images / DEEP, format="PNG")
    return images


def _captions(folder: Path, lines: Rows) -> list[str]:
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return ["--captions", str(path)]


def _of_a_video(name: str, folder: Path) -> list[str]:
    write_clip(folder / "v.mp4", Clip())
    moments = {0.2: "a red cup", 1.5: "a blue cup"}
    lines = [{"video": "v.mp4", "timestamp_s": s, "caption": c} for s, c in moments.items()]
    any_change = ["--min-minimality", "0"]
    return [name, *_captions(folder, lines), "--videos", str(folder), *any_change]


def _of_captions(name: str, folder: Path) -> list[str]:
    texts = [f"A {size} dog and a red ball on a sofa." for size in ("big", "small", "long", "wet")]
    lines = [{"image": f"{n}.jpg", "caption": texts[n % 4]} for n in range(PICTURES)]
    return [name, *_captions(folder, lines), "--images", str(slopes(folder))]


def _small(name: str, folder: Path) -> list[str]:
    """With slopes in place of pictures, each of which VLUE's captions tell apart."""
    command = small_builds.COMMANDS[name](workspace_at(folder), folder)
    items = [{"image": f"{n}.jpg", "caption": [f"A {'red ' * n}dog."]} for n in range(PICTURES)]
    (folder / "retrieval.json").write_text(json.dumps(items))
    slopes(folder)
    return command


COMMANDS: dict[str, Callable[[str, Path], list[str]]] = {
    "eq-video": _of_a_video,
    "eq-kubric": _small,
    "hard-positives": _of_captions,
    "training-captions": _of_captions,
    "retrieval-perturbations": _of_captions,
    "vlue": _small,
    "simat": _small,
}
_FOLDER = tempfile.TemporaryDirectory()


@functools.cache
def built(kind: str) -> Path:
    """Builds a dataset, once for all tests, which must not change it; beside it lie its sources."""
    folder = Path(_FOLDER.name) / kind
    folder.mkdir()
    command = ["build", *COMMANDS[kind](kind, folder), "--output", str(folder / "d")]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as e:
        status = main(command)
    assert status == 0, e.getvalue()
    return folder / "d"


# --- datasets of other rows


def write_dataset(
    folder: Path,
    kind: str,
    tables: Mapping[str, Rows],
    files: int = 2,
    group_rows: int = 5,
    **changes: Any,
) -> Path:
    """Writes what a build might have written of other samples.

    Args:
      folder: where to write.
      kind: a key of COMMANDS.
      tables: rows by table; what a row leaves out is as in the first row of the build. Tables
        that are left out are those of the build.
      files: of each table, which take rows in turns.
      group_rows: the most rows in a row group.
      changes: to the manifest of the build.

    Raises:
      ValueError: a build has no such table or column.
    """
    shutil.copytree(built(kind), folder, dirs_exist_ok=True)
    for name, changed in tables.items():
        first, *_ = [*built_rows(folder, name), {}]
        rows = [{**first, **row} for row in changed]
        old, *more = sorted((folder / "data").glob(f"{name}-*"))
        content = pa.Table.from_pylist(rows, pq.read_schema(old))
        for row, kept in zip(rows, content.to_pylist(), strict=True):
            if _names(row) != _names(kept):
                raise ValueError(f"{kind} has no such {name}: {_names(row) ^ _names(kept)}")
        for path in (old, *more):
            path.unlink()
        for number in range(files):
            part = content.take(pa.array(range(number, len(content), files), pa.int64()))
            path = folder / f"data/{name}-{number:05d}-of-{files:05d}.parquet"
            pq.write_table(part, path, row_group_size=group_rows)
    describe(folder, **changes)
    return folder


def _names(row: Mapping[str, Any]) -> set[str]:
    """The columns of a row, and the fields of those that have some."""
    fields = {name: value for name, value in row.items() if isinstance(value, dict)}
    return {*row, *(f"{name}.{part}" for name, value in fields.items() for part in value)}


def describe(folder: Path, **changes: Any) -> None:
    """Brings a manifest to what its files are."""
    manifest = load_manifest(str(folder))
    tables = {
        name: [_described(path) for path in sorted((folder / "data").glob(f"{name}-*"))]
        for name in manifest.tables
    }
    (folder / "dataset.json").write_bytes(to_json(replace(manifest, tables=tables, **changes)))


def _described(path: Path) -> DataFile:
    size, digest = storage.digest(str(path))
    rows = pq.read_metadata(path).num_rows
    return DataFile(path=f"data/{path.name}", rows=rows, num_bytes=size, sha256=digest)


# --- rows of pictures, pairs and captions

WORDS = ["red", "blue", "green", "cup", "ball", "box", "dog", "cat"]
COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (40, 40, 230), "grey": (128,) * 3}
PLACES = {"left": 4, "right": 18}


def _png(image: Image.Image) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def picture(seed: int, width: int = 40, height: int = 30) -> bytes:
    """Blurred noise."""
    pixels = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return _png(Image.fromarray(pixels).resize((width, height)))


def square(colour: str, place: str, seed: int = 0) -> bytes:
    """A square on noise, 32 x 32."""
    pixels = np.random.default_rng(seed).integers(0, 60, (32, 32, 3), dtype=np.uint8)
    pixels[8:24, PLACES[place] : PLACES[place] + 10] = COLOURS[colour]
    return _png(Image.fromarray(pixels))


def image_rows(pictures: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """The rows of PNG images, by their ids."""
    rows = []
    for name, data in sorted(pictures.items()):
        with Image.open(io.BytesIO(data)) as image:
            size = {"width_px": image.width, "height_px": image.height, "num_bytes": len(data)}
        rows.append({"image_id": name, "image": {"bytes": data, "path": f"{name}.png"}, **size})
    return rows


def caption(seed: int) -> str:
    """Some words: from 2 to 30 of them, so that captions are padded to different lengths."""
    rng = np.random.default_rng(seed)
    return f"a {' '.join(rng.choice(WORDS, rng.integers(1, 30 if seed % 5 == 0 else 4)))}"


def _pair(key: str, images: Sequence[str], captions: Sequence[str], **more: str) -> dict[str, Any]:
    names = {"sample_id": f"made/{key}", "image_0_id": images[0], "image_1_id": images[1]}
    return names | {"caption_0": captions[0], "caption_1": captions[1]} | more


def pair_tables(videos: int, frames: int = 4, first: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Every two of the frames of a video; equal captions among them."""
    samples: list[dict[str, Any]] = []
    pictures: dict[str, bytes] = {}
    for number in range(first, first + videos):
        video = f"v{number:03d}"
        pictures |= {f"{video}-f{n}": picture(100 * number + n) for n in range(frames)}
        for pair in combinations(range(frames), 2):
            images = [f"{video}-f{n}" for n in pair]
            captions = [caption(10 * (number % 7) + n) for n in pair]
            key = f"{video}/{pair[0]}-{pair[1]}"
            samples.append(_pair(key, images, captions, source_id=video))
    return {"samples": samples, "images": image_rows(pictures)}


def write_pairs(folder: Path, tables: Mapping[str, Rows], **how: Any) -> Path:
    return write_dataset(folder, "eq-video", tables, **how)


def write_squares(folder: Path, seeds: int = 2) -> Path:
    """Writes pairs whose square changes its side: one for each colour and noise."""
    samples: list[dict[str, Any]] = []
    pictures: dict[str, bytes] = {}
    for seed, colour in product(range(seeds), COLOURS):
        both = {sha256_hex(data): data for data in (square(colour, p, seed) for p in PLACES)}
        pictures |= both
        captions = [f"a {colour} box on the {place}" for place in PLACES]
        split = "val" if seed else "train"
        samples.append(_pair(f"{colour}-{seed}", [*both], captions, split=split))
    return write_pairs(folder, {"samples": samples, "images": image_rows(pictures)}, files=1)


def write_captions(folder: Path, images: bool = True) -> Path:
    """Writes captions with hard texts in rows of their own; some lack one, one its image."""
    whole = {row["role"]: row for row in built_rows(built("training-captions"), "samples")}
    rows, pictures = [], {}
    for number, (colour, place) in enumerate(product(COLOURS, PLACES)):
        data = square(colour, place)
        pictures[sha256_hex(data)] = data
        about = {
            "caption_id": f"c/{number}",
            "image": f"{number}.png",
            "image_id": sha256_hex(data) if images and number != 7 else None,
            "split": "train",
        }
        texts = {
            "original": f"a {colour} box on the {place}",
            "hard_positive": f"on the {place} a {colour} box",
            "hard_negative": f"a {colour} box on the {'right' if place == 'left' else 'left'}",
        }
        texts.pop({2: "hard_negative", 3: "hard_positive"}.get(number, ""), None)
        for role, text in texts.items():
            rows.append(whole[role] | about | {"sample_id": f"c/{number}/{role}", "text": text})
    tables = {"samples": rows, "images": image_rows(pictures)}
    return write_dataset(folder, "training-captions", tables, files=1)


# --- scores of them


def write_scores(
    folder: Path,
    dataset: Path,
    task: str,
    tables: Mapping[str, Rows],
    *,
    model: str = "m",
    **changes: Any,
) -> Path:
    """Writes a folder of scores, each table in two files, by the writer of `eqforge score`."""
    crossed, *columns = TASKS[task].crossed, TASKS[task].images, TASKS[task].captions
    images, captions = ([] if crossed else [column.name for column in one] for one in columns)
    names = {"revision": "r", "precision": "float32", "preprocessing": "p"}
    header = ScoresManifest(
        dataset=load_manifest(str(dataset)).dataset,
        dataset_sha256=storage.digest(str(dataset / "dataset.json"))[1],
        task=task,
        quantity="cosine",
        images=images,
        captions=captions,
        model=Identity(kind="clip", family="clip", model=model, calibration="c", **names),
        settings={},
        counts={"samples": Counts(expected=1, scored=1, failed=0)},
        versions={},
        tables={},
    )
    header = replace(header, **changes)
    about = {name: getattr(header, name) for name in ("quantity", "images", "captions")}
    about |= names | {"model": header.model.name}
    nothing = Index(images=[], captions=[], samples=0)
    output, found = Folder(output=str(folder), index=nothing, failures={}), {}
    for name, rows in tables.items():
        full = [{**row, **(about if name == "scores" else {})} for row in rows]
        batch = pa.RecordBatch.from_pylist(full, _schema(name, rows))
        parts = enumerate([batch[: len(full) // 2], batch[len(full) // 2 :]])
        found[name] = [output.write(name, n, 2, batch.schema, [part]) for n, part in parts]
    manifest = to_json(replace(header, tables=found))
    (folder / score_tables.FILE_NAME).write_bytes(manifest)
    return folder


def _schema(table: str, rows: Rows) -> pa.Schema:
    if table.endswith("_vectors"):
        schema: pa.Schema = getattr(score_tables, table)(len(rows[0]["vector"]))
        return schema
    return getattr(score_tables, table.upper())


def score_rows(keys: Sequence[str], values: np.ndarray) -> Rows:
    """The table `scores`: values [samples, images x captions]."""
    return [{"sample_id": k, "values": v} for k, v in zip(keys, values.tolist(), strict=True)]


def vectors(key: str, names: Sequence[str], values: np.ndarray) -> Rows:
    """A table of unit vectors, from values [names, dimensions]."""
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    return [{key: name, "vector": v} for name, v in zip(names, unit.tolist(), strict=True)]
