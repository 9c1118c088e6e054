"""Times `eqforge combine` against copying the parts with pyarrow, and measures its memory.

    python benchmarks/combine.py --pairs 20000

Two datasets of synthetic pairs, each of half the pairs, are combined by one process. The other way
reads the tables of both by pyarrow, a row group at a time, and writes them as they are stored:
nothing is looked up, compared, put in order or digested. Both run in turn, each in a process of its
own; the best of several runs count. A tenth of the pairs tells whether memory grows.
"""

import argparse
import contextlib
import io
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from export import make_dataset, measure  # type: ignore[import-not-found]


def combine(parts: Path, output: Path) -> float:
    """Combines datasets; returns the seconds, those of loading Beam included."""
    from eqforge.pipelines.combined import main

    started = time.perf_counter()
    folders = sorted(map(str, parts.iterdir()))
    with contextlib.redirect_stdout(io.StringIO()):
        assert main([*folders, "--output", str(output / "all")]) == 0
    return time.perf_counter() - started


def copy(parts: Path, output: Path) -> float:
    """Copies the files of the parts by pyarrow, a row group at a time; returns the seconds."""
    started = time.perf_counter()
    for file in sorted(parts.glob("*/data/*.parquet")):
        source = pq.ParquetFile(file)
        how: dict[str, Any] = {"compression": "zstd", "compression_level": 1}
        if file.name.startswith("images-"):
            how = {"compression": "none", "use_dictionary": False}
        target = output / f"{file.parts[-3]}-{file.name}"
        with pq.ParquetWriter(target, source.schema_arrow, write_page_index=True, **how) as writer:
            for group in range(source.num_row_groups):
                writer.write_table(source.read_row_group(group))
    return time.perf_counter() - started


def main() -> None:
    """Runs the comparison and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20_000, help="pairs, of two pictures each")
    parser.add_argument("--side", type=int, default=64, help="side of a picture in pixels")
    parser.add_argument("--shards", type=int, default=4, help="files of each table of a part")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="eqforge-bench-") as name:
        whole, tenth = Path(name) / "whole", Path(name) / "tenth"
        for folder, pairs in ((whole, args.pairs), (tenth, args.pairs // 10)):
            for part in (0, 1):
                half = max(1, pairs // 2)
                make_dataset(folder / str(part), half, args.side, args.shards, part * half)
        works = {
            "combine": (combine, whole),
            "pyarrow": (copy, whole),
            "combine, a tenth": (combine, tenth),
        }
        runs: dict[str, list[tuple[float, float]]] = {each: [] for each in works}
        for _ in range(args.rounds):
            for each, work in works.items():
                runs[each].append(measure(*work, name))
    best = {each: min(seconds for seconds, _ in found) for each, found in runs.items()}
    result = {
        "pairs": args.pairs,
        "seconds": {each: round(value, 2) for each, value in best.items()},
        "peak_mb": {each: round(max(mb for _, mb in found)) for each, found in runs.items()},
        "ratio": round(best["combine"] / best["pyarrow"], 2),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
