"""Pairs of captioned segments: Eq-YouCook2, and the same construction for any captioned videos."""

from itertools import combinations
from math import comb

from eqforge.generators.text.caption_lint import CaptionSettings, lint_caption
from eqforge.schemas.captioned_videos import CaptionedSegment, CaptionedVideo
from eqforge.schemas.clips import Clip, PairCandidate, Tally
from eqforge.schemas.errors import InputError
from eqforge.schemas.frames import FrameRequest
from eqforge.schemas.tables import Reject

STAGE = "segments"
# 124,750 pairs; YouCook2 has at most 16 segments in a video.
MAX_SEGMENTS = 500


def propose_segment_pairs(dataset: str, video: CaptionedVideo, captions: CaptionSettings) -> Clip:
    """Plans the middle frame of every usable segment and all pairs i < j of them.

    Source: EqBen, section 4.1 and appendix B.3.
    """
    root = f"{dataset}/{video.video_id}"
    rejects = {
        segment.segment_id: reject
        for segment in video.segments
        if (reject := _reject_segment(root, video, segment, captions)) is not None
    }
    kept = [segment for segment in video.segments if segment.segment_id not in rejects]
    if len(kept) > MAX_SEGMENTS:
        raise InputError(
            f"{video.video_id}: {len(kept)} captioned segments, which make {comb(len(kept), 2):,} "
            f"pairs; at most {MAX_SEGMENTS} segments of one video are paired: thin them out"
        )
    pairs = tuple(_pair(root, video, first, second) for first, second in combinations(kept, 2))
    if len({pair.sample_id for pair in pairs}) != len(pairs):
        raise InputError(
            f"{video.video_id}: two pairs of segments have the same id, because segment ids hold "
            "hyphens; rename them"
        )
    return Clip(
        clip_id=video.video_id,
        video=video.video,
        split=video.split,
        licence=video.licence,
        frames=tuple(_middle_frame(root, segment) for segment in kept) if pairs else (),
        pairs=pairs,
        rejects=tuple(rejects.values()),
        tallies=(Tally(stage=STAGE, candidates=len(video.segments), kept=len(kept)),),
    )


def _reject_segment(
    root: str, video: CaptionedVideo, segment: CaptionedSegment, captions: CaptionSettings
) -> Reject | None:
    candidate_id = f"{root}/{segment.segment_id}"
    if not 0 <= segment.start_s <= segment.end_s:
        return Reject(
            candidate_id=candidate_id,
            stage=STAGE,
            reason="bad_segment",
            detail=f"from {segment.start_s} s to {segment.end_s} s",
            source_id=video.video_id,
        )
    rejection = lint_caption(segment.caption, captions)
    if rejection is None:
        return None
    return Reject(
        candidate_id=candidate_id,
        stage=STAGE,
        reason=rejection.reason,
        value=rejection.value,
        threshold=rejection.threshold,
        detail=rejection.detail,
        source_id=video.video_id,
    )


def _middle_frame(root: str, segment: CaptionedSegment) -> FrameRequest:
    middle_s = (segment.start_s + segment.end_s) / 2
    return FrameRequest(frame_id=f"{root}/{segment.segment_id}", timestamp_s=middle_s)


def _pair(
    root: str, video: CaptionedVideo, first: CaptionedSegment, second: CaptionedSegment
) -> PairCandidate:
    return PairCandidate(
        sample_id=f"{root}/{first.segment_id}-{second.segment_id}",
        frame_0_id=f"{root}/{first.segment_id}",
        frame_1_id=f"{root}/{second.segment_id}",
        caption_0=first.caption,
        caption_1=second.caption,
        captions_0=(first.caption,),
        captions_1=(second.caption,),
        annotation=video.annotation
        | {"segment_0": first.segment_id, "segment_1": second.segment_id},
    )
