"""A table of a dataset, and what has been written of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eqforge.schemas.dataset.manifest import DataFile

if TYPE_CHECKING:
    import pyarrow as pa

SPLIT = "split"
"""The column with the split of a row's source."""


UNCHANGED = "unchanged"
"""Stands for SPLIT where a row of samples says that its words did not change."""


def _split_of(record: Any) -> tuple[str, str]:
    return SPLIT if getattr(record, "words_changed", True) else UNCHANGED, record.split


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table of a dataset and how its records become rows.

    Attributes:
      name: its name, such as `samples`.
      shards: number of files, at least 1.
      schema: its Arrow schema.
      key: returns the id of a record, which decides the shard and the order. Records with the same
        key have to be equal, and are written once.
      row: returns the Parquet row of a record. Media are read here, one row at a time.
      tag: returns what rows are counted by, such as (stage, reason); None counts their splits, if
        they have any.
      metadata: entries for the files' metadata; changing them rewrites the files.
    """

    name: str
    shards: int
    schema: "pa.Schema"
    key: Callable[[Any], str]
    row: Callable[[Any], dict[str, Any]]
    tag: Callable[[Any], tuple[str, str]] | None = None
    metadata: tuple[tuple[str, str], ...] = ()

    @property
    def counted(self) -> Callable[[Any], tuple[str, str]] | None:
        return _split_of if self.tag is None and SPLIT in self.schema.names else self.tag

    def file_name(self, shard: int) -> str:
        """Return the path of a shard below the dataset's folder."""
        return f"data/{self.name}-{shard:05d}-of-{self.shards:05d}.parquet"


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenShard:
    """A shard that is in place, and the counts of its rows by tag."""

    table: str
    file: DataFile
    counts: tuple[tuple[str, str, int], ...]
    skipped: bool
