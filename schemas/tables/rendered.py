"""The rows of generated pairs, rendered or diffused.

Such a dataset has four tables: `samples`, `images`, `masks` (one row per distinct instance mask)
and `rejects`.
"""

from dataclasses import dataclass

from eqforge.schemas.records.numbers import Int32
from eqforge.schemas.records.scenes import RenderedObject
from eqforge.schemas.records.scores import Score
from eqforge.schemas.records.spans import Span
from eqforge.schemas.tables.description import DatasetType, PictureSuffix, TableType
from eqforge.schemas.tables.pairs import IMAGES_TABLE, REJECTS_TABLE


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
      image_0_id, image_1_id: keys into `images`.
      mask_0_id, mask_1_id: keys into `masks`; None where there is no mask.
      generation: how the images were made.
      spec_0, spec_1: what each image was made from, as a JSON object; of a rendered one the whole
        scene, with what its caption claims under `claim`.
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
    phash_distance: Int32
    word_edit_distance: Int32
    edited_spans_0: tuple[Span, ...]
    edited_spans_1: tuple[Span, ...]
    scores: tuple[Score, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskRow:
    """One distinct mask.

    Its bytes stay in the media store until they are written.

    Attributes:
      mask_id: SHA-256 of the encoded bytes.
      suffix: `.png`.
      width_px, height_px: size of the mask, which is that of its image.
      num_bytes: length of the encoded bytes.
    """

    mask_id: str
    suffix: PictureSuffix
    width_px: Int32
    height_px: Int32
    num_bytes: int


MASKS_TABLE = TableType(
    name="masks",
    record=MaskRow,
    key=("mask_id",),
    card="`mask_0_id` and `mask_1_id` are keys into `masks`: in a mask the objects of `objects_0` "
    "and `objects_1` have the numbers 1, 2, ... in this order, and the backdrop has 0.",
)
RENDERED_TABLE = TableType(
    name="samples",
    record=RenderedSample,
    key=("sample_id",),
    references={
        **{"image_0_id": "images", "image_1_id": "images"},
        **{"mask_0_id": "masks", "mask_1_id": "masks"},
    },
)
GENERATED_PAIRS = DatasetType(
    tables=(RENDERED_TABLE, IMAGES_TABLE, MASKS_TABLE, REJECTS_TABLE),
    card="In `samples`, `caption_0` describes the image `image_0_id` and `caption_1` the image "
    "`image_1_id`, keys into `images`. `kind` and `change` say what differs, `spec_0` and `spec_1` "
    "what each image was made from, and `generation` by what.",
)
