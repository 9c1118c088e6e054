"""Times exports against the libraries that write the same files, and measures their memory.

    python benchmarks/export.py --pairs 100000

A dataset of synthetic pairs is made. Its export to WebDataset is compared with the time that
webdataset's TarWriter takes for the same members once they are in memory. Its flat Parquet is
compared with three copies by pyarrow:

* "joined": what an export has to do, and no more. The tables of the samples and of the images are
  read, put in the order of ids and joined, and written with the same columns, compression, files
  and row groups. All pictures are in memory at once, nothing is compared with a digest.
* "copy": the finished flat table is read and written, a row group at a time. It is in order and
  joined already, so this is less work than an export can be.
* "safe copy": the same, synced to the disk, and its SHA-256 taken, as an export does.

All run in turn, each in a process of its own; the best of several runs count. Exports of a tenth of
the rows tell whether memory grows. Goals: 1.5 of the TarWriter, 1.2 of the joined copy.
"""

import argparse
import functools
import hashlib
import io
import json
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from PIL import Image

from eqforge.core.identity import bucket
from eqforge.schemas.dataset.manifest import Manifest, to_json
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.tables.description import TableType
from eqforge.schemas.tables.pairs import IMAGES_TABLE, PAIRS_TABLE, ImageRow, Origin, PairSample
from eqforge.transforms.dataset.tables import Table
from eqforge.transforms.dataset.write import write_runs
from tests.builds import one_run

ORIGIN = Origin(
    frame_id="video/0001",
    source_path="videos/0001.mp4",
    source_sha256="0" * 64,
    licence=None,
    requested_timestamp_s=1.5,
    timestamp_s=1.5,
    pts=38_400,
    time_base="1/25600",
    frame_index=45,
    rotation_deg=0,
    parameters='{"image_format": "jpeg", "jpeg_quality": 95}',
)


def make_dataset(folder: Path, pairs: int, side: int, shards: int, first: int = 0) -> None:
    """Writes a dataset of pairs, numbered from `first`; every picture is a JPEG of its own."""
    pair_numbers = range(first, first + pairs)
    picture_numbers = range(2 * first, 2 * (first + pairs))
    noise = [_jpeg(seed, side) for seed in range(100)]
    numbers = {_sha256(_picture(noise, number)): number for number in picture_numbers}
    images = [_image(name, len(noise[number % 100]) + 12) for name, number in numbers.items()]
    names = list(numbers)
    shown = zip(pair_numbers, names[::2], names[1::2], strict=True)
    samples = [_sample(*each) for each in shown]
    kinds = ((PAIRS_TABLE, samples), (IMAGES_TABLE, images))
    tables = {}
    for kind, records in kinds:
        table = Table(
            name=kind.name,
            shards=shards,
            schema=kind.schema,
            key=kind.key_of,
            row=functools.partial(_row, kind, noise, numbers),
        )
        dealt: list[list[Any]] = [[] for _ in range(shards)]
        for record in records:
            dealt[bucket(kind.key_of(record), shards)].append(record)
        runs = [one_run(table.key, some) for some in dealt]
        written = [write_runs(table, n, runs[n], str(folder)) for n in range(shards)]
        tables[kind.name] = [each.file for each in written]
    about: dict[str, Any] = {"config": {}, "inputs": [], "versions": {}, "stages": {}}
    manifest = Manifest(dataset="eq-video", mode="corrected", tables=tables, **about)
    (folder / "dataset.json").write_bytes(to_json(manifest))


def _row(
    kind: TableType, noise: list[bytes], numbers: dict[str, int], record: Any
) -> dict[str, Any]:
    data = _picture(noise, numbers[record.image_id]) if kind.holds_pictures else None
    return kind.row(record, data)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _jpeg(seed: int, side: int) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG")
    return stream.getvalue()


def _picture(noise: list[bytes], number: int) -> bytes:
    """A JPEG, made another one by a comment behind its first marker."""
    data = noise[number % len(noise)]
    return data[:2] + b"\xff\xfe\x00\x0a" + number.to_bytes(8, "big") + data[2:]


def _image(name: str, num_bytes: int) -> ImageRow:
    return ImageRow(
        image_id=name,
        suffix=".jpg",
        width_px=128,
        height_px=128,
        num_bytes=num_bytes,
        phash="0" * 48,
        scores=(),
    )


def _sample(number: int, first: str, second: str) -> PairSample:
    captions = (f"a red cup number {number} on a table", f"a blue cup number {number} on a table")
    return PairSample(
        sample_id=f"eq-video/{number:08d}",
        dataset="eq-video",
        split="test",
        source_id=f"video-{number // 50}",
        caption_0=captions[0],
        caption_1=captions[1],
        captions_0=captions[:1],
        captions_1=captions[1:],
        image_0_id=first,
        image_1_id=second,
        origin_0=ORIGIN,
        origin_1=ORIGIN,
        annotation="{}",
        changed_area_fraction=0.1 + number / 1e7,
        ssim=0.5,
        background_ssim=None,
        luminance_shift=0.0,
        phash_distance=8,
        word_edit_distance=1,
        edited_spans_0=(),
        edited_spans_1=(),
        scores=(),
    )


def export(dataset: Path, form: str, output: Path) -> float:
    """Exports a dataset; returns the seconds."""
    from eqforge.transforms.export.formats import ExportSettings
    from eqforge.transforms.export.run import export_dataset

    started = time.perf_counter()
    export_dataset(open_dataset(str(dataset)), ExportSettings(format=form), str(output))
    return time.perf_counter() - started


def tar_writer(flat: Path, output: Path) -> float:
    """Writes the same members by webdataset's TarWriter; returns its own seconds."""
    import webdataset

    seconds = 0.0
    for file in sorted(flat.glob("data/*.parquet")):
        with webdataset.TarWriter(str(output / f"{file.stem}.tar")) as writer:
            for sample in _members(file):
                started = time.perf_counter()
                writer.write(sample)
                seconds += time.perf_counter() - started
            started = time.perf_counter()
        seconds += time.perf_counter() - started
    return seconds


def _members(file: Path) -> Iterator[dict[str, Any]]:
    from eqforge.transforms.export.names import key_of

    for batch in pq.ParquetFile(file).iter_batches(500):
        for row in batch.to_pylist():
            pictures = {f"{name}.jpg": row.pop(name)["bytes"] for name in ("image_0", "image_1")}
            yield {"__key__": key_of(row["sample_id"]), **pictures, "json": row}


def copy(flat: Path, output: Path) -> float:
    """Copies the flat files by pyarrow, a row group at a time; returns the seconds."""
    return _copied(flat, output, is_safe=False)


def safe_copy(flat: Path, output: Path) -> float:
    """The same, and puts them on the disk and takes their SHA-256, as an export does."""
    return _copied(flat, output, is_safe=True)


def _copied(flat: Path, output: Path, is_safe: bool) -> float:
    started = time.perf_counter()
    for file in sorted(flat.glob("data/*.parquet")):
        source = pq.ParquetFile(file)
        with pq.ParquetWriter(output / file.name, source.schema_arrow, **_like(source)) as writer:
            for group in range(source.num_row_groups):
                writer.write_table(source.read_row_group(group))
        if is_safe:
            with open(output / file.name, "rb") as stream:
                hashlib.file_digest(stream, "sha256")
                os.fsync(stream.fileno())
    return time.perf_counter() - started


def _like(source: pq.ParquetFile) -> dict[str, Any]:
    """Returns how the columns of a flat file are stored."""
    names = [source.schema.column(n).path for n in range(len(source.schema))]
    texts = [name for name in names if not name.startswith(("image_0.", "image_1."))]
    return {
        "compression": {name: "zstd" if name in texts else "none" for name in names},
        "compression_level": dict.fromkeys(texts, 1),
        "use_dictionary": texts,
        "write_statistics": texts,
        "write_page_index": True,
    }


def joined_copy(dataset: Path, flat: Path, output: Path) -> float:
    """Joins the tables of a dataset by pyarrow and writes the flat files; returns the seconds."""
    started = time.perf_counter()
    samples = _read(dataset, "samples", None).sort_by("sample_id")
    images = _read(dataset, "images", ["image_id", "image"])
    ids = images.column("image_id")
    places = [pc.index_in(samples.column(f"image_{n}_id"), value_set=ids) for n in (0, 1)]
    start = 0
    for file in sorted(flat.glob("data/*.parquet")):
        source = pq.ParquetFile(file)
        with pq.ParquetWriter(output / file.name, source.schema_arrow, **_like(source)) as writer:
            for group in range(source.num_row_groups):
                count = source.metadata.row_group(group).num_rows
                table = samples.slice(start, count)
                for n, place in enumerate(places):
                    pictures = images.column("image").take(place.slice(start, count))
                    table = table.append_column(f"image_{n}", pictures)
                writer.write_table(table.cast(source.schema_arrow))
                start += count
    assert start == len(samples)
    return time.perf_counter() - started


def _read(dataset: Path, table: str, columns: list[str] | None) -> pa.Table:
    files = sorted((dataset / "data").glob(f"{table}-*.parquet"))
    return pa.concat_tables(pq.ParquetFile(file).read(columns) for file in files)


def measure(work: Callable[..., float], *arguments: Any) -> tuple[float, float]:
    """Returns seconds and peak megabytes of some work in a process of its own."""
    context = multiprocessing.get_context("spawn")
    answers = context.SimpleQueue()
    child = context.Process(target=_run, args=(answers, work, *arguments))
    child.start()
    answer: tuple[float, float] = answers.get()
    child.join()
    return answer


def _run(answers: Any, work: Callable[..., float], *arguments: Any) -> None:
    output = Path(tempfile.mkdtemp(prefix="eqforge-bench-", dir=arguments[-1]))
    seconds = work(*arguments[:-1], output)
    shutil.rmtree(output)
    status = Path("/proc/self/status").read_text()  # ru_maxrss would begin with the parent's size
    peak_kb = int(status.partition("VmHWM:")[2].split()[0])
    answers.put((seconds, peak_kb / 1024))


def main() -> None:
    """Runs the comparison and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=100_000, help="pairs, of two pictures each")
    parser.add_argument("--side", type=int, default=64, help="side of a picture in pixels")
    parser.add_argument("--shards", type=int, default=8, help="files of each table")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eqforge-bench-") as name:
        whole, part, flat = (Path(name) / each for each in ("whole", "part", "flat"))
        make_dataset(whole, args.pairs, args.side, args.shards)
        make_dataset(part, max(1, args.pairs // 10), args.side, args.shards)
        export(whole, "pairs", flat)
        works: dict[str, tuple[Any, ...]] = {
            "pairs": (export, whole, "pairs"),
            "joined": (joined_copy, whole, flat),
            "copy": (copy, flat),
            "safe copy": (safe_copy, flat),
            "webdataset": (export, whole, "webdataset"),
            "TarWriter": (tar_writer, flat),
            "pairs, a tenth": (export, part, "pairs"),
            "webdataset, a tenth": (export, part, "webdataset"),
        }
        runs: dict[str, list[tuple[float, float]]] = {each: [] for each in works}
        for _ in range(args.rounds):
            for each, work in works.items():
                runs[each].append(measure(*work, name))
        size = sum(file.stat().st_size for file in flat.glob("data/*"))
    best = {each: min(seconds for seconds, _ in found) for each, found in runs.items()}
    peak = {each: max(mb for _, mb in found) for each, found in runs.items()}
    ratios = {
        **{
            f"pairs / {each}": best["pairs"] / best[each]
            for each in ("joined", "copy", "safe copy")
        },
        "webdataset / TarWriter": best["webdataset"] / best["TarWriter"],
    }
    print(
        json.dumps(
            {
                "pairs": args.pairs,
                "flat_mb": round(size / 1e6),
                "seconds": {each: round(value, 2) for each, value in best.items()},
                "peak_mb": {each: round(value) for each, value in peak.items()},
                "ratios": {each: round(value, 2) for each, value in ratios.items()},
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
