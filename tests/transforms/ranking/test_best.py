"""The mean rank over what is measured of the drawings of one pair."""

import itertools

import pytest

from eqforge.schemas.records.scores import Score
from eqforge.transforms.filters.minimality import PairMeasures
from eqforge.transforms.ranking.best import mean_ranks, measured_of

MEASURES = PairMeasures(
    changed_area_fraction=0.1, ssim=0.9, background_ssim=0.97, luminance_shift=0.0, phash_distance=4
)


def scores(**values: float | None) -> list[Score]:
    return [
        Score(name=name, value=value, scorer="s", version="1", settings="{}")
        for name, value in values.items()
    ]


def cells(model: str, own: tuple[float, float], crossed: tuple[float, float]) -> dict[str, float]:
    return {
        f"{model}_c0_i0": own[0],
        f"{model}_c1_i1": own[1],
        f"{model}_c1_i0": crossed[0],
        f"{model}_c0_i1": crossed[1],
    }


def test_margins_are_of_the_weakest_own_caption_over_the_strongest_other_one() -> None:
    some = scores(
        **cells("oracle_1", (0.9, 0.7), (0.2, 0.4)),
        **cells("oracle_2", (0.5, 0.6), (0.8, 0.1)),
        **cells("vqa", (0.9, 0.8), (0.3, 0.1)),
        direction=0.25,
        blend_area=1.0,
    )
    assert measured_of(some, MEASURES) == {
        "direction": 0.25,
        "oracle_1_margin": 0.3,
        "oracle_2_margin": -0.3,
        "vqa_margin": 0.5,
        "background_ssim": 0.97,
    }


def test_a_known_mask_says_what_is_outside_and_an_answer_that_is_missing_has_no_margin() -> None:
    some = scores(**cells("vqa", (0.9, 0.8), (0.3, 0.1)) | {"vqa_c1_i1": None}, changed_outside=0.1)
    assert measured_of(some, MEASURES) == {"vqa_margin": None, "changed_outside": 0.1}


def test_ranks_are_averaged_over_what_is_there() -> None:
    drawings = [
        {"direction": 0.2, "changed_outside": 0.3, "vqa_margin": None},
        {"direction": 0.4, "changed_outside": 0.3, "vqa_margin": None},
        {"direction": 0.3, "changed_outside": 0.0, "vqa_margin": None},
    ]
    assert mean_ranks(drawings) == [(3 + 2.5) / 2, (1 + 2.5) / 2, (2 + 1) / 2]


def test_a_drawing_that_lacks_a_measure_comes_last_in_it() -> None:
    assert mean_ranks([{"direction": None}, {"direction": -0.9}, {}]) == [2.5, 1.0, 2.5]


def test_without_measures_all_are_equal_and_of_none_there_is_nothing() -> None:
    assert mean_ranks([{}, {"direction": None}]) == [1.5, 1.5]
    assert mean_ranks([]) == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_the_order_of_the_drawings_changes_no_rank(order: tuple[int, ...]) -> None:
    drawings: list[dict[str, float | None]] = [
        {"direction": 0.1, "background_ssim": 0.9},
        {"direction": 0.1, "background_ssim": None},
        {"direction": -0.2, "background_ssim": 0.99},
        {"direction": 0.5},
    ]
    found = mean_ranks([drawings[place] for place in order])
    assert found == [mean_ranks(drawings)[place] for place in order]
