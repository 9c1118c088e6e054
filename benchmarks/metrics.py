"""Metrics at the size of the published sets: time, memory, and the form with a loop over queries.

Example:
    python benchmarks/metrics.py

EqBen: 251,048 x 4 random scores through `eqforge metrics --format eqben`, all with intervals.
Retrieval: 25,000 captions and 5,000 images, both directions, R@k and DCG_CM. The loop ranks one
query at a time by a matrix-vector product and `np.argsort`, and sums gains in Python, as published
code does; it is timed on every LOOP_STRIDE-th query and multiplied up.
Grid: a folder of scores of 5,000 images with 25,000 captions, as `eqforge score` writes a fusion
encoder's, 4 GB, through `eqforge metrics --relevance` in a process of its own; Linux.
"""

import contextlib
import io
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.core.files import storage
from eqforge.evaluation.metrics.retrieval import (
    KS,
    Truths,
    dcg_cm,
    rank,
    recall_at,
    relevance_of,
    vector_rows,
)
from eqforge.evaluation.scoring.gather import Folder, Gathered, gather_grid, gather_vectors
from eqforge.evaluation.scoring.index import Index, Pairs
from eqforge.evaluation.tables.command import main as metrics
from eqforge.schemas.dataset import score_tables
from eqforge.schemas.dataset.manifest import DataFile, Manifest, to_json
from eqforge.schemas.dataset.score_tables import ScoresManifest
from eqforge.schemas.records.scores import Identity

IMAGES, CAPTIONS_EACH, DIMENSIONS = 5_000, 5, 512
CAPTION_WORDS = 10
LOOP_STRIDE = 20

CHILD = """
import sys
from pathlib import Path
from eqforge.evaluation.tables.command import main
if main(sys.argv[1:]):
    raise SystemExit("eqforge metrics failed")
lines = Path("/proc/self/status").read_text().splitlines()
print(next(line for line in lines if line.startswith("VmHWM")))
"""
"""Measures, and prints the peak memory of its process last."""


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Returns what the work returns, and its seconds."""
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def eqben_s() -> float:
    """Returns the seconds of EqBen's whole table, the file's reading included."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.npy"
        np.save(path, np.random.default_rng(0).normal(size=251_048 * 4).astype(np.float32))
        with contextlib.redirect_stdout(io.StringIO()):
            status, seconds = timed(lambda: metrics(["--format", "eqben", str(path)]))
    if status != 0:
        raise SystemExit("eqforge metrics failed")
    return seconds


def write_gallery(folder: Path, index: Index) -> None:
    """Writes a dataset for retrieval; the captions of one image stand one after the other."""
    owners = [index.images[number // CAPTIONS_EACH] for number in range(len(index.captions))]
    rows = {
        "sample_id": [f"{number:06d}" for number in range(len(owners))],
        "gallery_id": owners,
        "image_id": owners,
        "caption": index.captions,
    }
    folder.mkdir()
    pq.write_table(pa.table(rows), folder / "retrieval.parquet")
    size, digest = storage.digest(str(folder / "retrieval.parquet"))
    file = DataFile(path="retrieval.parquet", rows=len(owners), num_bytes=size, sha256=digest)
    manifest = Manifest(
        dataset="shape",
        mode="corrected",
        config={},
        inputs=[],
        versions={},
        stages={},
        tables={"retrieval": [file]},
    )
    (folder / "dataset.json").write_bytes(to_json(manifest))


def write_scores(folder: Path, dataset: Path, name: str, found: Gathered) -> None:
    """Writes the manifest of scores whose tables are there."""
    manifest = ScoresManifest(
        dataset="shape",
        dataset_sha256=storage.digest(str(dataset / "dataset.json"))[1],
        task="retrieval",
        quantity="cosine",
        images=[],
        captions=[],
        model=Identity(
            kind="random",
            family="random",
            model=name,
            revision="0",
            precision="float32",
            preprocessing="",
            calibration="",
        ),
        settings={},
        counts=found.counts,
        versions={},
        tables=found.tables,
    )
    (folder / score_tables.FILE_NAME).write_bytes(to_json(manifest))


def write_grid(folder: Path) -> None:
    """Writes a dataset, scores of everything with everything, and vectors for DCG_CM."""
    rng = np.random.default_rng(2)
    words = rng.integers(100, 100_000, (IMAGES * CAPTIONS_EACH, CAPTION_WORDS))
    captions = sorted(" ".join(map(str, row)) for row in words.tolist())
    index = Index(
        images=[f"{number:06d}" for number in range(IMAGES)], captions=captions, samples=0
    )
    write_gallery(folder / "set", index)
    images, texts = unit(rng, IMAGES), unit(rng, len(captions))
    texts = texts + 0.15 * images[np.arange(len(captions)) // CAPTIONS_EACH]
    starts = np.arange(IMAGES + 1, dtype=np.int64) * len(captions)
    for name in ("grid", "vectors"):
        (folder / name / "data").mkdir(parents=True)
    np.save(folder / "image_vectors.npy", images)
    np.save(folder / "caption_vectors.npy", texts / np.linalg.norm(texts, axis=1, keepdims=True))
    values = np.lib.format.open_memmap(
        folder / "values.npy", mode="w+", dtype=np.float32, shape=(int(starts[-1]),)
    )
    for image in range(0, IMAGES, 100):
        some = images[image : image + 100] @ texts.T
        values[starts[image] : starts[image] + some.size] = some.ravel()
    grid, vectors = (
        Folder(output=str(folder / name), index=index, failures={}) for name in ("grid", "vectors")
    )
    found = gather_grid(grid, folder, Pairs(starts=starts, captions=None))
    write_scores(folder / "grid", folder / "set", "grid", found)
    write_scores(folder / "vectors", folder / "set", "vectors", gather_vectors(vectors, folder))


def print_grid() -> None:
    """Prints seconds and peak memory of the table of a full grid, in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        write_grid(Path(name))
        paths = [f"{name}/set", f"{name}/grid", "--relevance", f"{name}/vectors"]
        command = [sys.executable, "-c", CHILD, *paths]
        found, seconds = timed(
            lambda: subprocess.run(command, check=True, capture_output=True, text=True)
        )
    peak = int(found.stdout.split()[-2]) / 1e6
    print(
        f"grid of {IMAGES:,} x {IMAGES * CAPTIONS_EACH:,}, its table with DCG_CM: {seconds:.0f} s, "
        f"peak memory {peak:.2f} GB"
    )


def unit(rng: np.random.Generator, count: int) -> np.ndarray:
    """Returns random unit vectors."""
    vectors = rng.normal(size=(count, DIMENSIONS)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def blocks(queries: np.ndarray, candidates: np.ndarray, truths: Truths, relevance: Any) -> Any:
    """Returns R@k and DCG_CM of one direction, as `eqforge metrics` computes them."""
    ranking = rank(vector_rows(queries, candidates), truths)
    gains = dcg_cm(ranking, relevance_of(ranking, *relevance))
    return [recall_at(ranking, k).mean() for k in KS] + [gains.mean()]


def loop(queries: np.ndarray, candidates: np.ndarray, truths: Truths, relevance: Any) -> Any:
    """Returns the same of every LOOP_STRIDE-th query, one query at a time."""
    rows = []
    for query in range(0, len(queries), LOOP_STRIDE):
        true = set(truths.index[truths.start[query] : truths.start[query + 1]])
        order = np.argsort(candidates @ queries[query])[::-1]
        found = [any(c in true for c in order[:k]) for k in KS]
        total = 0.0
        for place, c in enumerate(order[:10], start=1):
            gain = 1.0 if c in true else float(relevance[0][query] @ relevance[1][c])
            total += gain / math.log2(place + 1)
        rows.append([*found, total])
    return np.mean(rows, axis=0)


def main() -> None:
    """Prints seconds and peak memory."""
    print(f"EqBen, 251,048 x 4 scores, all tables with intervals: {eqben_s():.1f} s")
    rng = np.random.default_rng(1)
    images, captions = unit(rng, IMAGES), unit(rng, IMAGES * CAPTIONS_EACH)
    pictured = np.repeat(np.arange(IMAGES), CAPTIONS_EACH)
    captions += 0.15 * images[pictured]
    numbers = np.arange(len(captions))
    directions = {
        "i2t": (images, captions, Truths.of_pairs(pictured, numbers, IMAGES)),
        "t2i": (captions, images, Truths.of_pairs(numbers, pictured, len(captions))),
    }
    ours = theirs = 0.0
    for name, (queries, candidates, truths) in directions.items():
        work = (queries, candidates, truths, (queries, candidates))
        found, seconds = timed(partial(blocks, *work))
        print(f"{name} in blocks: {seconds:.1f} s", [round(float(x), 4) for x in found])
        ours += seconds
        found, seconds = timed(partial(loop, *work))
        print(
            f"{name} in a loop: {seconds * LOOP_STRIDE:.0f} s", [round(float(x), 4) for x in found]
        )
        theirs += seconds * LOOP_STRIDE
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"loop / blocks: {theirs / ours:.1f}; peak memory {peak:.2f} GB")
    print_grid()


if __name__ == "__main__":
    main()
