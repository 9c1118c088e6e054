"""The rows of generated pairs: rendered, diffused, or a photograph and an edit of it.

Such a dataset has four tables: `samples`, `images`, `masks` (one row per distinct mask)
and `rejects`.
"""

from dataclasses import dataclass
from typing import ClassVar

from eqforge.schemas.records.scenes import RenderedObject
from eqforge.schemas.records.scores import Score
from eqforge.schemas.records.values import (
    CornerBox,
    PictureSuffix,
    Sha256,
    Share,
    Similarity,
    Span,
    Text,
    Whole,
    Whole32,
)
from eqforge.schemas.tables.description import DatasetType, TableType, samples_table
from eqforge.schemas.tables.pairs import IMAGES_TABLE, PAIR_RULES, REJECTS_TABLE, Bits, LumaShift


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """How the two images of a pair were made.

    Attributes:
      generator: software, such as `kubric` or `diffusers`.
      version: versions of the software and its libraries.
      model, revision: public name and revision of the neural model, or None for a renderer.
      device: `cpu`, or the name of the accelerator. Bytes are reproducible only on the same device.
      seed: random seed of both images.
      parameters: all other settings that affect the pixels, as a JSON object.
    """

    generator: Text
    version: Text
    model: str | None
    revision: str | None
    device: Text
    seed: Whole
    parameters: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderedSample:
    """Two generated images that differ in one specified detail. Caption i describes image i.

    What has the same name in PairSample means the same.

    Attributes:
      sample_id, dataset, split: as in PairSample.
      source_id: cluster id for statistics.
      kind: kind of difference, such as `attribute`, `counting` or `location`.
      change: what differs, such as `colour`.
      caption_0, caption_1, captions_0, captions_1, image_0_id, image_1_id: as in PairSample.
      mask_0_id, mask_1_id: keys into `masks`.
      generation: how the images were generated.
      spec_0, spec_1: specification of each image, as a JSON object. For a rendered scene, the
        specification includes the `claim` of the caption.
      objects_0, objects_1: objects in each image, in the order of their numbers in the mask. Empty
        if unknown.
      changed_area_fraction, ssim, background_ssim, luminance_shift, phash_distance,
        word_edit_distance, edited_spans_0, edited_spans_1, scores: as in PairSample.
    """

    sample_id: Text
    dataset: Text
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
    changed_area_fraction: Share
    ssim: Similarity
    background_ssim: Similarity | None
    luminance_shift: LumaShift
    phash_distance: Bits
    word_edit_distance: Whole32
    edited_spans_0: tuple[Span, ...]
    edited_spans_1: tuple[Span, ...]
    scores: tuple[Score, ...]

    RULES: ClassVar = PAIR_RULES


@dataclass(frozen=True, kw_only=True, slots=True)
class MaskRow:
    """A distinct mask.

    Its bytes stay in the media store until they are written.

    Attributes:
      mask_id: SHA-256 of the encoded bytes.
      suffix: `.png`.
      width_px, height_px: size in pixels, equal to the size of the image.
      num_bytes: size of the encoded mask in bytes.
    """

    mask_id: Text
    suffix: PictureSuffix
    width_px: Whole32
    height_px: Whole32
    num_bytes: Whole


MASKS_TABLE = TableType(
    name="masks",
    record=MaskRow,
    key=("mask_id",),
    card="`mask_0_id` and `mask_1_id` are keys into `masks`: in a mask the objects of `objects_0` "
    "and `objects_1` have the numbers 1, 2, ... in this order, and the backdrop has 0.",
)
RENDERED_TABLE = samples_table(
    RenderedSample,
    {
        **{"image_0_id": "images", "image_1_id": "images"},
        **{"mask_0_id": "masks", "mask_1_id": "masks"},
    },
)
GENERATED_PAIRS = DatasetType(
    tables=(RENDERED_TABLE, IMAGES_TABLE, MASKS_TABLE, REJECTS_TABLE),
    card="In `samples`, `caption_0` describes the image `image_0_id` and `caption_1` the image "
    "`image_1_id`, keys into `images`. `kind` and `change` describe the difference, `spec_0` and "
    "`spec_1` specify each image, and `generation` describes the generator.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class EditedSample(RenderedSample):
    """A photograph and an edited copy of it. Caption i describes image i.

    What has the same name in RenderedSample means the same.

    Attributes:
      sample_id, dataset, split, source_id, caption_0, caption_1, captions_0, captions_1: as in
        RenderedSample.
      kind: `object`, `attribute`, `relation` or `negation` if a rule wrote the second caption, and
        `written` if a language model wrote it. Otherwise, the kind in the source, or `given`.
      change: rule that wrote the second caption, such as `replace_object`. Equal to `kind` if no
        rule wrote it.
      image_0_id, image_1_id: keys into `images`: the upright photograph as a PNG, and the edited
        image of the same size.
      mask_0_id, mask_1_id: key into `masks`, the same in both columns, or None if unknown. The mask
        marks the area that the editor was allowed to change.
      generation: how the photograph was edited, including the `seed` of the edit.
      spec_0: file, digest and crop of the photograph, as a JSON object.
      spec_1: instruction, changes and mask boxes of the edit, as a JSON object.
      objects_0, objects_1: always empty.
      changed_area_fraction, ssim, background_ssim, luminance_shift, phash_distance,
        word_edit_distance, edited_spans_0, edited_spans_1, scores: as in RenderedSample.
      caption_id: id of the first caption in the source.
      source_path: file name of the photograph, as in the source.
      source_sha256: SHA-256 of the photograph's file.
      source_box: crop of the photograph in pixels, or None for the whole photograph.
      negative_generator: name and version of the second caption's generator, or `given` if the
        source contains the caption.
    """

    caption_id: str
    source_path: str
    source_sha256: Sha256
    source_box: CornerBox | None
    negative_generator: Text


EDITED_TABLE = samples_table(EditedSample, RENDERED_TABLE.references)
EDIT_MASKS_TABLE = TableType(
    name="masks",
    record=MaskRow,
    key=MASKS_TABLE.key,
    card="`mask_0_id` and `mask_1_id` are keys into `masks`: where a mask is 1, the photograph was "
    "allowed to change; where it is 0, both images of a locked pair have the same pixels.",
)
EDITED_PAIRS = DatasetType(
    tables=(EDITED_TABLE, IMAGES_TABLE, EDIT_MASKS_TABLE, REJECTS_TABLE),
    card="In `samples`, `image_0_id` is a photograph that `caption_0` describes, and `image_1_id` "
    "an edit of it that should show what `caption_1` describes; both are keys into `images`. "
    "`kind` and `change` describe the difference, `source_path` and `source_sha256` identify the "
    "photograph's file, and `generation` describes the editor.",
)
