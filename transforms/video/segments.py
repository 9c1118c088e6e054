"""Proposes pairs of captioned segments: Eq-YouCook2 and any other captioned videos."""

from collections.abc import Sequence
from itertools import combinations

from eqforge.generators.text.caption_lint import CAPTION_REASONS, CaptionSettings, lint_caption
from eqforge.schemas.records.frames import Clip, FrameRequest, PairCandidate
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject, Stage
from eqforge.sources.captioned_videos import CaptionedSegment, CaptionedVideo

SEGMENTS_STAGE = Stage(
    "segments",
    {
        "bad_segment": "The record lacks a caption or a valid time, or its end is before its "
        "start.",
        "duplicate_moment": "Another record of the video has the same id, or the same time and "
        "caption.",
        "too_few_moments": "The video has fewer than two usable captioned frames.",
        "too_many_moments": "The video has more than 500 usable captioned frames. Pass fewer "
        "captions, or split the video.",
        "ambiguous_ids": "Hyphens in segment ids would make two pair ids identical. "
        "Rename the segments.",
        **CAPTION_REASONS,
    },
)
# This gives 124,750 pairs; YouCook2 has at most 16 segments per video.
MAX_SEGMENTS = 500
TOO_FEW = Rejection(reason="too_few_moments", threshold=2)


def propose_segment_pairs(dataset: str, video: CaptionedVideo, captions: CaptionSettings) -> Clip:
    """Plan the middle frame of every usable segment and all pairs of them, the earlier one first.

    A video with a single usable segment gives no pair; the segment is rejected.

    Source: EqBen, section 4.1 and appendix B.3.
    """
    root = f"{dataset}/{video.video_id}"
    usable = []
    rejects = [
        _reject(
            root, video, record.record_id, Rejection(reason=record.reason, detail=record.detail)
        )
        for record in video.refused
    ]
    for segment in sorted(video.segments, key=_place):
        rejection = _refuse(segment, captions)
        if rejection is None:
            usable.append(segment)
        else:
            rejects.append(_reject(root, video, segment.segment_id, rejection))
    kept = usable
    if unpaired := _refuse_all(usable):
        rejects += [_reject(root, video, each.segment_id, unpaired) for each in usable]
        rejects = rejects or [_reject(root, video, None, unpaired)]
        kept = []
    pairs = tuple(_pair(root, video, first, second) for first, second in combinations(kept, 2))
    candidates = len(kept) + len(rejects)
    return Clip(
        clip_id=video.video_id,
        video=video.video,
        split=video.split,
        licence=video.licence,
        root=root,
        frames=tuple(
            FrameRequest(
                frame_id=f"{root}/{segment.segment_id}",
                timestamp_s=_middle_s(segment) if segment.frame_index is None else None,
                frame_index=segment.frame_index,
            )
            for segment in kept
        ),
        pairs=pairs,
        rejects=tuple(rejects),
        tallies=(SEGMENTS_STAGE.tally(candidates, len(kept)),),
    )


def _place(segment: CaptionedSegment) -> tuple[float, float, float, float, str]:
    """Return the sort key of a segment: the number or time of its frame first."""
    at = segment.frame_index or 0, _middle_s(segment)
    return *at, segment.start_s, segment.end_s, segment.segment_id


def _refuse(segment: CaptionedSegment, captions: CaptionSettings) -> Rejection | None:
    if not 0 <= segment.start_s <= segment.end_s:
        return Rejection(
            reason="bad_segment", detail=f"from {segment.start_s} s to {segment.end_s} s"
        )
    return lint_caption(segment.caption, captions)


def _refuse_all(usable: Sequence[CaptionedSegment]) -> Rejection | None:
    """Return why no segment of a video can be paired, None where all can."""
    if len(usable) < 2:
        return TOO_FEW
    if len(usable) > MAX_SEGMENTS:
        return Rejection(reason="too_many_moments", value=len(usable), threshold=MAX_SEGMENTS)
    names = [f"{a.segment_id}-{b.segment_id}" for a, b in combinations(usable, 2)]
    return Rejection(reason="ambiguous_ids") if len({*names}) != len(names) else None


def _reject(
    root: str, video: CaptionedVideo, record_id: str | None, rejection: Rejection
) -> Reject:
    name = root if record_id is None else f"{root}/{record_id}"
    return SEGMENTS_STAGE.reject(name, rejection, source_id=video.video_id)


def _middle_s(segment: CaptionedSegment) -> float:
    return (segment.start_s + segment.end_s) / 2


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
        annotation=video.annotation | _of_side(first, "0") | _of_side(second, "1"),
    )


def _of_side(segment: CaptionedSegment, side: str) -> dict[str, str]:
    labels = segment.annotation | {"segment": segment.segment_id}
    return {f"{name}_{side}": text for name, text in labels.items()}
