"""Small datasets that were built, and others made of their rows, with every column of a build."""

import contextlib
import functools
import io
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from eqforge.cli import main
from eqforge.evaluation.scoring.folder import Folder
from eqforge.evaluation.scoring.index import Index
from eqforge.evaluation.scoring.tasks import TASKS
from eqforge.schemas.dataset import score_tables
from eqforge.schemas.dataset.manifest import DataFile, load_manifest, to_json
from eqforge.schemas.dataset.score_tables import Counts, ScoresManifest, ScoringModel
from eqforge.schemas.identity import sha256_hex
from eqforge.schemas.io import storage
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


def _lines(path: Path, lines: Rows) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def _own_video(folder: Path) -> list[str]:
    write_clip(folder / "v.mp4", Clip())
    moments = {0.2: "a red cup", 1.5: "a blue cup"}
    lines = [{"video": "v.mp4", "timestamp_s": s, "caption": c} for s, c in moments.items()]
    captions = _lines(folder / "captions.jsonl", lines)
    return ["eq-video", "--captions", captions, "--videos", str(folder)]


def _of_captions(name: str, folder: Path) -> list[str]:
    texts = [f"A {size} dog and a red ball on a sofa." for size in ("big", "small", "long", "wet")]
    lines = [{"image": f"{n}.jpg", "caption": texts[n % 4]} for n in range(PICTURES)]
    captions = _lines(folder / "captions.jsonl", lines)
    return [name, "--captions", captions, "--images", str(slopes(folder))]


def _vlue(folder: Path) -> list[str]:
    command = small_builds.COMMANDS["vlue"](None, folder)  # type: ignore[arg-type]
    items = [{"image": f"{n}.jpg", "caption": [f"A {'red ' * n}dog."]} for n in range(PICTURES)]
    (folder / "retrieval.json").write_text(json.dumps(items))
    slopes(folder)
    return command


def _simat(folder: Path) -> list[str]:
    command = small_builds.COMMANDS["simat"](None, folder)  # type: ignore[arg-type]
    slopes(folder)
    return command


COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "eq-video": _own_video,
    "eq-kubric": small_builds.scenes,
    "hard-positives": functools.partial(_of_captions, "hard-positives"),
    "training-captions": functools.partial(_of_captions, "training-captions"),
    "retrieval-perturbations": functools.partial(_of_captions, "retrieval-perturbations"),
    "vlue": _vlue,
    "simat": _simat,
}
_FOLDER = tempfile.TemporaryDirectory()


@functools.cache
def built(kind: str) -> Path:
    """Builds a dataset, once for all tests, which must not change it; beside it lie its sources."""
    folder = Path(_FOLDER.name) / kind
    folder.mkdir()
    command = ["build", *COMMANDS[kind](folder), "--output", str(folder / "d")]
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
    group_rows: int | None = None,
    **changes: Any,
) -> Path:
    """Writes what a build would have written of other samples.

    Args:
      folder: where to write.
      kind: a key of COMMANDS.
      tables: rows by table; what a row leaves out is as in the first row of the build. Tables
        that are left out are those of the build.
      files: of each table, which take rows in turns.
      group_rows: the most rows in a row group.
      changes: to the manifest of the build.

    Raises:
      KeyError: a build has no such table or column.
    """
    manifest = load_manifest(str(built(kind)))
    if strange := tables.keys() - manifest.tables.keys():
        raise KeyError(f"{kind} has no table {strange}")
    (folder / "data").mkdir(parents=True)
    found = {}
    for name, old in manifest.tables.items():
        if name in tables:
            first, *_ = [*built_rows(built(kind), name), {}]
            schema = pq.read_schema(built(kind) / old[0].path)
            content = pa.Table.from_pylist([_whole(schema, first, r) for r in tables[name]], schema)
            found[name] = _write_table(folder, name, content, files, group_rows)
        else:
            found[name] = old
            for file in old:
                shutil.copy(built(kind) / file.path, folder / file.path)
    (folder / "dataset.json").write_bytes(to_json(replace(manifest, tables=found, **changes)))
    return folder


def _whole(
    schema: pa.Schema, first: Mapping[str, Any], changes: Mapping[str, Any]
) -> dict[str, Any]:
    row = {**first, **changes}
    inner = {
        (field.name, part): value
        for field in schema
        if pa.types.is_struct(field.type) and row[field.name] is not None
        for part, value in row[field.name].items()
    }
    known = {(f.name, part.name) for f in schema if pa.types.is_struct(f.type) for part in f.type}
    if strange := (row.keys() ^ set(schema.names)) | (inner.keys() - known):
        raise KeyError(f"not a column of the build, or one of it without a value: {strange}")
    return row


def _write_table(
    folder: Path, name: str, content: pa.Table, files: int, group_rows: int | None
) -> list[DataFile]:
    found = []
    for number in range(files):
        path = f"data/{name}-{number:05d}-of-{files:05d}.parquet"
        part = content.take(pa.array(range(number, len(content), files), pa.int64()))
        pq.write_table(part, folder / path, row_group_size=group_rows)
        found.append(_described(folder, path))
    return found


def _described(folder: Path, path: str) -> DataFile:
    size, digest = storage.digest(str(folder / path))
    rows = pq.read_metadata(folder / path).num_rows
    return DataFile(path=path, rows=rows, num_bytes=size, sha256=digest)


def describe(folder: Path) -> None:
    """Brings a manifest to what its files are, after one of them was written anew."""
    manifest = load_manifest(str(folder))
    tables = {
        name: [_described(folder, file.path) for file in files]
        for name, files in manifest.tables.items()
    }
    (folder / "dataset.json").write_bytes(to_json(replace(manifest, tables=tables)))


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


def pair_tables(videos: int, frames: int = 4, first: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Every two of the frames of a video; equal captions among them."""
    samples, pictures = [], {}
    for video in range(first, first + videos):
        for frame in range(frames):
            pictures[f"v{video:03d}-f{frame}"] = picture(100 * video + frame)
        samples += [
            {
                "sample_id": f"made/v{video:03d}/{i}-{j}",
                "source_id": f"v{video:03d}",
                "image_0_id": f"v{video:03d}-f{i}",
                "image_1_id": f"v{video:03d}-f{j}",
                "caption_0": caption(10 * (video % 7) + i),
                "caption_1": caption(10 * (video % 7) + j),
            }
            for i in range(frames)
            for j in range(i + 1, frames)
        ]
    return {"samples": samples, "images": image_rows(pictures)}


def write_pairs(
    folder: Path, tables: Mapping[str, Rows], files: int = 2, group_rows: int = 5, **changes: Any
) -> Path:
    """Writes a dataset of pairs, in small row groups."""
    return write_dataset(folder, "eq-video", tables, files, group_rows, **changes)


def write_squares(folder: Path, seeds: int = 2) -> Path:
    """Writes pairs whose square changes its side: one for each colour and noise."""
    rows: list[dict[str, Any]] = []
    pictures: dict[str, bytes] = {}
    for seed in range(seeds):
        for colour in COLOURS:
            both = [square(colour, place, seed) for place in PLACES]
            names = [sha256_hex(data) for data in both]
            pictures |= dict(zip(names, both, strict=True))
            rows.append(
                {
                    "sample_id": f"made/{colour}-{seed}",
                    "split": "train" if seed == 0 else "val",
                    "image_0_id": names[0],
                    "image_1_id": names[1],
                    "caption_0": f"a {colour} box on the left",
                    "caption_1": f"a {colour} box on the right",
                }
            )
    tables = {"samples": rows, "images": image_rows(pictures)}
    return write_dataset(folder, "eq-video", tables, files=1)


def write_captions(folder: Path, images: bool = True) -> Path:
    """Writes captions with hard texts in rows of their own; some lack one, one its image."""
    whole = {row["role"]: row for row in built_rows(built("training-captions"), "samples")}
    rows: list[dict[str, Any]] = []
    pictures: dict[str, bytes] = {}
    for number, (colour, place) in enumerate((c, p) for c in COLOURS for p in PLACES):
        data = square(colour, place)
        pictures[sha256_hex(data)] = data
        other = "right" if place == "left" else "left"
        texts = {
            "original": f"a {colour} box on the {place}",
            "hard_positive": f"on the {place} a {colour} box",
            "hard_negative": f"a {colour} box on the {other}",
        }
        lacks = {2: "hard_negative", 3: "hard_positive"}.get(number)
        rows += [
            whole[role]
            | {
                "sample_id": f"c/{number}/{role}",
                "caption_id": f"c/{number}",
                "image": f"{number}.png",
                "image_id": sha256_hex(data) if images and number != 7 else None,
                "split": "train",
                "text": text,
            }
            for role, text in texts.items()
            if role != lacks
        ]
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
    images, captions = ([] if crossed else [column.name for column in found] for found in columns)
    header = ScoresManifest(
        dataset=load_manifest(str(dataset)).dataset,
        dataset_sha256=storage.digest(str(dataset / "dataset.json"))[1],
        task=task,
        quantity="cosine",
        images=images,
        captions=captions,
        model=ScoringModel(
            kind="clip",
            family="clip",
            model=model,
            revision="r",
            precision="float32",
            preprocessing="p",
            calibration="c",
        ),
        settings={},
        counts={"samples": Counts(expected=1, scored=1, failed=0)},
        versions={},
        tables={},
    )
    header = replace(header, **changes)
    about = {name: getattr(header, name) for name in ("quantity", "images", "captions")}
    about |= {n: getattr(header.model, n) for n in ("revision", "precision", "preprocessing")}
    about["model"] = header.model.name
    output = Folder(output=str(folder), index=Index(images=[], captions=[], samples=0), failures={})
    found = {}
    for name, rows in tables.items():
        full = [row | about if name == "scores" else row for row in map(dict, rows)]
        batch = pa.RecordBatch.from_pylist(full, _SCHEMAS[name](full))
        half = len(full) // 2
        found[name] = [
            output.write(name, number, 2, batch.schema, [part])
            for number, part in enumerate([batch[:half], batch[half:]])
        ]
    manifest = replace(header, tables=found)
    (folder / "scores.json").write_bytes(score_tables.to_json(manifest))
    return folder


_SCHEMAS: dict[str, Callable[[Rows], pa.Schema]] = {
    "scores": lambda _: score_tables.SCORES,
    "grid": lambda _: score_tables.GRID,
    "failures": lambda _: score_tables.FAILURES,
    "image_vectors": lambda rows: score_tables.image_vectors(len(rows[0]["vector"])),
    "caption_vectors": lambda rows: score_tables.caption_vectors(len(rows[0]["vector"])),
}


def score_rows(keys: Sequence[str], values: np.ndarray) -> Rows:
    """The table `scores`: values [samples, images x captions]."""
    return [{"sample_id": k, "values": v} for k, v in zip(keys, values.tolist(), strict=True)]


def vectors(key: str, names: Sequence[str], values: np.ndarray) -> Rows:
    """A table of unit vectors, from values [names, dimensions]."""
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    return [{key: name, "vector": v} for name, v in zip(names, unit.tolist(), strict=True)]
