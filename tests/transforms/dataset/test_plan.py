from itertools import combinations
from pathlib import Path

import pytest
from apache_beam.testing import test_pipeline
from apache_beam.testing.util import assert_that, equal_to
from hypothesis import given
from hypothesis import strategies as st

from eqforge.core.errors import InputError
from eqforge.core.identity import is_sampled
from eqforge.schemas.records.books import Reject, Tally
from eqforge.schemas.records.frames import Clip, FrameRequest, PairCandidate
from eqforge.transforms.dataset.plan import (
    RECORDS_PER_FILE,
    Selection,
    copy_plan,
    read_plan,
    select,
    write_plan,
)
from eqforge.transforms.dataset.steps import ReadPlan


def clip(name: str, frames: int) -> Clip:
    """A clip with all pairs of some frames."""
    ids = [f"d/{name}/{number}" for number in range(frames)]
    return Clip(
        clip_id=name,
        video=f"{name}.mp4",
        split="train",
        frames=tuple(
            FrameRequest(frame_id=frame_id, timestamp_s=number + 0.1)
            for number, frame_id in enumerate(ids)
        ),
        pairs=tuple(
            PairCandidate(
                sample_id=f"{first}-{second[-1]}",
                frame_0_id=first,
                frame_1_id=second,
                caption_0="a \u2028 line",
                caption_1="b\r\n",
                captions_0=("a",),
                captions_1=("b",),
            )
            for first, second in combinations(ids, 2)
        ),
        rejects=(Reject(candidate_id=f"d/{name}/x", stage="s", reason="r", value=1),),
        tallies=(Tally(stage="s", candidates=frames + 1, kept=frames),),
    )


CLIPS = [clip("a", 3), clip("b", 0), clip("c", 4), clip("d", 2)]


def test_nothing_selected_selects_everything() -> None:
    assert list(select(CLIPS, Selection())) == CLIPS


def test_one_sample_comes_with_its_two_frames_and_nothing_of_other_clips() -> None:
    (found,) = select(CLIPS, Selection(only=("d/c/1-3",)))

    assert [pair.sample_id for pair in found.pairs] == ["d/c/1-3"]
    assert [frame.frame_id for frame in found.frames] == ["d/c/1", "d/c/3"]
    assert found.rejects == CLIPS[2].rejects


def test_a_sample_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="--only d/e/0-1: the plan contains no such sample"):
        list(select(CLIPS, Selection(only=("d/c/1-3", "d/e/0-1"))))


@given(limit=st.integers(0, 12))
def test_a_limit_takes_the_first_pairs_of_the_plan(limit: int) -> None:
    found = [pair for selected in select(CLIPS, Selection(limit=limit)) for pair in selected.pairs]

    assert found == [pair for whole in CLIPS for pair in whole.pairs][:limit]


def test_the_frames_of_a_limited_clip_are_those_its_pairs_need() -> None:
    *_, last = select(CLIPS, Selection(limit=4))

    assert [pair.sample_id for pair in last.pairs] == ["d/c/0-1"]
    assert [frame.frame_id for frame in last.frames] == ["d/c/0", "d/c/1"]


def test_a_share_takes_the_videos_whose_hash_falls_into_it() -> None:
    clips = [clip(f"v{number}", 2) for number in range(400)]
    tenth, half = (
        {found.clip_id for found in select(clips, Selection(sample=share))} for share in (0.1, 0.5)
    )

    assert tenth < half
    assert 20 <= len(tenth) <= 60
    assert 160 <= len(half) <= 240
    assert half == {found.clip_id for found in clips if is_sampled(found.clip_id, 0.5)}


def measure(record: Clip) -> dict[str, int]:
    return {"videos": 1, "pairs": len(record.pairs)}


def test_a_plan_comes_back_in_its_order_whatever_characters_it_holds(tmp_path: Path) -> None:
    clips = [clip(f"v{number}", number % 4) for number in range(2 * RECORDS_PER_FILE + 1)]

    plan = write_plan(clips, str(tmp_path / "plan"), measure)

    assert len(plan.files) == 3
    assert plan.records == len(clips)
    assert plan.counts == {"videos": len(clips), "pairs": sum(len(c.pairs) for c in clips)}
    copy = copy_plan(plan, str(tmp_path / "copy"))
    for found in (plan, copy):
        assert list(read_plan(Clip, found.files)) == clips
    assert all(file.startswith(str(tmp_path / "copy")) for file in copy.files)


def test_a_pipeline_reads_every_record_once(tmp_path: Path) -> None:
    plan = write_plan(CLIPS, str(tmp_path), measure)

    with test_pipeline.TestPipeline(runner="FnApiRunner") as root:
        assert_that(root | ReadPlan(plan.files, Clip), equal_to(CLIPS))


def test_a_pipeline_of_an_empty_plan_reads_nothing() -> None:
    with test_pipeline.TestPipeline(runner="FnApiRunner") as root:
        assert_that(root | ReadPlan((), Clip), equal_to([]))
