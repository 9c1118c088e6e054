"""Proposes pairs of frames around event boundaries, for Eq-GEBC and for boundary grounding."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from eqforge.generators.text.caption_lint import (
    CAPTION_PAIR_REASONS,
    CAPTION_REASONS,
    CaptionSettings,
    lint_caption,
    lint_pair,
)
from eqforge.generators.text.words import find_words
from eqforge.schemas.records.frames import Clip, FrameRequest, PairCandidate
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject, Stage
from eqforge.sources.captioned_videos import Boundary, BoundaryVideo

BOUNDARIES_STAGE = Stage(
    "boundaries",
    {
        "other_annotator": "eqforge used another annotator's record of the same boundary.",
        "no_next_boundary": "The annotations do not contain the next boundary.",
        "too_few_moments": "The video has no annotation.",
        "bad_order": "The previous, current and next boundaries are not in chronological order.",
        **CAPTION_REASONS,
        "action_word": "The caption contains an action word (--action-words), which describes a "
        "change that no single image can show.",
        **CAPTION_PAIR_REASONS,
    },
)
FARTHEST_S = 1.0
GROUNDING_FPS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundaryRules:
    """How boundaries become pairs.

    Attributes:
      action_words: words whose captions are dropped, in lower case.
      with_subject: whether a caption is subject and status, or the status alone.
      at_middle: whether a frame lies in the middle of its stretch, at most FARTHEST_S from the
        boundary, or FARTHEST_S from the boundary but within the stretch, as GEB+'s features do.
    """

    dataset: str
    split: str
    action_words: tuple[str, ...]
    with_subject: bool
    at_middle: bool
    captions: CaptionSettings


def propose_boundary_pairs(video: BoundaryVideo, rules: BoundaryRules) -> Clip:
    """Plan pairs of the frame before a boundary and the frame after the next one.

    One boundary is skipped between the two frames, which widens the gap in meaning; each boundary
    serves in one pair. Of several annotators the first in the alphabet counts.

    Source: EqBen, section 4.1 ("sparse sampling across multiple boundaries") and appendix B.2.
    """
    chosen, rejects = _choose(video, rules)
    pairs: list[tuple[Boundary, Boundary]] = []
    used: set[int] = set()
    for number in sorted(chosen):
        if number in used:
            continue
        first, second = chosen[number], chosen.get(number + 1)
        rejection = _refuse(first, second, rules)
        if rejection is None and second is not None:
            pairs.append((first, second))
            used |= {number, number + 1}
        elif rejection is not None:
            rejects.append(_reject(rules, first, rejection))
    frames = [frame for pair in pairs for frame in _frames(rules, *pair)]
    candidates = [_candidate(rules, *pair) for pair in pairs]
    return _clip(video, rules, frames, candidates, rejects, 2 * len(pairs))


def propose_adjacent_pairs(video: BoundaryVideo, rules: BoundaryRules) -> Clip:
    """Plan every two adjacent frames of a video, 5 frames a second, for each of its boundaries.

    Their captions are what the boundary separates. The boundary is where the first frame matches
    the caption before, and the second the caption after, best. Of several annotators the first in
    the alphabet counts.

    Source: EqBen, appendix A.6.
    """
    chosen, rejects = _choose(video, rules)
    root = f"{rules.dataset}/{video.video_id}"
    end_s = max((boundary.next_timestamp_s for boundary in chosen.values()), default=0.0)
    frames = [
        FrameRequest(frame_id=f"{root}/{number:05d}", timestamp_s=number / GROUNDING_FPS)
        for number in range(int(end_s * GROUNDING_FPS) + 1)
    ]
    pairs: list[PairCandidate] = []
    grounded = 0
    for boundary in chosen.values():
        before, after = _captions(rules, boundary, boundary)
        rejection = next(_caption_rejections(before, after, rules), None)
        if rejection is not None:
            rejects.append(_reject(rules, boundary, rejection))
            continue
        grounded += 1
        about = {"boundary": boundary.boundary_id, "boundary_s": str(boundary.timestamp_s)}
        pairs += [
            _pair(f"{root}/{_short(boundary)}-{number:05d}", two, (before, after), about)
            for number, two in enumerate(pairwise(frames))
        ]
    return _clip(video, rules, frames if pairs else [], pairs, rejects, grounded)


def _choose(video: BoundaryVideo, rules: BoundaryRules) -> tuple[dict[int, Boundary], list[Reject]]:
    """Return the boundary to use for each number, and a reject for each other one."""
    chosen = {boundary.number: boundary for boundary in reversed(video.boundaries)}
    others = [found for found in video.boundaries if chosen[found.number] is not found]
    return chosen, [_reject(rules, other, Rejection(reason="other_annotator")) for other in others]


def _clip(
    video: BoundaryVideo,
    rules: BoundaryRules,
    frames: list[FrameRequest],
    pairs: list[PairCandidate],
    rejects: list[Reject],
    used: int,
) -> Clip:
    root = f"{rules.dataset}/{video.video_id}"
    if not video.boundaries:
        too_few = Rejection(reason="too_few_moments")
        rejects.append(BOUNDARIES_STAGE.reject(root, too_few, source_id=video.video_id))
    return Clip(
        clip_id=video.video_id,
        video=video.video_id,
        split=rules.split,
        root=root,
        frames=tuple(frames),
        pairs=tuple(pairs),
        rejects=tuple(sorted(rejects, key=lambda reject: reject.candidate_id)),
        tallies=(BOUNDARIES_STAGE.tally(max(1, len(video.boundaries)), used),),
    )


def _refuse(first: Boundary, second: Boundary | None, rules: BoundaryRules) -> Rejection | None:
    if second is None:
        return Rejection(reason="no_next_boundary")
    for boundary in (first, second):
        if not boundary.prev_timestamp_s < boundary.timestamp_s < boundary.next_timestamp_s:
            return Rejection(reason="bad_order", detail=boundary.boundary_id)
    before, after = _captions(rules, first, second)
    if (found := next(_caption_rejections(before, after, rules), None)) is not None:
        return found
    limits = replace(rules.captions, max_tokens=None)
    for boundary in (first, second):
        for text in (boundary.label, boundary.subject):  # which stand in the annotation
            found = lint_caption(text, limits)
            if found is not None and found.reason != "empty_caption":
                return found
    return None


def _caption_rejections(before: str, after: str, rules: BoundaryRules) -> Iterator[Rejection]:
    for caption in (before, after):
        if (rejection := lint_caption(caption, rules.captions)) is not None:
            yield rejection
        if found := find_words(caption, rules.action_words):
            start, _, word = found[0]
            yield Rejection(reason="action_word", detail=f"{word!r} at character {start}")
    if (rejection := lint_pair(before, after)) is not None:
        yield rejection


def _captions(rules: BoundaryRules, first: Boundary, second: Boundary) -> tuple[str, str]:
    if not rules.with_subject:
        return first.status_before, second.status_after
    return (
        f"{first.subject} {first.status_before}".strip(),
        f"{second.subject} {second.status_after}".strip(),
    )


def _reject(rules: BoundaryRules, boundary: Boundary, rejection: Rejection) -> Reject:
    video_id = boundary.boundary_id.rpartition("_")[0]
    name = f"{rules.dataset}/{video_id}/{_short(boundary)}"
    return BOUNDARIES_STAGE.reject(name, rejection, source_id=video_id)


def _short(boundary: Boundary) -> str:
    return f"{boundary.number:03d}{boundary.annotator}"


def _frames(
    rules: BoundaryRules, first: Boundary, second: Boundary
) -> tuple[FrameRequest, FrameRequest]:
    before_s = _time_near(first.timestamp_s, first.prev_timestamp_s, rules.at_middle)
    after_s = _time_near(second.timestamp_s, second.next_timestamp_s, rules.at_middle)
    root = f"{rules.dataset}/{first.boundary_id.rpartition('_')[0]}"
    return (
        FrameRequest(frame_id=f"{root}/{_short(first)}-before", timestamp_s=before_s),
        FrameRequest(frame_id=f"{root}/{_short(second)}-after", timestamp_s=after_s),
    )


def _time_near(boundary_s: float, neighbour_s: float, at_middle: bool) -> float:
    stretch_s = abs(neighbour_s - boundary_s)
    distance_s = min(stretch_s / 2 if at_middle else stretch_s, FARTHEST_S)
    return boundary_s + (distance_s if neighbour_s > boundary_s else -distance_s)


def _candidate(rules: BoundaryRules, first: Boundary, second: Boundary) -> PairCandidate:
    frames = _frames(rules, first, second)
    root = frames[0].frame_id.rpartition("/")[0]
    about = {
        "boundary_0": first.boundary_id,
        "boundary_1": second.boundary_id,
        "label_0": first.label,
        "label_1": second.label,
        "subject_0": first.subject,
        "subject_1": second.subject,
    }
    sample_id = f"{root}/{_short(first)}-{_short(second)}"
    return _pair(sample_id, frames, _captions(rules, first, second), about)


def _pair(
    sample_id: str,
    frames: tuple[FrameRequest, FrameRequest],
    captions: tuple[str, str],
    annotation: dict[str, str],
) -> PairCandidate:
    return PairCandidate(
        sample_id=sample_id,
        frame_0_id=frames[0].frame_id,
        frame_1_id=frames[1].frame_id,
        caption_0=captions[0],
        caption_1=captions[1],
        captions_0=captions[:1],
        captions_1=captions[1:],
        annotation=annotation,
    )
