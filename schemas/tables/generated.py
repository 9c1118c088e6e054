"""The rows of generated pairs: rendered, diffused, or a photograph and an edit of it.

Such a dataset has four tables: `samples`, `images`, `masks` (one row per distinct mask)
and `rejects`.
"""

from dataclasses import dataclass
from typing import ClassVar

from eqforge.schemas.records.ranges import Sha256, Share, Similarity, Text, Whole, Whole32
from eqforge.schemas.records.scenes import RenderedObject
from eqforge.schemas.records.scores import Score
from eqforge.schemas.records.values import CornerBox, PictureSuffix, Span
from eqforge.schemas.tables.description import DatasetType, TableType
from eqforge.schemas.tables.pairs import IMAGES_TABLE, PAIR_RULES, REJECTS_TABLE, Bits, LumaShift


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

    generator: Text
    version: Text
    model: str | None
    revision: str | None
    device: Text
    seed: Whole
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
    """One distinct mask.

    Its bytes stay in the media store until they are written.

    Attributes:
      mask_id: SHA-256 of the encoded bytes.
      suffix: `.png`.
      width_px, height_px: size of the mask, which is that of its image.
      num_bytes: length of the encoded bytes.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class EditedSample(RenderedSample):
    """A photograph and an edit of it; caption i describes image i.

    What has the same name in RenderedSample means the same.

    Attributes:
      sample_id, dataset, split, source_id, caption_0, caption_1, captions_0, captions_1: as in
        RenderedSample.
      kind: what sort of thing differs: `object`, `attribute`, `relation` or `negation` where a rule
        made the second caption, `written` where a language model did, else as the source says, or
        `given`.
      change: the rule, such as `replace_object`; the same as `kind` where no rule made it.
      image_0_id, image_1_id: keys into `images`: the photograph, its upright pixels as a PNG, and
        the edited one, of the same size.
      mask_0_id, mask_1_id: key into `masks`, twice the same: where the photograph was allowed to
        change; None where that is not known.
      generation: how the photograph was edited; `seed` is that of the edited one alone.
      spec_0: the photograph: its file, the file's digest, and the part that was cut out, if any.
      spec_1: the edit: its instruction, the things it is about, where its mask is from and by which
        boxes, as a JSON object.
      objects_0, objects_1: empty.
      changed_area_fraction, ssim, background_ssim, luminance_shift, phash_distance,
        word_edit_distance, edited_spans_0, edited_spans_1, scores: as in RenderedSample.
      caption_id: the first caption's id in the source.
      source_path: the photograph's file as the source names it.
      source_sha256: SHA-256 of that file.
      source_box: the part of the photograph that was cut out, in pixels; None for the whole.
      negative_generator: name and version of what made the second caption; `given` where it is the
        source's.
    """

    caption_id: str
    source_path: str
    source_sha256: Sha256
    source_box: CornerBox | None
    negative_generator: Text


EDITED_TABLE = TableType(
    name="samples",
    record=EditedSample,
    key=("sample_id",),
    references=RENDERED_TABLE.references,
)
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
    "an edit of it that is to show what `caption_1` says; both are keys into `images`. `kind` and "
    "`change` say what differs, `source_path` and `source_sha256` which file the photograph is, "
    "and `generation` what edited it.",
)
