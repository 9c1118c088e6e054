from itertools import combinations, permutations
from math import comb

from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.schemas.records.frames import Clip
from eqforge.sources.captioned_videos import CaptionedSegment, CaptionedVideo
from eqforge.transforms.video.segments import MAX_SEGMENTS, SEGMENTS_STAGE, propose_segment_pairs

SETTINGS = CaptionSettings()


def segment(number: int, start_s: float, end_s: float, caption: str = "cut it") -> CaptionedSegment:
    return CaptionedSegment(
        segment_id=f"{number:03d}", start_s=start_s, end_s=end_s, caption=caption
    )


def video(*segments: CaptionedSegment) -> CaptionedVideo:
    return CaptionedVideo(
        video_id="v", video="v", split="training", annotation={"recipe_type": "7"},
        segments=segments,
    )  # fmt: skip


def check_counts(clip: Clip) -> None:
    (tally,) = clip.tallies
    names = [reject.candidate_id for reject in clip.rejects]
    assert len(set(names)) == len(names)
    assert tally.stage == SEGMENTS_STAGE.name
    assert tally.candidates == tally.kept + len(names)
    assert all(SEGMENTS_STAGE.may_reject_for(reject.reason) for reject in clip.rejects)


def test_a_frame_lies_in_the_middle_and_every_two_segments_are_a_pair() -> None:
    clip = propose_segment_pairs(
        "d", video(*(segment(n, 10 * n, 10 * n + 3) for n in range(4))), SETTINGS
    )

    assert [frame.timestamp_s for frame in clip.frames] == [1.5, 11.5, 21.5, 31.5]
    assert [pair.sample_id for pair in clip.pairs] == [
        f"d/v/{i:03d}-{j:03d}" for i, j in combinations(range(4), 2)
    ]
    assert clip.pairs[0].annotation == {"recipe_type": "7", "segment_0": "000", "segment_1": "001"}


def test_the_earlier_frame_is_the_first_whatever_the_order_of_the_segments() -> None:
    """Segments overlap: what counts is the middle, at which the frame is taken."""
    segments = [segment(0, 5, 7), segment(1, 0, 20), segment(2, 3, 3), segment(3, 6, 6)]
    plans = {
        repr(propose_segment_pairs("d", video(*order), SETTINGS))
        for order in permutations(segments)
    }
    assert len(plans) == 1
    clip = propose_segment_pairs("d", video(*segments), SETTINGS)
    assert [pair.sample_id.rpartition("/")[2] for pair in clip.pairs] == [
        "002-000", "002-003", "002-001", "000-003", "000-001", "003-001",
    ]  # fmt: skip
    times_s = {}
    for frame in clip.frames:
        assert frame.timestamp_s is not None
        times_s[frame.frame_id] = frame.timestamp_s
    assert all(times_s[pair.frame_0_id] <= times_s[pair.frame_1_id] for pair in clip.pairs)


@given(
    st.lists(
        st.tuples(
            st.floats(-5, 100),
            st.floats(-5, 100),
            st.sampled_from(["cut it", "", "a\x00b", "x" * 3000, "\ud800", " \u200b"]) | st.text(),
        ),
        max_size=12,
    )
)
def test_the_books_balance_whatever_is_annotated(rows: list[tuple[float, float, str]]) -> None:
    clip = propose_segment_pairs(
        "d", video(*(segment(n, *row) for n, row in enumerate(rows))), SETTINGS
    )

    check_counts(clip)
    (tally,) = clip.tallies
    assert tally.candidates == max(1, len(rows))
    assert tally.kept != 1
    assert len(clip.pairs) == comb(tally.kept, 2)
    assert len(clip.frames) == tally.kept
    good = [0 <= start <= end for start, end, _ in rows]
    assert sum(reject.reason == "bad_segment" for reject in clip.rejects) == good.count(False)


def test_ids_that_would_give_two_pairs_one_name_are_refused() -> None:
    odd = [
        CaptionedSegment(segment_id=name, start_s=0, end_s=1, caption=f"moment {name}")
        for name in ("x-y", "x", "z", "y-z")
    ]
    check_none_paired(propose_segment_pairs("d", video(*odd), SETTINGS), "ambiguous_ids", 4)


def test_more_segments_than_can_be_paired_are_refused() -> None:
    segments = [segment(n, n, n + 1) for n in range(MAX_SEGMENTS + 1)]
    clip = propose_segment_pairs("d", video(*segments), SETTINGS)
    check_none_paired(clip, "too_many_moments", MAX_SEGMENTS + 1)
    clip = propose_segment_pairs("d", video(*segments[1:]), SETTINGS)
    assert len(clip.pairs) == comb(MAX_SEGMENTS, 2)


def check_none_paired(clip: Clip, reason: str, number: int) -> None:
    """Every segment has this reason, and the counts add up."""
    assert (clip.frames, clip.pairs) == ((), ())
    assert [reject.reason for reject in clip.rejects] == [reason] * number
    check_counts(clip)
