from itertools import combinations
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from eqforge.core.identity import is_sampled
from eqforge.schemas.records.frames import Clip, FrameRequest, PairCandidate
from eqforge.schemas.records.stages import Reject, Tally
from eqforge.transforms.dataset.plan import (
    RECORDS_PER_FILE,
    Selection,
    copy_plan,
    read_plan,
    select,
    write_plan,
)


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


@given(limit=st.integers(0, 12))
def test_a_limit_takes_the_first_pairs_of_the_plan(limit: int) -> None:
    found = [pair for selected in select(CLIPS, Selection(limit=limit)) for pair in selected.pairs]

    assert found == [pair for whole in CLIPS for pair in whole.pairs][:limit]


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
