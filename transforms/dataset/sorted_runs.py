"""Sorted runs: how a table's records reach the worker that writes their shard.

A bundle's records become JSON lines, sorted by shard and key. A small run carries its lines; a
large one refers to a part file. So groupings hold only references, and writers merge runs without
loading them whole.
"""

import hashlib
import heapq
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from eqforge.core.files import storage
from eqforge.core.identity import bucket

Sorted = TypeVar("Sorted")

PART_BYTES = 16 << 20
"""Bytes collected before they become runs."""

_PARTS_CARRIED = 16
"""A run carries its lines if they take at most this fraction (1/n) of PART_BYTES."""

MERGE_BYTES = 32 << 20
"""Memory for merging runs; all are read at once, in pieces."""

LEAST_PIECE_BYTES = 16 << 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Records of one shard, ordered by key, as JSON lines of key and record.

    Attributes:
      kind: the records' class, a dataclass that msgspec can write and read.
      carried: the lines, if the run carries them; then the other fields are empty.
      part: URL of the part file with the lines.
      start, stop: their byte range [start, stop) in the file.
    """

    kind: type
    carried: bytes = b""
    part: str = ""
    start: int = 0
    stop: int = 0


class RunSorter:
    """Collects records in bounded memory and turns them into sorted runs.

    Args:
      part: URL prefix of part files. The SHA-256 of the content follows it, so that a repeated part
        has the same name and bytes.
    """

    def __init__(self, key: Callable[[Any], str], shards: int, part: str) -> None:
        self._key, self._shards, self._part = key, shards, part
        self._kind: type = object
        self._lines: dict[int, list[tuple[str, bytes]]] = {}
        self._size = 0

    def add(self, record: Any) -> Iterator[tuple[int, Run]]:
        """Add a record; once there are many, yield the runs of all records so far, by shard."""
        key = self._key(record)
        line = msgspec.json.encode((key, record)) + b"\n"
        self._kind = type(record)
        self._lines.setdefault(bucket(key, self._shards), []).append((key, line))
        self._size += len(line)
        if self._size >= PART_BYTES:
            yield from self.flush()

    def flush(self) -> Iterator[tuple[int, Run]]:
        shards = sorted(self._lines)
        runs = [b"".join(line for _, line in sorted(self._lines.pop(shard))) for shard in shards]
        is_small, self._size = self._size <= PART_BYTES // _PARTS_CARRIED, 0
        if is_small:
            for shard, lines in zip(shards, runs, strict=True):
                yield shard, Run(kind=self._kind, carried=lines)
            return
        digest, start = hashlib.sha256(), 0
        for lines in runs:
            digest.update(lines)
        url = f"{self._part}{digest.hexdigest()}.jsonl"
        with storage.open_atomic(url) as stream:
            stream.writelines(runs)
        for shard, lines in zip(shards, runs, strict=True):
            yield shard, Run(kind=self._kind, part=url, start=start, stop=start + len(lines))
            start += len(lines)


def merge_runs(runs: list[Run]) -> Iterator[tuple[str, bytes]]:
    piece = max(LEAST_PIECE_BYTES, MERGE_BYTES // max(1, len(runs)))
    return heapq.merge(*(_read_run(run, piece) for run in runs))


def sort_records(
    records: Iterable[Sorted], kind: type[Sorted], key: Callable[[Sorted], str]
) -> Iterator[Sorted]:
    """Yield records of one kind, sorted by their keys, in bounded memory."""
    with tempfile.TemporaryDirectory(prefix="eqforge-") as folder:
        sorter = RunSorter(key, 1, f"{folder}/")
        runs = [run for record in records for _, run in sorter.add(record)]
        runs += (run for _, run in sorter.flush())
        for _, data in merge_runs(runs):
            yield msgspec.json.decode(data, type=kind)


_LINE = msgspec.json.Decoder(tuple[str, msgspec.Raw])


def _read_run(run: Run, piece_bytes: int) -> Iterator[tuple[str, bytes]]:
    pieces: Iterable[bytes] = (
        [run.carried]
        if run.carried
        else (
            storage.read_range(run.part, start, min(start + piece_bytes, run.stop))
            for start in range(run.start, run.stop, piece_bytes)
        )
    )
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            key, record = _LINE.decode(line)
            yield key, bytes(record)
