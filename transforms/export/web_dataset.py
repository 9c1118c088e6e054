"""Tar shards in the layout of WebDataset: of each row its pictures and a file of JSON."""

import tarfile
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.columns import IMAGE
from eqforge.transforms.export.card import DEFAULT, Files, write_card
from eqforge.transforms.export.json_lines import json_text
from eqforge.transforms.export.names import renamed
from eqforge.transforms.export.target import Export, Record

_BUFFER_BYTES: Final = 4 << 20


def refusal(dataset: Dataset, table: str) -> str:
    """Returns why a table cannot be written so; empty where it can."""
    return ""


def write(export: Export) -> None:
    """Writes `data/test-000000.tar` and so on, and a card by which `load_dataset` reads them."""
    for split in export.splits:
        for part in export.parts(split):
            path = f"data/{split.name}-{part.number:06d}.tar"
            if not export.has(path):
                with export.file(path, rows=part.rows) as stream:
                    for buffer in _buffered(_blocks(export, part.records())):
                        stream.write(buffer)
    files = [Files(split=each.name, path=f"data/{each.name}-*.tar") for each in export.splits]
    write_card(export, {DEFAULT: files}, _schema(export))


def _blocks(export: Export, records: Iterable[Record]) -> Iterator[bytes]:
    """Yields the pieces of a tar."""
    names = renamed(export.schema.names, export.pictures.values())
    size = 0
    for record in records:
        for column, picture in record.pictures.items():
            if picture is not None:
                name = f"{record.key}.{column}{picture.suffix}"
                yield from (blocks := member(name, picture.data))
                size += sum(map(len, blocks))
        row = {names.get(name, name): value for name, value in record.row.items()}
        yield from (blocks := member(f"{record.key}.json", json_text(row)))
        size += sum(map(len, blocks))
    yield bytes(2 * tarfile.BLOCKSIZE + -(size + 2 * tarfile.BLOCKSIZE) % tarfile.RECORDSIZE)


def member(name: str, data: bytes) -> tuple[bytes, bytes, bytes]:
    """Returns the header of a file in a tar, its bytes, and what fills its last block.

    The header has no time and no owner, so the same files give the same bytes.
    """
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o644
    header = entry.tobuf(tarfile.USTAR_FORMAT)
    return header, data, bytes(-len(data) % tarfile.BLOCKSIZE)


def _buffered(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Joins small pieces, as each piece that is written costs some microseconds."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        held.append(block)
        size += len(block)
        if size >= _BUFFER_BYTES:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _schema(export: Export) -> pa.Schema:
    """Returns the types of what `datasets` reads, which it would guess from five rows alone."""
    names = renamed(export.schema.names, export.pictures.values())
    row = pa.struct([each.with_name(names.get(each.name, each.name)) for each in export.schema])
    pictures = [
        pa.field(f"{name}{suffix}", IMAGE)
        for name in export.pictures.values()
        for suffix in export.suffixes
    ]
    texts = [pa.field(name, pa.string()) for name in ("__key__", "__url__")]
    return pa.schema([*pictures, pa.field("json", row), *texts])
