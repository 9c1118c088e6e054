"""Writes one shard of a table: deterministically, in bounded memory, unless it exists."""

import contextlib
import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.core.errors import BuildError
from eqforge.core.files import disk, storage
from eqforge.schemas.dataset.manifest import WORK, DataFile
from eqforge.schemas.tables.columns import holds_pictures, with_metadata
from eqforge.transforms.dataset.replace import copy_file
from eqforge.transforms.dataset.sorted_runs import Run, merge_runs
from eqforge.transforms.dataset.tables import Table, WrittenShard

ROW_GROUP_BYTES = 32 << 20
ROW_GROUP_ROWS = 50_000
SPOOL_BYTES = 32 << 20


def write_runs(
    table: Table, shard: int, runs: Iterable[Run], output: str, place: str | None = None
) -> WrittenShard:
    """Write the records of one shard under its final name, sorted by key, each once.

    An existing file with the same records and all its bytes is kept. If it lies in the output but
    `place` is a different folder, the file gets a second name there.

    Args:
      runs: each sorted by key.
      output: the dataset's folder, in which finished work is recorded.
      place: the folder for the table's files; None means the dataset's own.
    """
    with _spooled(table, list(runs)) as records:
        url = storage.join(place or output, table.file_name(shard))
        note = storage.join(output, WORK, "shards", f"{table.name}-{shard:05d}.json")
        basis = [table.file_name(shard), records.fingerprint, pa.__version__]
        try:
            noted = msgspec.json.decode(storage.read_bytes(note), type=list)
        except (FileNotFoundError, msgspec.DecodeError):  # an earlier run did not get that far
            noted = None
        digest = _kept(storage.join(output, table.file_name(shard)), url, basis, noted)
        skipped = digest is not None
        if digest is None:
            schema = with_metadata(table.schema, {"fingerprint": records.fingerprint})
            with storage.open_atomic(url) as stream:
                digesting = disk.DigestingStream(stream)
                _write_rows(digesting, schema, map(table.row, records))
                digest = digesting.digest()
            storage.write_bytes(note, msgspec.json.encode([*basis, *digest]))
        num_bytes, sha256 = digest
        return WrittenShard(
            table=table.name,
            file=DataFile(
                path=table.file_name(shard), rows=records.rows, num_bytes=num_bytes, sha256=sha256
            ),
            counts=records.count(table.counted),
            skipped=skipped,
        )


def _kept(own: str, url: str, basis: list[Any], noted: list[Any] | None) -> tuple[int, str] | None:
    """Return the length and digest of a file that need not be written again, or None.

    Args:
      own: the dataset's file, or an older file of the same name.
      noted: (basis, length, digest) from an earlier run.
    """
    for place in dict.fromkeys((url, own)):
        digest = storage.digest(place) if storage.exists(place) else None
        if digest is not None and noted == [*basis, *digest]:
            if place != url:
                copy_file(place, url)
            return digest
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Spool:
    """A shard's records in order, spooled to disk so that they can be read again."""

    kind: type
    lines: IO[bytes]
    rows: int
    fingerprint: str

    def __iter__(self) -> Iterator[Any]:
        self.lines.seek(0)
        return map(msgspec.json.Decoder(self.kind).decode, self.lines)

    def count(
        self, tag: Callable[[Any], tuple[str, str]] | None
    ) -> tuple[tuple[str, str, int], ...]:
        counts = Counter(map(tag, self)) if tag is not None else Counter()
        return tuple((*found, count) for found, count in sorted(counts.items()))


@contextlib.contextmanager
def _spooled(table: Table, runs: list[Run]) -> Iterator[_Spool]:
    with tempfile.SpooledTemporaryFile(SPOOL_BYTES) as lines:
        digest, rows = _start_fingerprint(table.schema), 0
        for record in _each_once(table, merge_runs(runs)):
            digest.update(record)
            lines.write(record + b"\n")
            rows += 1
        kind = runs[0].kind if runs else object
        yield _Spool(kind=kind, lines=lines, rows=rows, fingerprint=digest.hexdigest())


def _each_once(table: Table, merged: Iterator[tuple[str, bytes]]) -> Iterator[bytes]:
    last: tuple[str, bytes] | None = None
    for key, record in merged:
        if last is None or key != last[0]:
            yield record
        elif record != last[1]:
            raise BuildError(
                f"two different {table.name} have the id {key!r}, so the dataset was not "
                "finished; make the ids in the source unique"
            )
        last = key, record


def fingerprint_records(schema: pa.Schema, ordered: Iterable[Any]) -> str:
    """Return the value of `fingerprint` in the metadata of a file of these records."""
    digest = _start_fingerprint(schema)
    for record in ordered:
        digest.update(msgspec.json.encode(record))
    return digest.hexdigest()


def _start_fingerprint(schema: pa.Schema) -> Any:
    return hashlib.sha256(msgspec.json.encode([schema.to_string(), []]))


# Encoded images neither compress nor repeat; their settings repeat in every row.
_IMAGE_TABLE = {
    "compression": "none",
    "use_dictionary": [
        f"scores.list.element.{name}" for name in ("name", "scorer", "version", "settings")
    ],
}
_TEXT_TABLE = {"compression": "zstd", "compression_level": 1, "use_dictionary": True}


def _write_rows(stream: Any, schema: pa.Schema, rows: Iterator[dict[str, Any]]) -> None:
    options = _IMAGE_TABLE if holds_pictures(schema) else _TEXT_TABLE
    with pq.ParquetWriter(stream, schema, write_page_index=True, **options) as writer:
        for group in _row_groups(rows, schema):
            writer.write_table(group)


def _row_groups(rows: Iterator[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield tables of about 32 MB, so that neither writer nor reader holds a whole shard."""
    batches: list[pa.RecordBatch] = []
    size = count = 0
    for batch in _batches(rows, schema):
        batches.append(batch)
        size, count = size + batch.nbytes, count + batch.num_rows
        if size >= ROW_GROUP_BYTES or count >= ROW_GROUP_ROWS:
            yield pa.Table.from_batches(batches, schema=schema)
            batches, size, count = [], 0, 0
    if batches:
        yield pa.Table.from_batches(batches, schema=schema)


def _batches(rows: Iterator[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield small batches, so that conversion from Python needs little memory."""
    has_media = holds_pictures(schema)
    chunk: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += len(row["image"]["bytes"]) if has_media else 0
        if len(chunk) >= 1_000 or size >= ROW_GROUP_BYTES // 4:
            yield pa.RecordBatch.from_pylist(chunk, schema=schema)
            chunk, size = [], 0
    if chunk:
        yield pa.RecordBatch.from_pylist(chunk, schema=schema)
