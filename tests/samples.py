"""One record of each table, to be changed with dataclasses.replace."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from eqforge.schemas.records.frames import PairCandidate, StoredFrame
from eqforge.schemas.records.scenes import RenderedObject
from eqforge.schemas.records.scores import Score
from eqforge.schemas.records.stages import Reject
from eqforge.schemas.records.values import PixelBox, Span
from eqforge.schemas.tables.generated import Generation, MaskRow, RenderedSample
from eqforge.schemas.tables.pairs import ImageRow, Origin, PairSample
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.video.clip_work import KeptFrame

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
    phash="0" * 48,
    scores=(SCORE,),
)
REJECT = Reject(candidate_id="d/v/000", stage="frames", reason="face_found", value=1.5)
OBJECT = RenderedObject(
    name="mug",
    asset="mug",
    box=PixelBox(x=1, y=2, width=3, height=4),
    visible_px=10,
    full_px=12,
    visible_fraction=10 / 12,
    depth_m=5.5,
)
RENDERED = RenderedSample(
    sample_id="eq-kubric/attribute/000001",
    dataset="eq-kubric",
    split="test",
    source_id="attribute/000001",
    kind="attribute",
    change="colour",
    caption_0="The red mug is on the floor.",
    caption_1="The blue mug is on the floor.",
    captions_0=("The red mug is on the floor.",),
    captions_1=("The blue mug is on the floor.",),
    image_0_id="1" * 64,
    image_1_id="2" * 64,
    mask_0_id="3" * 64,
    mask_1_id=None,
    generation=Generation(
        generator="kubric",
        version="2023.12.27",
        model=None,
        revision=None,
        device="cpu",
        seed=2**40,
        parameters="{}",
    ),
    spec_0="{}",
    spec_1="{}",
    objects_0=(OBJECT, replace(OBJECT, name="bowl", box=None, visible_px=0, visible_fraction=0.0)),
    objects_1=(),
    changed_area_fraction=0.05,
    ssim=0.95,
    background_ssim=1.0,
    luminance_shift=-0.5,
    phash_distance=2,
    word_edit_distance=1,
    edited_spans_0=(Span(start=4, end=7),),
    edited_spans_1=(Span(start=4, end=8),),
    scores=(SCORE,),
)
MASK = MaskRow(mask_id="3" * 64, suffix=".png", width_px=2, height_px=3, num_bytes=4)


def kept_frame(
    media: MediaStore, frame_id: str, data: bytes, size: tuple[int, int], time_s: int = 0
) -> KeptFrame:
    """A frame whose picture is put into a store; it was shown at a whole second."""
    suffix = ".png" if data.startswith(b"\x89PNG") else ".jpg"
    image_id = media.put(data, suffix)
    stored = StoredFrame(
        frame_id=frame_id,
        image_id=image_id,
        suffix=suffix,
        width_px=size[0],
        height_px=size[1],
        num_bytes=len(data),
        requested_timestamp_s=time_s + 0.5,
        timestamp_s=float(time_s),
        pts=time_s,
        time_base="1/1",
        frame_index=time_s,
        rotation_deg=0,
    )
    return KeptFrame(stored=stored, image=replace(IMAGE, image_id=image_id, suffix=suffix))


def all_pairs(root: str, captions: Sequence[str]) -> tuple[PairCandidate, ...]:
    """Every two of a clip's frames, each with a caption."""
    return tuple(
        PairCandidate(
            sample_id=f"{root}/{i}-{j}",
            frame_0_id=f"{root}/{i}",
            frame_1_id=f"{root}/{j}",
            caption_0=captions[i],
            caption_1=captions[j],
            captions_0=(captions[i],),
            captions_1=(captions[j],),
            annotation={"j": str(j), "i": str(i)},
        )
        for i, j in combinations(range(len(captions)), 2)
    )
