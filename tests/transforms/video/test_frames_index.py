"""What of a stream is decoded for which frames, on an index written down by hand."""

import pytest

from eqforge.transforms.video.frames.index import PacketEntry, PacketIndex, Run, plan_runs

# Two closed groups and an open one, in decoding order: I P B b, I P b, then a keyframe at 9
# whose leading pictures 7 and 8 are decoded after it.
PTS = [0, 3, 1, 2, 4, 6, 5, 9, 7, 8, 10]
KEYS = {0, 4, 9}


def index_of(pts: list[int], keys: set[int], hidden: frozenset[int] = frozenset()) -> PacketIndex:
    entries = [
        PacketEntry(
            pts=10 * p, dts=10 * (n - 1), is_key=p in keys, is_shown=p not in hidden, duration=10
        )
        for n, p in enumerate(pts)
    ]
    return PacketIndex(entries)


INDEX = index_of(PTS, KEYS)


def test_a_frame_answers_from_its_pts_until_the_next() -> None:
    asked = [-1, 0, 9, 10, 55, 109, 10**9]
    assert [INDEX.frame_at(tick) for tick in asked] == [None, 0, 0, 10, 50, 100, 100]
    assert INDEX.end == 110


def test_frames_are_numbered_as_they_are_shown() -> None:
    assert [INDEX.rank(10 * pts) for pts in range(11)] == list(range(11))


def test_hidden_frames_are_neither_numbered_nor_found() -> None:
    index = index_of(PTS, KEYS, hidden=frozenset({0, 1}))
    assert index.frame_at(15) is None
    assert index.rank(20) == 0
    assert index.start_of(20) == 0


def test_a_frame_without_a_length_lasts_as_its_predecessor() -> None:
    entries = [PacketEntry(pts, pts, True, True, 0) for pts in (0, 10, 40)]
    assert PacketIndex(entries).end == 70
    assert PacketIndex(entries[:1], frame_ticks=25).end == 25


@pytest.mark.parametrize(
    ("pts", "start"), [(0, 0), (3, 0), (2, 0), (4, 4), (6, 4), (9, 7), (10, 7), (7, 4), (8, 4)]
)
def test_decoding_starts_at_the_last_keyframe_shown_before(pts: int, start: int) -> None:
    assert INDEX.start_of(10 * pts) == start


def test_the_reorder_depth_is_the_most_packets_that_wait() -> None:
    assert INDEX.reorder_depth == 1
    assert index_of([0, 1, 2, 3], {0}).reorder_depth == 0
    assert index_of([0, 8, 4, 2, 1, 3, 6, 5, 7], {0}).reorder_depth == 3


def test_frames_of_one_group_are_one_run_that_ends_with_the_last_needed() -> None:
    assert list(plan_runs(INDEX, {20, 10})) == [Run(0, 3, frozenset({10, 20}))]
    assert list(plan_runs(INDEX, {30})) == [Run(0, 1, frozenset({30}))]


def test_a_run_goes_on_over_a_short_stretch_and_jumps_a_long_one() -> None:
    assert list(plan_runs(INDEX, {0, 100})) == [
        Run(0, 0, frozenset({0})),
        Run(7, 10, frozenset({100})),
    ]
    assert list(plan_runs(INDEX, {0, 40})) == [Run(0, 4, frozenset({0, 40}))]
    assert list(plan_runs(INDEX, {0, 40}, min_skipped=3)) == [
        Run(0, 0, frozenset({0})),
        Run(4, 4, frozenset({40})),
    ]


def test_frames_of_one_group_stay_together_however_little_may_be_skipped() -> None:
    assert list(plan_runs(INDEX, {0, 20, 40, 60}, min_skipped=-100)) == [
        Run(0, 3, frozenset({0, 20})),
        Run(4, 5, frozenset({40, 60})),
    ]


def test_an_index_with_two_frames_at_one_time_or_none_at_its_start_is_not_sound() -> None:
    assert INDEX.is_sound
    assert not index_of([0, 1, 1], {0}).is_sound
    assert not index_of([0, 1], {1}).is_sound
    assert not PacketIndex([]).is_sound
    assert not PacketIndex([PacketEntry(None, 0, True, True, 1)]).is_sound


def test_where_packets_are_missing_at_the_end_only_what_was_decoded_before_is_known() -> None:
    cut = PacketIndex(INDEX.entries[:8], "cut off")  # the last is 9; 7 and 8 are missing
    assert cut.known_until == 60
