"""The tables of a dataset of image pairs, as the shard writer needs them."""

from functools import partial
from typing import Any

from eqforge.schemas.errors import BuildError
from eqforge.schemas.identity import sha256_hex
from eqforge.schemas.tables import (
    IMAGES,
    PAIR_SAMPLES,
    REJECTS,
    ImageRow,
    PairSample,
    Reject,
    image_row,
    reject_row,
    sample_row,
)
from eqforge.transforms.media import MediaStore
from eqforge.transforms.write import Table


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


def _sample_id(sample: PairSample) -> str:
    return sample.sample_id


def _image_id(image: ImageRow) -> str:
    return image.image_id


def _reject_id(reject: Reject) -> str:
    return f"{reject.candidate_id} {reject.stage}"


def _stage_and_reason(reject: Reject) -> tuple[str, str]:
    return reject.stage, reject.reason


def _stored_image_row(media: MediaStore, image: ImageRow) -> dict[str, Any]:
    data = media.get(image.image_id, image.suffix)
    if sha256_hex(data) != image.image_id:
        raise BuildError(
            f"{media.path(image.image_id, image.suffix)}: its bytes are not those that were stored "
            "under this name; delete it and run the same build again"
        )
    return image_row(image, data)
