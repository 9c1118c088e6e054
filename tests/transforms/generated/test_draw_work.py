"""Drawings of one pair made by hand, of which the best is kept."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.schemas.records.scores import Rejection, Score
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.generated.diffuse import DRAWINGS_STAGE
from eqforge.transforms.generated.draw_work import Drawings, choose_best, drawings_of
from eqforge.transforms.generated.pairs import GeneratedRules, RankSettings, measure_generated
from eqforge.transforms.generated.work import PairWork, samples_of
from eqforge.transforms.oracle.judges import margin_of
from tests.handmade import made, picture, png, proposal, rules

BY_ORACLE = RankSettings(seeds=4, best_by="oracle_margin")
BLACK = png(np.zeros((64, 64, 3), np.uint8))


def drawn(some: GeneratedRules, margins: tuple[float | None, ...]) -> Drawings:
    """Drawings that an oracle judges differently; None is a black picture, which is rejected."""

    def draw(work: PairWork, number: int) -> PairWork:
        margin = margins[number]
        second = BLACK if margin is None else picture(20 + number)
        values = {"c0_i0": 0.9, "c1_i0": 0.1, "c0_i1": 0.9 - (margin or 0), "c1_i1": 0.95}
        scores = [
            Score(name=f"oracle_1_{cell}", value=value, scorer="s", version="1", settings="{}")
            for cell, value in values.items()
        ]
        one = made(some, picture(255), second)
        return replace(work, made=one, scores=tuple(scores)).passed(DRAWINGS_STAGE)

    return drawings_of(PairWork(proposal=proposal("a")), len(margins), draw)


def counted(work: PairWork) -> dict[str, tuple[int, int]]:
    """Candidates and kept ones by stage."""
    found: dict[str, tuple[int, int]] = {}
    for tally in work.tallies:
        candidates, kept = found.get(tally.stage, (0, 0))
        found[tally.stage] = (candidates + tally.candidates, kept + tally.kept)
    return found


def test_the_best_takes_the_name_of_the_pair_and_nothing_is_lost(tmp_path: Path) -> None:
    some = rules(tmp_path, ranking=BY_ORACLE)
    done = choose_best(drawn(some, (0.3, None, 0.7, 0.2)), some)

    (sample,) = samples_of(done, "eq-sd")
    assert sample.sample_id == "eq-sd/a"
    assert margin_of(sample.scores) == 0.7
    assert counted(done) == {"drawings": (4, 4), "images": (8, 7), "pairs": (4, 3), "seeds": (3, 1)}
    assert [(each.candidate_id, each.reason, each.value) for each in done.rejects] == [
        ("eq-sd/a/seed-0", "not_best", 0.3),
        ("eq-sd/a/seed-1/1", "black_image", 0.0),
        ("eq-sd/a/seed-1", "image_rejected", None),
        ("eq-sd/a/seed-3", "not_best", 0.2),
    ]
    assert (done.rejects[-1].threshold, done.rejects[-1].detail) == (0.7, "kept eq-sd/a/seed-2")


def test_without_an_oracle_the_drawing_with_the_most_equal_background_is_kept(
    tmp_path: Path,
) -> None:
    some = rules(tmp_path, ranking=RankSettings(seeds=3))
    found = drawn(some, (0.3, 0.1, 0.2))
    judged = [measure_generated(work, some).measured for work in found.works]
    values = [each.measures.background_ssim for each in judged if each is not None]
    done = choose_best(found, some)
    assert done.measured is not None
    assert done.measured.measures.background_ssim == max(v for v in values if v is not None)
    assert [each.reason for each in done.rejects] == ["not_best"] * 2


def test_of_equal_drawings_that_of_the_lowest_seed_is_kept(tmp_path: Path) -> None:
    some = rules(tmp_path, ranking=BY_ORACLE)
    done = choose_best(drawn(some, (0.3, 0.5, 0.5)), some)
    assert [each.candidate_id for each in done.rejects] == ["eq-sd/a/seed-0", "eq-sd/a/seed-2"]


def test_the_order_of_the_drawings_does_not_matter(tmp_path: Path) -> None:
    some = rules(tmp_path, ranking=BY_ORACLE)
    found = drawn(some, (0.3, 0.1, 0.2, None))
    done = choose_best(found, some)
    for order in itertools.permutations(found.works):
        turned = choose_best(replace(found, works=order), some)
        assert (turned.made, turned.scores) == (done.made, done.scores)
        assert sorted(turned.rejects, key=str) == sorted(done.rejects, key=str)


def test_a_pair_of_which_every_drawing_is_refused_is_no_sample(tmp_path: Path) -> None:
    some = rules(tmp_path, gates=GateSettings(min_changed_area=0.9))
    done = choose_best(drawn(some, (0.3, 0.2)), some)
    assert list(samples_of(done, "eq-sd")) == []
    assert counted(done)["pairs"] == (2, 0)
    assert "seeds" not in counted(done)
    assert [each.reason for each in done.rejects] == ["change_too_small"] * 2


def test_what_was_refused_before_is_not_drawn(tmp_path: Path) -> None:
    refused = PairWork(proposal=proposal("a")).refused(DRAWINGS_STAGE, Rejection(reason="no"))

    def draw(_work: PairWork, _number: int) -> PairWork:
        raise AssertionError

    found = drawings_of(refused, 3, draw)
    assert found == Drawings(pair=refused, works=())
    assert choose_best(found, rules(tmp_path)) == refused


def test_a_single_drawing_keeps_the_name_and_is_not_compared(tmp_path: Path) -> None:
    some = rules(tmp_path)
    found = drawn(some, (0.3,))
    (work,) = found.works
    assert work.proposal == found.pair.proposal
    done = choose_best(found, some)
    assert [sample.sample_id for sample in samples_of(done, "eq-sd")] == ["eq-sd/a"]
    assert "seeds" not in counted(done)


@pytest.mark.parametrize("seeds", [0, 65])
def test_a_number_of_seeds_out_of_range_is_named(seeds: int) -> None:
    with pytest.raises(InputError, match=f"--seeds {seeds}: expected 1 to 64"):
        RankSettings(seeds=seeds)
