import random
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.schemas.records.frames import Clip
from eqforge.sources.action_genome import AnnotatedFrame, FrameObject, SceneGraphVideo
from eqforge.transforms.video.scene_graphs import (
    OBJECTS_STAGE,
    SceneGraphRules,
    Sight,
    choose_pairs,
    propose_scene_graph_pairs,
)

RULES = SceneGraphRules(dataset="d", min_changed_relations=2, skip_frames=1, english=True)
STATES = {
    "a": (("looking_at",), ("in_front_of",), ("holding",)),
    "b": (("not_looking_at",), ("behind",), ("holding",)),
    "c": (("not_looking_at",), ("in_front_of",), ("sitting_on",)),
    "d": (("looking_at",), ("in_front_of",), ("touching",)),  # only one kind away from a
}


def thing(state: str, name: str = "cup/glass/bottle", visible: bool = True) -> FrameObject:
    attention, spatial, contacting = STATES[state]
    return FrameObject(
        name=name,
        box_xywh=(1.0, 2.0, 3.0, 4.0) if visible else None,
        attention=attention if visible else (),
        spatial=spatial if visible else (),
        contacting=contacting if visible else (),
        visible=visible,
        subset="train",
    )


def video(*frames: tuple[FrameObject, ...]) -> SceneGraphVideo:
    return SceneGraphVideo(
        video="V.mp4",
        frames=tuple(
            AnnotatedFrame(number=10 * n + 1, person_boxes_xyxy=None, objects=objects)
            for n, objects in enumerate(frames)
        ),
    )


def propose(*frames: tuple[FrameObject, ...], rules: SceneGraphRules = RULES) -> Clip:
    clip = propose_scene_graph_pairs(video(*frames), rules)
    (tally,) = clip.tallies
    names = [reject.candidate_id for reject in clip.rejects]
    assert len(set(names)) == len(names)
    assert tally.stage == OBJECTS_STAGE.name
    assert tally.candidates == max(1, sum(map(len, frames))) == tally.kept + len(names)
    assert all(OBJECTS_STAGE.may_reject_for(reject.reason) for reject in clip.rejects)
    return clip


def reasons(clip: Clip) -> dict[str, str]:
    return {reject.candidate_id.removeprefix("d/V.mp4/"): reject.reason for reject in clip.rejects}


def sights(states: str) -> list[Sight]:
    return [
        Sight(
            number=number,
            relations=dict(zip(("attention", "spatial", "contacting"), STATES[state], strict=True)),
            captions=("c",),
        )
        for number, state in enumerate(states)
    ]


@pytest.mark.parametrize(
    ("states", "skip", "expected"),
    [
        ("ab", 1, [(0, 1)]),
        ("ad", 1, []),
        ("aabb", 0, [(0, 2), (0, 3), (1, 2), (1, 3)]),
        ("aabb", 1, [(0, 2)]),  # 1 and 3 lie just behind chosen frames
        ("abbb", 1, [(0, 1), (0, 3)]),  # the appendix: 2 is too similar to 1, move to 3
        ("aabb", 3, [(0, 2)]),
        ("aaab", 1, [(0, 3), (2, 3)]),  # and not (1, 3) beside (0, 3)
        ("aaabbbcc", 1, [(0, 3), (0, 5), (0, 7), (2, 3), (2, 5), (2, 7), (5, 7)]),
        ("aaabbbcc", 2, [(0, 3), (0, 6), (3, 6)]),
        ("abac", 1, [(0, 1), (0, 3)]),  # 1 serves already, and is skipped nevertheless
    ],
)
def test_frames_after_a_chosen_one_are_skipped(
    states: str, skip: int, expected: list[tuple[int, int]]
) -> None:
    found = choose_pairs(sights(states), 2, skip)
    assert [(first.number, second.number) for first, second in found] == expected


@given(states=st.text("abcd", max_size=14), skip=st.integers(0, 3), least=st.integers(1, 3))
def test_what_is_chosen_differs_enough_and_nothing_more_could_be(
    states: str, skip: int, least: int
) -> None:
    def changed(i: int, j: int) -> int:
        return sum(
            one != two for one, two in zip(STATES[states[i]], STATES[states[j]], strict=True)
        )

    found = {(a.number, b.number) for a, b in choose_pairs(sights(states), least, skip)}

    assert all(i < j and changed(i, j) >= least for i, j in found)
    if skip == 0:
        every = combinations(range(len(states)), 2)
        assert found == {(i, j) for i, j in every if changed(i, j) >= least}
    # Of every two pairs that share a frame, the others lie further apart than what is skipped.
    near = [
        (one, two)
        for one, two in combinations(sorted(found), 2)
        for step in range(1, skip + 1)
        if (one[0] == two[0] and two[1] - one[1] == step)
        or (one[1] == two[1] and two[0] - one[0] == step)
    ]
    assert near == []
    # Nothing is lost but what lies just behind a chosen frame.
    chosen = {place for pair in found for place in pair}
    skipped = {place + step for place in chosen for step in range(1, skip + 1)}
    free = set(range(len(states))) - skipped
    assert found >= {(i, j) for i, j in combinations(sorted(free), 2) if changed(i, j) >= least}


def test_no_near_duplicates_are_left_of_random_frames() -> None:
    """25 frames, 200 times: a rule that spares the frames that serve leaves thousands."""
    clashes = []
    for seed in range(200):
        rng = random.Random(seed)
        track = sights("".join(rng.choice("abcd") for _ in range(25)))
        found = {(one.number, two.number) for one, two in choose_pairs(track, 2, 1)}
        clashes += [(i, x) for i, x in found if {(i + 1, x), (i, x + 1)} & found]
    assert clashes == []


def test_a_pair_carries_captions_relations_and_boxes() -> None:
    clip = propose((thing("a"),), (thing("b"),))

    (pair,) = clip.pairs
    assert pair.sample_id == "d/V.mp4/cup_glass_bottle/000001-000011"
    assert pair.caption_0 == "The person is looking at the cup which is in front of him/her."
    assert pair.captions_1 == (
        "The person is not looking at the cup which is behind him/her.",
        "The person is holding the cup which is behind him/her.",
    )
    assert pair.annotation["changed_relations"] == "attention,spatial"
    assert pair.annotation["object_box_xywh_0"] == "[1.0, 2.0, 3.0, 4.0]"
    # Frame files count from 1, decoded frames from 0.
    assert [frame.frame_index for frame in clip.frames] == [0, 10]
    assert clip.split == "train"


def test_spellings_of_the_lists_and_of_the_files_are_one_class() -> None:
    clip = propose((thing("a", "cupglassbottle"),), (thing("b", "cup/glass/bottle"),))

    assert len(clip.pairs) == 1


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ((thing("a", visible=False),), {"cup_glass_bottle/000001": "object_invisible"}),
        ((thing("a", "unicorn"),), {"unicorn/000001": "unknown_class"}),
        (
            (thing("a"), thing("b")),
            dict.fromkeys(
                ["cup_glass_bottle/000001.0", "cup_glass_bottle/000001.1"], "object_twice"
            ),
        ),
        (
            (thing("a"), thing("a", visible=False)),
            {
                "cup_glass_bottle/000001.0": "object_twice",
                "cup_glass_bottle/000001.1": "object_invisible",
            },
        ),
        (
            (thing("a", "a/b"), thing("a", "a_b")),
            dict.fromkeys(["a_b/000001.0", "a_b/000001.1"], "unknown_class"),
        ),
        ((thing("a"),), {"cup_glass_bottle/000001": "no_partner"}),
    ],
)
def test_an_object_is_refused_with_its_reason(
    objects: tuple[FrameObject, ...], expected: dict[str, str]
) -> None:
    assert reasons(propose(objects)) == expected


@pytest.mark.parametrize("frames", [(), ((),), ((), ())])
def test_a_video_in_which_nothing_is_annotated_is_a_reject(
    frames: tuple[tuple[FrameObject, ...], ...],
) -> None:
    (reject,) = propose(*frames).rejects
    assert (reject.candidate_id, reject.reason) == ("d/V.mp4", "too_few_moments")


def test_the_order_of_a_frame_s_objects_changes_nothing() -> None:
    objects = (thing("a"), thing("b"), thing("c", "chair"), thing("a", visible=False))
    clips = {repr(propose(order, (thing("b"),))) for order in permutations(objects)}
    assert len(clips) == 1


def test_a_relation_nobody_knows_and_one_that_tells_nothing_are_refused() -> None:
    unknown = FrameObject("cup/glass/bottle", None, ("squinting_at",), ("in",), (), True, "test")
    unsure = FrameObject("chair", None, ("unsure",), ("in",), (), True, "test")

    clip = propose((unknown, unsure))

    assert reasons(clip) == {
        "cup_glass_bottle/000001": "unknown_relation",
        "chair/000001": "no_caption",
    }
    assert clip.split == "test"


@given(
    st.lists(
        st.lists(
            st.builds(
                thing,
                st.sampled_from("abcd"),
                st.sampled_from(
                    ["chair", "dish", "cup/glass/bottle", "cupglassbottle", "x", "x/y", "x_y"]
                ),
                st.booleans(),
            ),
            max_size=5,
        ).map(tuple),
        max_size=10,
    ),
    st.booleans(),
    st.integers(0, 2),
)
def test_the_books_balance_whatever_is_annotated(
    frames: list[tuple[FrameObject, ...]], english: bool, skip: int
) -> None:
    rules = SceneGraphRules(dataset="d", min_changed_relations=2, skip_frames=skip, english=english)
    clip = propose(*frames, rules=rules)

    ids = {frame.frame_id for frame in clip.frames}
    used = {name for pair in clip.pairs for name in (pair.frame_0_id, pair.frame_1_id)}
    assert used == ids
    assert len({pair.sample_id for pair in clip.pairs}) == len(clip.pairs)
