"""Times the shard writer against raw pyarrow on the same rows, and measures its memory.

    python benchmarks/writer.py --images 20000

Both write the same images from the same media store to Parquet with the same settings; ours also
sorts, checks ids, fingerprints, renames and hashes. They run in turn, each in a process of its
own, and the medians' ratio is printed. Goal: at most 1.3, and under 1 GB.
"""

import argparse
import json
import multiprocessing
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.core.identity import bucket
from eqforge.schemas.tables.pairs import IMAGES_TABLE, ImageRow
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.tables import table_of
from eqforge.transforms.dataset.write import write_runs
from tests.builds import one_run


def fill_store(folder: Path, images: int, num_bytes: int) -> list[ImageRow]:
    """Stores random images and returns their rows."""
    store = MediaStore(str(folder))
    noise = np.random.default_rng(0).bytes(num_bytes)
    rows = []
    for number in range(images):
        data = number.to_bytes(8, "big") + noise[8:]
        rows.append(
            ImageRow(
                image_id=store.put(data, ".jpg"),
                suffix=".jpg",
                width_px=640,
                height_px=360,
                num_bytes=len(data),
                phash="0" * 48,
                scores=(),
            )
        )
    return rows


def write_ours(store: Path, rows: list[ImageRow], shards: int, output: Path) -> None:
    """Writes all shards with eqforge's writer."""
    table = table_of(IMAGES_TABLE, shards, MediaStore(str(store)))
    dealt: list[list[ImageRow]] = [[] for _ in range(shards)]
    for row in rows:
        dealt[bucket(row.image_id, shards)].append(row)
    for shard, records in enumerate(dealt):
        write_runs(table, shard, one_run(table.key, records), str(output))


def write_raw(store: Path, rows: list[ImageRow], shards: int, output: Path) -> None:
    """Writes the same rows with pyarrow alone."""
    (output / "data").mkdir(parents=True)
    media = MediaStore(str(store))
    for shard in range(shards):
        path = output / "data" / f"{shard}.parquet"
        with pq.ParquetWriter(
            path, IMAGES_TABLE.schema, compression="none", use_dictionary=False
        ) as writer:
            for batch in _batches([row for row in rows if bucket(row.image_id, shards) == shard]):
                read = [IMAGES_TABLE.row(row, media.get(row.image_id, row.suffix)) for row in batch]
                writer.write_table(pa.Table.from_pylist(read, schema=IMAGES_TABLE.schema))


def _batches(rows: list[ImageRow]) -> Iterator[list[ImageRow]]:
    per_group = max(1, (32 << 20) // rows[0].num_bytes)
    for start in range(0, len(rows), per_group):
        yield rows[start : start + per_group]


WRITERS: dict[str, Callable[[Path, list[ImageRow], int, Path], None]] = {
    "eqforge": write_ours,
    "pyarrow": write_raw,
}


def measure(name: str, store: Path, rows: list[ImageRow], shards: int) -> tuple[float, float]:
    """Returns seconds and peak megabytes of one writer in a process of its own."""
    context = multiprocessing.get_context("spawn")
    answers = context.SimpleQueue()
    child = context.Process(target=_run, args=(answers, name, store, rows, shards))
    child.start()
    answer: tuple[float, float] = answers.get()
    child.join()
    return answer


def _run(answers: object, name: str, store: Path, rows: list[ImageRow], shards: int) -> None:
    output = Path(tempfile.mkdtemp(prefix="eqforge-bench-"))
    started = time.perf_counter()
    WRITERS[name](store, rows, shards, output)
    seconds = time.perf_counter() - started
    shutil.rmtree(output)
    answers.put((seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))  # type: ignore[attr-defined]


def main() -> None:
    """Runs the comparison and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=20_000, help="distinct images")
    parser.add_argument("--bytes", type=int, default=50_000, help="bytes of an image")
    parser.add_argument("--shards", type=int, default=8, help="files to write")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each writer")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eqforge-bench-") as folder:
        rows = fill_store(Path(folder), args.images, args.bytes)
        runs = {name: [] for name in WRITERS}  # type: dict[str, list[tuple[float, float]]]
        for _ in range(args.rounds):
            for name in WRITERS:
                runs[name].append(measure(name, Path(folder), rows, args.shards))
    seconds = {name: statistics.median(s for s, _ in found) for name, found in runs.items()}
    peak = {name: max(mb for _, mb in found) for name, found in runs.items()}
    print(
        json.dumps(
            {
                "images": args.images,
                "seconds": {name: round(value, 2) for name, value in seconds.items()},
                "peak_mb": {name: round(value) for name, value in peak.items()},
                "ratio": round(seconds["eqforge"] / seconds["pyarrow"], 2),
            }
        )
    )


if __name__ == "__main__":
    main()
