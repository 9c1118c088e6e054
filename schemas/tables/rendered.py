"""The rows of generated pairs, rendered or diffused, and the Parquet columns they become.

Such a dataset has four tables: `samples`, `images`, `masks` (one row per distinct instance mask)
and `rejects`.
"""

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from eqforge.schemas.records.scenes import RenderedObject
from eqforge.schemas.records.scores import Score
from eqforge.schemas.records.spans import Span
from eqforge.schemas.tables.pairs import IMAGE, SCORES, SPANS, list_of, required


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """How the two images of a pair were made.

    Attributes:
      generator: the software, such as `kubric` or `diffusers`.
      version: of that software and of what it stands on.
      model, revision: the neural model, by its public name, and its revision; None for a renderer.
      device: `cpu`, or what the accelerator calls itself; the bytes are the same only on the same.
      seed: both images begin with it.
      parameters: everything else the pixels depend on beside the specs, as a JSON object.
    """

    generator: str
    version: str
    model: str | None
    revision: str | None
    device: str
    seed: int
    parameters: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderedSample:
    """Two generated images that differ in one declared thing; caption i describes image i.

    What has the same name in PairSample means the same.

    Attributes:
      sample_id, dataset, split: as in PairSample.
      source_id: what the statistics take for one cluster.
      kind: what sort of thing differs, such as `attribute`, `counting`, `location`.
      change: which, such as `colour`.
      caption_0, caption_1, captions_0, captions_1: as in PairSample.
      image_0_id, image_1_id: keys into the images table.
      mask_0_id, mask_1_id: keys into the masks table; None where there is no mask.
      generation: how the images were made.
      spec_0, spec_1: what each image was made from, as a JSON object.
      objects_0, objects_1: what each image shows of its objects, in the order of their numbers in
        the mask, from 1; empty where that is not known.
      changed_area_fraction, ssim, background_ssim, luminance_shift, phash_distance,
        word_edit_distance, edited_spans_0, edited_spans_1: as in PairSample.
      scores: every other score of the pair, with its scorer.
    """

    sample_id: str
    dataset: str
    split: str
    source_id: str
    kind: str
    change: str
    caption_0: str
    caption_1: str
    captions_0: tuple[str, ...]
    captions_1: tuple[str, ...]
    image_0_id: str
    image_1_id: str
    mask_0_id: str | None
    mask_1_id: str | None
    generation: Generation
    spec_0: str
    spec_1: str
    objects_0: tuple[RenderedObject, ...]
    objects_1: tuple[RenderedObject, ...]
    changed_area_fraction: float
    ssim: float
    background_ssim: float | None
    luminance_shift: float
    phash_distance: int
    word_edit_distance: int
    edited_spans_0: tuple[Span, ...]
    edited_spans_1: tuple[Span, ...]
    scores: tuple[Score, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskRow:
    """One distinct instance mask, without its bytes: those stay in the media store.

    Attributes:
      mask_id: SHA-256 of the encoded bytes.
      suffix: `.png`.
      width_px, height_px: size of the mask, which is that of its image.
      num_bytes: length of the encoded bytes.
    """

    mask_id: str
    suffix: str
    width_px: int
    height_px: int
    num_bytes: int


_TEXT, _NUMBER, _WHOLE, _SHORT = pa.string(), pa.float64(), pa.int64(), pa.int32()

GENERATION = pa.struct(
    [
        *(required(name, _TEXT) for name in ("generator", "version")),
        *(pa.field(name, _TEXT) for name in ("model", "revision")),
        required("device", _TEXT),
        required("seed", _WHOLE),
        required("parameters", _TEXT),
    ]
)
OBJECTS = list_of(
    pa.struct(
        [
            *(required(name, _TEXT) for name in ("name", "asset")),
            pa.field(
                "box",
                pa.struct([required(name, _SHORT) for name in ("x", "y", "width", "height")]),
            ),
            *(required(name, _SHORT) for name in ("visible_px", "full_px")),
            *(required(name, _NUMBER) for name in ("visible_fraction", "depth_m")),
        ]
    )
)
RENDERED_SAMPLES = pa.schema(
    [
        *(required(name, _TEXT) for name in ("sample_id", "dataset", "split", "source_id")),
        *(required(name, _TEXT) for name in ("kind", "change", "caption_0", "caption_1")),
        *(required(name, list_of(_TEXT)) for name in ("captions_0", "captions_1")),
        *(required(name, _TEXT) for name in ("image_0_id", "image_1_id")),
        *(pa.field(name, _TEXT) for name in ("mask_0_id", "mask_1_id")),
        required("generation", GENERATION),
        *(required(name, _TEXT) for name in ("spec_0", "spec_1")),
        *(required(name, OBJECTS) for name in ("objects_0", "objects_1")),
        *(required(name, _NUMBER) for name in ("changed_area_fraction", "ssim")),
        pa.field("background_ssim", _NUMBER),
        required("luminance_shift", _NUMBER),
        *(required(name, _SHORT) for name in ("phash_distance", "word_edit_distance")),
        *(required(name, SPANS) for name in ("edited_spans_0", "edited_spans_1")),
        required("scores", SCORES),
    ]
)
MASKS = pa.schema(
    [
        required("mask_id", _TEXT),
        # Never null, but Hugging Face shows pictures only where the column could be.
        pa.field("image", IMAGE),
        *(required(name, _SHORT) for name in ("width_px", "height_px")),
        required("num_bytes", _WHOLE),
    ]
)


def mask_row(mask: MaskRow, data: bytes) -> dict[str, Any]:
    """Returns the Parquet row of a mask; its column `image` is what Hugging Face shows."""
    row = asdict(mask)
    suffix = row.pop("suffix")
    return row | {"image": {"bytes": data, "path": mask.mask_id + suffix}}
