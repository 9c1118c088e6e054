"""The tables of a dataset of image pairs, as the shard writer needs them."""

from functools import partial
from operator import attrgetter
from typing import Any

import msgspec

from eqforge.schemas.errors import BuildError
from eqforge.schemas.identity import sha256_hex
from eqforge.schemas.records.books import Reject
from eqforge.schemas.tables.pairs import (
    IMAGES,
    PAIR_SAMPLES,
    REJECTS,
    ImageRow,
    PairSample,
    image_row,
    reject_row,
    sample_row,
)
from eqforge.schemas.tables.rendered import MASKS, RENDERED_SAMPLES, MaskRow, mask_row
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.write import Table

REJECTS_PER_FILE = 200_000


def files_for(rows: int, rows_per_file: int) -> int:
    """Returns the number of files for so many rows, at least 1."""
    return max(1, -(-rows // rows_per_file))


def samples_table(shards: int) -> Table:
    """Returns the table of pair samples."""
    return Table(name="samples", shards=shards, schema=PAIR_SAMPLES, key=_sample_id, row=sample_row)


def images_table(shards: int, media: MediaStore) -> Table:
    """Returns the table of images; their bytes are read from the media store row by row."""
    row = partial(_stored_image_row, media)
    return Table(name="images", shards=shards, schema=IMAGES, key=_image_id, row=row)


def rendered_samples_table(shards: int) -> Table:
    """Returns the table of generated pair samples."""
    row = msgspec.to_builtins
    return Table(name="samples", shards=shards, schema=RENDERED_SAMPLES, key=_sample_id, row=row)


def masks_table(shards: int, media: MediaStore) -> Table:
    """Returns the table of instance masks, whose bytes come from the media store as well."""
    row = partial(_stored_mask_row, media)
    return Table(name="masks", shards=shards, schema=MASKS, key=attrgetter("mask_id"), row=row)


def rejects_table(shards: int) -> Table:
    """Returns the table of rejects, counted by stage and reason."""
    return Table(
        name="rejects",
        shards=shards,
        schema=REJECTS,
        key=_reject_id,
        row=reject_row,
        tag=_stage_and_reason,
    )


def generated_tables(
    pairs: int, samples_per_file: int, images_per_file: int, media: MediaStore
) -> tuple[Table, ...]:
    """Returns the tables of so many generated pairs, in the order in which they are written."""
    pictures = files_for(2 * pairs, images_per_file)
    return (
        rendered_samples_table(files_for(pairs, samples_per_file)),
        images_table(pictures, media),
        masks_table(pictures, media),
        rejects_table(files_for(4 * pairs, REJECTS_PER_FILE)),
    )


def _sample_id(sample: PairSample) -> str:
    return sample.sample_id


def _image_id(image: ImageRow) -> str:
    return image.image_id


def _reject_id(reject: Reject) -> str:
    return f"{reject.candidate_id} {reject.stage}"


def _stage_and_reason(reject: Reject) -> tuple[str, str]:
    return reject.stage, reject.reason


def _stored_image_row(media: MediaStore, image: ImageRow) -> dict[str, Any]:
    return image_row(image, _stored_bytes(media, image.image_id, image.suffix))


def _stored_mask_row(media: MediaStore, mask: MaskRow) -> dict[str, Any]:
    return mask_row(mask, _stored_bytes(media, mask.mask_id, mask.suffix))


def _stored_bytes(media: MediaStore, media_id: str, suffix: str) -> bytes:
    data = media.get(media_id, suffix)
    if sha256_hex(data) != media_id:
        raise BuildError(
            f"{media.path(media_id, suffix)}: its bytes are not those that were stored "
            "under this name; delete it and run the same build again"
        )
    return data
