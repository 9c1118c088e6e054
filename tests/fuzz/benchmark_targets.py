"""Fuzzing of `eqforge import`: a file of every benchmark, and tables with pictures in them."""

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path

from eqforge.schemas.benchmarks.form import BenchmarkItem
from eqforge.schemas.benchmarks.items import read_items
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.transforms.benchmarks.items import BenchmarkBatch, BenchmarkRules, import_batch
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


def _take(benchmark: str, name: str, data: bytes, folder: Path) -> Outcome:
    path = file_of(data, folder, name)
    items = tuple(read_items(benchmark, path))
    media = str(folder / "media")
    rules = BenchmarkRules(benchmark=benchmark, images=None, media=media)
    work = import_batch(BenchmarkBatch(items=items), rules)
    assert len(work.samples) + len(work.rejects) == len(items)
    assert len({item.item_id for item in items}) == len(items)
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


BENCHMARK_TARGETS = {
    f"import-{benchmark}": (
        functools.partial(_taker, benchmark),
        functools.partial(_seeds, benchmark),
        functools.partial(_mutate, benchmark),
    )
    # Of two folders that belong together no file can be read alone; own-pairs needs --columns.
    for benchmark in sorted(BENCHMARKS.keys() - {"replace-swap", "own-pairs"})
}
"""By name what takes a file, its seeds and its mutator, each made when it is asked for."""
