"""The tables of text datasets, as the shard writer needs them."""

from eqforge.schemas.tables.pairs import IMAGES_TABLE
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.tables import files_for, rejects_table, table_of
from eqforge.transforms.dataset.write import Table

IMAGES_PER_FILE = 4_000


def media_tables(captions: int, media_root: str | None) -> tuple[Table, ...]:
    """Returns the tables of images, where there are images, and of rejects."""
    rejects = rejects_table(captions)
    if media_root is None:
        return (rejects,)
    files = files_for(captions, IMAGES_PER_FILE)
    return (table_of(IMAGES_TABLE, files, MediaStore(media_root)), rejects)
