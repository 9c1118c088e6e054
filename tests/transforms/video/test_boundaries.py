from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.schemas.records.frames import Clip
from eqforge.sources.captioned_videos import Boundary, BoundaryVideo
from eqforge.transforms.video.boundaries import (
    BOUNDARIES_STAGE,
    BoundaryRules,
    propose_boundary_pairs,
)

PAPER = BoundaryRules(
    dataset="d",
    split="val",
    action_words=("up", "down"),
    with_subject=False,
    at_middle=False,
    captions=CaptionSettings(max_tokens=None),
)
CORRECTED = replace(PAPER, with_subject=True, at_middle=True)


def boundary(number: int, annotator: str = "A", **changes: Any) -> Boundary:
    """A boundary at 10 s, 20 s, ...; its statuses differ from all others'."""
    found = Boundary(
        boundary_id=f"v_{number}{annotator}",
        number=number,
        annotator=annotator,
        timestamp_s=10.0 * (number + 1),
        prev_timestamp_s=10.0 * number,
        next_timestamp_s=10.0 * (number + 2),
        label="Change of Action",
        subject="man",
        status_before=f"sits {number} {annotator}",
        status_after=f"stands {number} {annotator}",
    )
    return replace(found, **changes)


def propose(boundaries: Sequence[Boundary], rules: BoundaryRules = PAPER) -> Clip:
    ordered = sorted(boundaries, key=lambda found: (found.number, found.annotator))
    return propose_boundary_pairs(BoundaryVideo(video_id="v", boundaries=tuple(ordered)), rules)


def pairs(clip: Clip) -> list[str]:
    return [pair.sample_id.removeprefix("d/v/") for pair in clip.pairs]


def reasons(clip: Clip) -> dict[str, str]:
    return {reject.candidate_id.removeprefix("d/v/"): reject.reason for reject in clip.rejects}


def test_one_boundary_is_skipped_and_each_serves_once() -> None:
    clip = propose([boundary(number) for number in range(5)])

    assert pairs(clip) == ["000A-001A", "002A-003A"]
    assert reasons(clip) == {"004A": "no_next_boundary"}
    first = clip.pairs[0]
    assert (first.caption_0, first.caption_1) == ("sits 0 A", "stands 1 A")
    # A second before the first boundary, and after the second one.
    assert [frame.timestamp_s for frame in clip.frames[:2]] == [9.0, 21.0]


def test_corrected_captions_have_their_subject() -> None:
    clip = propose([boundary(0), boundary(1, subject="")], CORRECTED)

    assert (clip.pairs[0].caption_0, clip.pairs[0].caption_1) == ("man sits 0 A", "stands 1 A")


@pytest.mark.parametrize(
    ("stretch_s", "paper_s", "corrected_s"), [(0.5, 0.5, 0.25), (1.5, 1.0, 0.75), (8.0, 1.0, 1.0)]
)
def test_a_frame_lies_within_its_stretch(
    stretch_s: float, paper_s: float, corrected_s: float
) -> None:
    near = [
        boundary(0, prev_timestamp_s=10.0 - stretch_s),
        boundary(1, next_timestamp_s=20.0 + stretch_s),
    ]
    for rules, distance_s in ((PAPER, paper_s), (CORRECTED, corrected_s)):
        before, after = propose(near, rules).frames
        assert before.timestamp_s == pytest.approx(10.0 - distance_s)
        assert after.timestamp_s == pytest.approx(20.0 + distance_s)


def test_after_a_refusal_the_next_boundary_opens_a_pair() -> None:
    found = [boundary(0, status_before="jumps UP"), boundary(1), boundary(2), boundary(3)]

    clip = propose(found)

    assert pairs(clip) == ["001A-002A"]
    assert reasons(clip) == {"000A": "action_word", "003A": "no_next_boundary"}


def test_a_gap_in_the_numbers_is_no_next_boundary() -> None:
    assert reasons(propose([boundary(0), boundary(2)])) == dict.fromkeys(
        ["000A", "002A"], "no_next_boundary"
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"status_before": "turns around\x00"}, "control_characters"),
        ({"status_before": " "}, "empty_caption"),
        ({"status_before": "stands 1 A"}, "equal_captions"),
        ({"status_before": "goes down."}, "action_word"),
        ({"prev_timestamp_s": 10.0}, "bad_order"),
        ({"timestamp_s": 30.0}, "bad_order"),
        ({"label": "\ud800"}, "control_characters"),
        ({"subject": "man\x07"}, "control_characters"),
        ({"label": "x" * 10_000_000}, "caption_too_long_chars"),
    ],
)
def test_a_boundary_is_refused_for_what_cannot_be_a_sample(
    changes: dict[str, Any], reason: str
) -> None:
    clip = propose([boundary(0, **changes), boundary(1)])

    assert reasons(clip)["000A"] == reason
    assert len(msgspec.json.encode(clip)) < 10_000  # it goes to the workers as JSON


@given(
    numbers=st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from("ABC")), max_size=15, unique=True
    ),
    words=st.lists(
        st.sampled_from(["sits", "goes up", "", "stands", "a\x01"]), min_size=30, max_size=30
    ),
    corrected=st.booleans(),
)
def test_the_books_balance_whatever_is_annotated(
    numbers: list[tuple[int, str]], words: list[str], corrected: bool
) -> None:
    found = [
        boundary(number, annotator, status_before=words[2 * n], status_after=words[2 * n + 1])
        for n, (number, annotator) in enumerate(numbers)
    ]
    clip = propose(found, CORRECTED if corrected else PAPER)

    (tally,) = clip.tallies
    if not found:
        assert (tally.candidates, tally.kept, clip.pairs) == (1, 0, ())
        assert [(reject.candidate_id, reject.reason) for reject in clip.rejects] == [
            ("d/v", "too_few_moments")
        ]
        return
    assert (tally.stage, tally.candidates) == (BOUNDARIES_STAGE.name, len(found))
    used = [pair.annotation[f"boundary_{side}"] for pair in clip.pairs for side in (0, 1)]
    assert len(set(used)) == len(used) == tally.kept
    refused = {f"v_{int(name[:3])}{name[3:]}" for name in reasons(clip)}
    assert len(refused) == len(clip.rejects) == tally.candidates - tally.kept
    assert refused | set(used) == {boundary.boundary_id for boundary in found}
    assert all(BOUNDARIES_STAGE.may_reject_for(reason) for reason in reasons(clip).values())
    assert len({frame.frame_id for frame in clip.frames}) == len(clip.frames) == len(used)
