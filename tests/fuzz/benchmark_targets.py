"""Fuzzing of `eqforge import`: a file of every benchmark, and tables with pictures in them."""

import functools
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.sources.benchmarks import eqben
from eqforge.sources.benchmarks.form import BenchmarkItem, source_order
from eqforge.sources.benchmarks.items import read_items
from eqforge.transforms.imports.benchmarks import BenchmarkBatch, BenchmarkRules, import_batch
from tests.fuzz import mutate
from tests.fuzz.takes import Outcome, file_of, planned
from tests.published import SOURCES

MUTATORS: dict[str, mutate.Mutator] = {
    ".json": mutate.json_text,
    ".jsonl": mutate.json_lines,
    ".csv": mutate.damage,
    ".tsv": mutate.damage,
    ".parquet": mutate.damage,
}


FOLDERS = ("data/x.json", "swapped_data/x.json")


def _take(benchmark: str, name: str, data: bytes, folder: Path) -> Outcome:
    return _take_source(benchmark, file_of(data, folder, name), folder)


def _take_folders(data: bytes, folder: Path) -> Outcome:
    """Takes two files that belong together, one a line."""
    first, _, second = data.partition(b"\n")
    for name, part in zip(FOLDERS, (first, second), strict=True):
        file_of(part, folder / "source", name)
    return _take_source("replace-swap", folder / "source", folder)


def _take_source(benchmark: str, source: Path, folder: Path) -> Outcome:
    items = tuple(read_items(benchmark, source))
    media = str(folder / "media")
    rules = BenchmarkRules(benchmark=benchmark, images=None, media=media)
    work = import_batch(BenchmarkBatch(items=items), rules)
    assert len(work.samples) + len(work.rejects) == len(items)
    assert len({item.item_id for item in items}) == len(items)
    if benchmark == "eqben" and not work.rejects:
        rows = [msgspec.to_builtins(row) for row in work.samples]
        rows.sort(key=source_order)
        flat = file_of(json.dumps([*map(eqben.write, rows)]).encode(), folder, "flat.json")
        again = {item.item_id: item for item in read_items("eqben", flat)}
        assert again == {item.item_id: item for item in items}, "not what was exported"
    return planned(items, BenchmarkItem)


@functools.cache
def _files(benchmark: str) -> tuple[tuple[str, bytes], ...]:
    """The names and bytes of a benchmark's files that can be read alone."""
    with tempfile.TemporaryDirectory() as folder:
        SOURCES[benchmark](Path(folder))
        paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return tuple(
            (path.name, path.read_bytes())
            for path in paths
            if path.suffix in MUTATORS and path.name != "corpus.json"
        )


def _seeds(benchmark: str) -> tuple[bytes, ...]:
    suffix = Path(_files(benchmark)[0][0]).suffix
    return tuple(data for name, data in _files(benchmark) if Path(name).suffix == suffix)


def _mutate(benchmark: str) -> mutate.Mutator:
    return MUTATORS[Path(_files(benchmark)[0][0]).suffix]


def _taker(benchmark: str) -> Callable[[bytes, Path], Outcome]:
    return functools.partial(_take, benchmark, _files(benchmark)[0][0])


def _two_files() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        source = SOURCES["replace-swap"](Path(folder))
        paths = (source / name / "visual_genome.json" for name in ("data", "swapped_data"))
        return (b"\n".join(path.read_bytes() for path in paths),)


def _mutate_two(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.4:
        return mutate.json_lines(data, rng)
    seed, parts = rng.random(), data.split(b"\n")
    return b"\n".join(mutate.json_text(part, random.Random(seed)) for part in parts)


BENCHMARK_TARGETS = {
    f"import-{benchmark}": (
        functools.partial(_taker, benchmark),
        functools.partial(_seeds, benchmark),
        functools.partial(_mutate, benchmark),
    )
    # Of two folders that belong together no file can be read alone; own-pairs needs --columns.
    for benchmark in sorted(BENCHMARKS.keys() - {"replace-swap", "own-pairs"})
} | {"import-replace-swap": (lambda: _take_folders, _two_files, lambda: _mutate_two)}
"""By name what takes a file, its seeds and its mutator, each made when it is asked for."""
