"""The tables of a dataset as the shard writer needs them, and its results."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from eqforge.core.errors import BuildError
from eqforge.core.identity import sha256_hex
from eqforge.schemas.dataset.manifest import DataFile
from eqforge.schemas.records.stages import Reject, Tally
from eqforge.schemas.tables.description import DatasetType, TableType
from eqforge.schemas.tables.generated import GENERATED_PAIRS
from eqforge.schemas.tables.pairs import IMAGES_TABLE, REJECTS_TABLE, ImageRow
from eqforge.schemas.tables.texts import Judgement
from eqforge.transforms.dataset.media import MediaStore

if TYPE_CHECKING:
    import pyarrow as pa

IMAGES_PER_FILE = 4_000
REJECTS_PER_FILE = 200_000

SPLIT = "split"

UNCHANGED = "unchanged"
"""Replaces SPLIT in rows of samples whose words did not change."""


def _split_of(record: Any) -> tuple[str, str]:
    return SPLIT if getattr(record, "words_changed", True) else UNCHANGED, record.split


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table of a dataset and how its records become rows.

    Attributes:
      key: returns a record's id, which decides the shard and the order. Records with the same key
        must be equal, and are written once.
      row: returns the Parquet row of a record. Media are read here, one row at a time.
      tag: returns the tag that rows are counted by, such as (stage, reason); None counts splits.
    """

    name: str
    shards: int
    schema: "pa.Schema"
    key: Callable[[Any], str]
    row: Callable[[Any], dict[str, Any]]
    tag: Callable[[Any], tuple[str, str]] | None = None

    @property
    def counted(self) -> Callable[[Any], tuple[str, str]] | None:
        return _split_of if self.tag is None and SPLIT in self.schema.names else self.tag

    def file_name(self, shard: int) -> str:
        return f"data/{self.name}-{shard:05d}-of-{self.shards:05d}.parquet"


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenShard:
    """A shard that is in place, and the counts of its rows by tag."""

    table: str
    file: DataFile
    counts: tuple[tuple[str, str, int], ...]
    skipped: bool


class Pictures(Protocol):
    """Reads images by id and suffix, from a media store or from finished datasets."""

    def get(self, image_id: str, suffix: str) -> bytes:
        """Return the bytes of an image."""

    def path(self, image_id: str, suffix: str) -> str:
        """Return the image's name for messages."""


def files_for(rows: int, rows_per_file: int) -> int:
    return max(1, -(-rows // rows_per_file))


def table_of(kind: TableType, shards: int, media: Pictures | None = None) -> Table:
    """Return a table for the shard writer; `media` holds its images, which are read row by row."""
    return Table(
        name=kind.name,
        shards=shards,
        schema=kind.schema,
        key=kind.key_of,
        row=msgspec.to_builtins if media is None else partial(_row_with_picture, kind, media),
        tag=None if kind.counted is None else attrgetter(*kind.counted),
    )


def rejects_table(rows: int) -> Table:
    return table_of(REJECTS_TABLE, files_for(rows, REJECTS_PER_FILE))


def media_tables(records: int, media_root: str | None) -> tuple[Table, ...]:
    rejects = rejects_table(records)
    if media_root is None:
        return (rejects,)
    files = files_for(records, IMAGES_PER_FILE)
    return (table_of(IMAGES_TABLE, files, MediaStore(media_root)), rejects)


def generated_tables(
    pairs: int,
    samples_per_file: int,
    images_per_file: int,
    media: MediaStore,
    kind: DatasetType = GENERATED_PAIRS,
) -> tuple[Table, ...]:
    pictures = files_for(2 * pairs, images_per_file)
    return (
        table_of(kind.table("samples"), files_for(pairs, samples_per_file)),
        table_of(IMAGES_TABLE, pictures, media),
        table_of(kind.table("masks"), pictures, media),
        rejects_table(4 * pairs),
    )


def _row_with_picture(kind: TableType, media: Pictures, record: Any) -> dict[str, Any]:
    media_id = kind.key_of(record)
    data = media.get(media_id, record.suffix)
    if sha256_hex(data) != media_id:
        raise BuildError(
            f"{media.path(media_id, record.suffix)}: the file has changed since it was stored; "
            "delete the file, and run the same build again"
        )
    return kind.row(record, data)


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchWork:
    """The rows made from a batch of records, by table, and the counts."""

    samples: tuple[Any, ...] = ()
    captions: tuple[Any, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    images: tuple[ImageRow, ...] = ()
    rejects: tuple[Reject, ...] = ()
    tallies: tuple[Tally, ...] = ()

    def rows(self, table: str, _dataset: str) -> tuple[Any, ...]:
        return getattr(self, table)
