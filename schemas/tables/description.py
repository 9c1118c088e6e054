"""Descriptions of tables and of kinds of datasets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    import pyarrow as pa

Collection = Literal["coco", "vg", "flickr"]
"""A collection of photographs, which identifies each by a number."""


@dataclass(frozen=True, kw_only=True)
class TableType:
    """A table that datasets have.

    Attributes:
      name: of the table; its files begin with it.
      record: what each row was; its annotations say the columns.
      key: the columns that tell a row from all others.
      references: columns that are keys into other tables, and the names of those.
      counted: two columns whose values are counted for the manifest; None counts the splits.
      card: what the dataset's card says of the table where it has rows.
    """

    name: str
    record: type
    key: tuple[str, ...]
    references: Mapping[str, str] = field(default_factory=dict)
    counted: tuple[str, str] | None = None
    card: str = ""

    @property
    def schema(self) -> "pa.Schema":
        from eqforge.schemas.tables.columns import schema_of

        return schema_of(self.record)

    @property
    def holds_pictures(self) -> bool:
        """Whether each row holds a picture, named by the SHA-256 of its bytes, which is its key."""
        from eqforge.schemas.tables.columns import holds_pictures

        return holds_pictures(self.schema)

    def key_of(self, record: Any) -> str:
        return " ".join(getattr(record, name) for name in self.key)

    def row(self, record: Any, picture: bytes | None = None) -> dict[str, Any]:
        """Return the Parquet row of a record, with its picture if the table holds pictures."""
        row: dict[str, Any] = msgspec.to_builtins(record)  # `asdict` takes twenty times as long
        if self.holds_pictures:
            row["image"] = {"bytes": picture, "path": self.key_of(record) + row.pop("suffix")}
        return row


def samples_table(record: type, references: Mapping[str, str]) -> TableType:
    return TableType(name="samples", record=record, key=("sample_id",), references=references)


@dataclass(frozen=True, kw_only=True)
class DatasetType:
    """What datasets of one kind have in common.

    Attributes:
      tables: the tables that such a dataset may have.
      card: what the dataset's card says of a row of `samples`.
      use: what such datasets are meant for.
      image: the column of `samples` that names the source of the image in `image_id`.
      collection: whose ids those names are, where they are mere numbers; None where it is not
        known.
    """

    tables: tuple[TableType, ...]
    card: str
    use: str = (
        "Testing whether vision-language models distinguish images or captions that differ only "
        "slightly."
    )
    image: str = "image"
    collection: Collection | None = None

    def table(self, name: str) -> TableType:
        return {table.name: table for table in self.tables}[name]


@dataclass(frozen=True, slots=True)
class KnownDataset:
    """A dataset that can be built by the pipeline of its name, or a benchmark to import.

    Attributes:
      type: its tables and what they mean.
      summary: what it holds, in a line.
      made_from: what a user brings.
      citation: the paper's, as BibTeX; empty where there is no paper.
      released: the command that reads the released files; empty where `build` does not, or they
        were never released.
      licence: of a benchmark's texts, as the source states it; empty where it states none.
      collection: collection that the image names come from, such as COCO; None if it has its own.
    """

    type: DatasetType
    summary: str
    made_from: str
    citation: str = ""
    released: str = ""
    licence: str = ""
    collection: Collection | None = None
