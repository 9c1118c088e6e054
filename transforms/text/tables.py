"""The tables of text datasets, as the shard writer needs them."""

from operator import attrgetter

import msgspec
import pyarrow as pa

from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.tables import (
    REJECTS_PER_FILE,
    files_for,
    images_table,
    rejects_table,
)
from eqforge.transforms.dataset.write import Table

IMAGES_PER_FILE = 4_000


def text_table(name: str, schema: pa.Schema, key: str, shards: int) -> Table:
    """Returns a table whose rows are the fields of its records."""
    row = msgspec.to_builtins
    return Table(name=name, shards=shards, schema=schema, key=attrgetter(key), row=row)


def media_tables(captions: int, media_root: str | None) -> tuple[Table, ...]:
    """Returns the tables of images, where there are images, and of rejects."""
    rejects = rejects_table(files_for(captions, REJECTS_PER_FILE))
    if media_root is None:
        return (rejects,)
    images = images_table(files_for(captions, IMAGES_PER_FILE), MediaStore(media_root))
    return (images, rejects)
