"""One record of each table, to be changed with dataclasses.replace."""

from eqforge.schemas.scores import Score
from eqforge.schemas.spans import Span
from eqforge.schemas.tables import ImageRow, Origin, PairSample, Reject

ORIGIN = Origin(
    frame_id="d/v/000",
    source_path="v.mp4",
    source_sha256="0" * 64,
    licence=None,
    requested_timestamp_s=1.5,
    timestamp_s=1.48,
    pts=1480,
    time_base="1/1000",
    frame_index=37,
    rotation_deg=0,
    parameters="{}",
)
SCORE = Score(name="s", value=0.5, scorer="scorer", version="1", settings="{}")
SAMPLE = PairSample(
    sample_id="d/v/000-001",
    dataset="d",
    split="train",
    source_id="v",
    caption_0="a red cup",
    caption_1="a blue cup",
    captions_0=("a red cup",),
    captions_1=("a blue cup", "a cup"),
    image_0_id="1" * 64,
    image_1_id="2" * 64,
    origin_0=ORIGIN,
    origin_1=ORIGIN,
    annotation="{}",
    changed_area_fraction=0.5,
    ssim=0.25,
    background_ssim=None,
    luminance_shift=0.0,
    phash_distance=3,
    word_edit_distance=1,
    edited_spans_0=(Span(start=2, end=5),),
    edited_spans_1=(Span(start=2, end=6),),
    scores=(SCORE,),
)
IMAGE = ImageRow(
    image_id="1" * 64,
    suffix=".jpg",
    width_px=2,
    height_px=3,
    num_bytes=4,
    phash="0" * 16,
    scores=(SCORE,),
)
REJECT = Reject(candidate_id="d/v/000", stage="frames", reason="face_found", value=1.5)
