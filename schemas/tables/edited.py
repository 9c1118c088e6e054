"""The rows of pairs of a photograph and an edit of it.

Such a dataset has four tables: `samples`, `images`, `masks` (where each photograph was allowed to
change) and `rejects`.
"""

from dataclasses import dataclass

from eqforge.schemas.records.boxes import CornerBox
from eqforge.schemas.tables.description import DatasetType, TableType
from eqforge.schemas.tables.pairs import IMAGES_TABLE, REJECTS_TABLE
from eqforge.schemas.tables.rendered import MASKS_TABLE, RENDERED_TABLE, MaskRow, RenderedSample


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
    source_sha256: str
    source_box: CornerBox | None
    negative_generator: str


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
