"""Writes small datasets and folders of scores, as finished ones look."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.schemas.dataset import score_tables
from eqforge.schemas.dataset.manifest import DataFile, Manifest, to_json
from eqforge.schemas.dataset.score_tables import Counts, ScoresManifest
from eqforge.schemas.io import storage
from eqforge.schemas.records.scores import Identity

Tables = dict[str, pa.Table]


def table(rows: list[dict[str, Any]], schema: pa.Schema | None = None) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schema)


def write_tables(folder: Path, tables: Tables, stems: dict[str, str]) -> dict[str, list[DataFile]]:
    """Writes each table in two files."""
    found: dict[str, list[DataFile]] = {}
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for name, content in tables.items():
        half = len(content) // 2
        for number, part in enumerate([content[:half], content[half:]]):
            path = f"data/{stems.get(name, name)}-{number:05d}-of-00002.parquet"
            pq.write_table(part, folder / path)
            size, digest = storage.digest(str(folder / path))
            found.setdefault(name, []).append(
                DataFile(path=path, rows=len(part), num_bytes=size, sha256=digest)
            )
    return found


def write_dataset(folder: Path, name: str, tables: Tables, **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    files = write_tables(folder, tables, {})
    settings: dict[str, Any] = dict(mode="corrected", config={}, inputs=[], versions={}, stages={})
    manifest = Manifest(dataset=name, tables=files, **(settings | changes))
    (folder / "dataset.json").write_bytes(to_json(manifest))
    return folder


def write_scores(
    folder: Path, dataset: Path, task: str, tables: Tables, *, model: str = "m", **changes: Any
) -> Path:
    """Writes a folder of scores of a dataset."""
    folder.mkdir(parents=True, exist_ok=True)
    files = write_tables(folder, tables, score_tables.FILE_STEMS)
    settings: dict[str, Any] = dict(
        dataset="d",
        dataset_sha256=storage.digest(str(dataset / "dataset.json"))[1],
        task=task,
        quantity="cosine",
        images=[],
        captions=[],
        model=Identity(
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
    )
    manifest = ScoresManifest(tables=files, **(settings | changes))
    (folder / "scores.json").write_bytes(score_tables.to_json(manifest))
    return folder


def score_rows(keys: list[str], values: np.ndarray, images: list[str], captions: list[str]) -> Any:
    """The table `scores`."""
    names = dict(quantity="cosine", model="m", revision="r", precision="float32", preprocessing="p")
    rows = [
        dict(sample_id=key, images=images, captions=captions, values=list(map(float, v)), **names)
        for key, v in zip(keys, values, strict=True)
    ]
    return table(rows, score_tables.SCORES)


def vectors(key: str, names: list[str], values: np.ndarray) -> pa.Table:
    """A table of unit vectors."""
    make = score_tables.image_vectors if key == "image_id" else score_tables.caption_vectors
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    rows = [{key: name, "vector": list(map(float, v))} for name, v in zip(names, unit, strict=True)]
    return table(rows, make(values.shape[1]))
