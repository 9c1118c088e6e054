"""Writes one shard of a table: deterministic, in bounded memory, and only where it is not done."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.schemas import storage
from eqforge.schemas.errors import BuildError
from eqforge.schemas.manifest import DataFile
from eqforge.schemas.tables import IMAGE, with_metadata

ROW_GROUP_BYTES = 32 << 20
ROW_GROUP_ROWS = 50_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table of a dataset and how its records become rows.

    Attributes:
      name: `samples`, `images` or `rejects`.
      shards: number of files, at least 1.
      schema: its Arrow columns.
      key: the id of a record: it decides the shard and the order. Records with the same key have
        to be equal, and are written once.
      row: the Parquet row of a record. Media are read here, one row at a time.
      tag: what is counted of the rows, such as (stage, reason); None counts nothing.
      metadata: entries for the files' metadata; a change of them rewrites the files.
    """

    name: str
    shards: int
    schema: pa.Schema
    key: Callable[[Any], str]
    row: Callable[[Any], dict[str, Any]]
    tag: Callable[[Any], tuple[str, str]] | None = None
    metadata: tuple[tuple[str, str], ...] = ()

    def file_name(self, shard: int) -> str:
        """Returns the path of a shard below the dataset's folder."""
        return f"data/{self.name}-{shard:05d}-of-{self.shards:05d}.parquet"


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenShard:
    """A shard that is in place, and the counts of its rows by tag."""

    table: str
    file: DataFile
    counts: tuple[tuple[str, str, int], ...]
    skipped: bool


def write_shard(table: Table, shard: int, records: Iterable[Any], output: str) -> WrittenShard:
    """Writes the records of one shard under its final name, sorted by key.

    A file that is there, of the same records, and whole to the byte, is kept as it is.

    Raises:
      BuildError: two different records have the same key.
    """
    ordered = sort_records(table, records)
    fingerprint = fingerprint_records(table.schema, ordered, table.metadata)
    url = storage.join(output, table.file_name(shard))
    note = storage.join(output, "_work", "shards", f"{table.name}-{shard:05d}.json")
    basis = [table.file_name(shard), fingerprint, pa.__version__]
    digest = storage.digest(url) if storage.exists(url) else None
    skipped = digest is not None and _noted(note) == [*basis, *digest]
    if digest is None or not skipped:
        schema = with_metadata(table.schema, {**dict(table.metadata), "fingerprint": fingerprint})
        with storage.open_atomic(url) as stream:
            digesting = storage.DigestingStream(stream)
            _write_rows(digesting, schema, map(table.row, ordered))
            digest = digesting.digest()
        storage.write_bytes(note, msgspec.json.encode([*basis, *digest]))
    num_bytes, sha256 = digest
    counts = Counter(map(table.tag, ordered)) if table.tag is not None else Counter()
    return WrittenShard(
        table=table.name,
        file=DataFile(
            path=table.file_name(shard),
            rows=len(ordered),
            num_bytes=num_bytes,
            sha256=sha256,
        ),
        counts=tuple((*tag, count) for tag, count in sorted(counts.items())),
        skipped=skipped,
    )


def sort_records(table: Table, records: Iterable[Any]) -> list[Any]:
    """Returns the records ordered by key, each once.

    Raises:
      BuildError: two different records have the same key.
    """
    by_key: dict[str, Any] = {}
    for record in records:
        key = table.key(record)
        if by_key.setdefault(key, record) != record:
            raise BuildError(
                f"two different {table.name} have the id {key!r}: ids have to be unique in the "
                "source; the dataset was not finished"
            )
    return [by_key[key] for key in sorted(by_key)]


def fingerprint_records(
    schema: pa.Schema, ordered: Iterable[Any], metadata: tuple[tuple[str, str], ...] = ()
) -> str:
    """Returns what a file of these records carries in its metadata under `fingerprint`."""
    digest = hashlib.sha256(msgspec.json.encode([schema.to_string(), metadata]))
    for record in ordered:
        digest.update(msgspec.json.encode(record))
    return digest.hexdigest()


def _noted(url: str) -> list[Any] | None:
    """Returns what an earlier run wrote down of a shard; None where it did not come so far."""
    try:
        return msgspec.json.decode(storage.read_bytes(url), type=list)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


# Encoded pictures neither compress nor repeat; the settings beside them repeat in every row.
_IMAGE_TABLE = {
    "compression": "none",
    "use_dictionary": [
        f"scores.list.element.{name}" for name in ("name", "scorer", "version", "settings")
    ],
}
_TEXT_TABLE = {"compression": "zstd", "compression_level": 1, "use_dictionary": True}


def _write_rows(stream: Any, schema: pa.Schema, rows: Iterator[dict[str, Any]]) -> None:
    how = _IMAGE_TABLE if _holds_media(schema) else _TEXT_TABLE
    with pq.ParquetWriter(stream, schema, write_page_index=True, **how) as writer:
        for group in _row_groups(rows, schema):
            writer.write_table(group)


def _holds_media(schema: pa.Schema) -> bool:
    return "image" in schema.names and schema.field("image").type == IMAGE


def _row_groups(rows: Iterator[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yields tables of about 32 MB, so that neither writer nor reader holds a whole shard."""
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
    """Yields small batches: conversion from Python needs little memory beside the row group."""
    has_media = _holds_media(schema)
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
