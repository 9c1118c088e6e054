"""The settings of an export."""

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec

from eqforge.core.errors import InputError

ImageFormat = Literal["keep", "jpeg", "png"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportSettings:
    """What the bytes of an export depend on beside the dataset."""

    format: str
    """Its name."""

    table: str = "samples"
    """The table whose rows are written, such as `retrieval` of a vlue dataset."""

    rows_per_file: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    """Most rows of a file, where the form has several: Parquet files, tar shards."""

    max_side: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Longest side of a picture in pixels; larger ones are scaled down. Without it none is."""

    image_format: ImageFormat = "keep"
    """How pictures are encoded: keep takes their bytes as they are; jpeg (quality 95) and png
    encode what has another format. With --max-side, keep scales JPEG as JPEG, and all others as
    PNG."""

    image_files: bool = False
    """Of jsonl and karpathy: write the pictures as files below images/, too."""

    redistributable: bool = False
    """Leave out rows whose pictures or texts nobody may pass on, by the licences that their sources
    state; a licence that is not stated allows nothing. A pair stays if both its pictures may."""

    def __post_init__(self) -> None:
        if self.rows_per_file < 1:
            raise InputError(f"--rows-per-file {self.rows_per_file}: expected 1 or more")
        if self.max_side is not None and self.max_side < 1:
            raise InputError(f"--max-side {self.max_side}: expected 1 or more")
