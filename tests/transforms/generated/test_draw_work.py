"""Drawings of one pair made by hand, of which the best is kept."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eqforge.schemas.records.scores import Rejection, Score
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.generated.diffuse import DRAWINGS_STAGE
from eqforge.transforms.generated.draw_work import Drawings, choose_best, drawings_of, seed_of
from eqforge.transforms.generated.pairs import GeneratedRules
from eqforge.transforms.generated.work import PairWork, samples_of
from tests.handmade import made, picture, png, proposal, rules

BLACK = png(np.zeros((64, 64, 3), np.uint8))


def drawn(some: GeneratedRules, outside: tuple[float | None, ...]) -> Drawings:
    """Drawings that differ in a score; None is a black picture, which a filter refuses."""

    def draw(work: PairWork, number: int) -> PairWork:
        value = outside[number]
        second = BLACK if value is None else picture(20 + number)
        score = Score(name="changed_outside", value=value, scorer="s", version="1", settings="{}")
        one = replace(made(some, picture(255), second), scores=(score,))
        return replace(work, made=one).passed(DRAWINGS_STAGE)

    return drawings_of(PairWork(proposal=proposal("a")), len(outside), draw)


def counted(work: PairWork) -> dict[str, tuple[int, int]]:
    """Candidates and kept ones by stage."""
    found: dict[str, tuple[int, int]] = {}
    for tally in work.tallies:
        candidates, kept = found.get(tally.stage, (0, 0))
        found[tally.stage] = (candidates + tally.candidates, kept + tally.kept)
    return found


def test_the_best_takes_the_name_of_the_pair_and_nothing_is_lost(tmp_path: Path) -> None:
    some = rules(tmp_path)
    done = choose_best(drawn(some, (0.3, None, 0.1, 0.2)), some)

    (sample,) = samples_of(done, "eq-sd")
    assert sample.sample_id == "eq-sd/a"
    scores = {score.name: score for score in sample.scores}
    assert scores["changed_outside"].value == 0.1
    assert scores["mean_rank"].value == 1
    assert '"ranked":3,"seeds":4' in scores["mean_rank"].settings
    assert counted(done) == {
        "drawings": (4, 4),
        "images": (8, 7),
        "pairs": (4, 3),
        "seeds": (3, 1),
    }
    assert [(each.candidate_id, each.reason, each.value) for each in done.rejects] == [
        ("eq-sd/a/seed-0", "not_best", 3),
        ("eq-sd/a/seed-1/1", "black_image", 0.0),
        ("eq-sd/a/seed-1", "image_rejected", None),
        ("eq-sd/a/seed-3", "not_best", 2),
    ]
    assert done.rejects[-1].detail == '{"changed_outside":0.2,"kept":"eq-sd/a/seed-2"}'


def test_of_equal_drawings_that_of_the_lowest_seed_is_kept(tmp_path: Path) -> None:
    some = rules(tmp_path)
    done = choose_best(drawn(some, (0.3, 0.1, 0.1)), some)
    assert [each.candidate_id for each in done.rejects] == ["eq-sd/a/seed-0", "eq-sd/a/seed-2"]
    assert [each.value for each in done.rejects] == [3, 1.5]


def test_the_order_of_the_drawings_does_not_matter(tmp_path: Path) -> None:
    some = rules(tmp_path)
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


def test_a_drawing_on_which_a_model_fails_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eqforge.transforms.generated import draw_work

    some = rules(tmp_path)
    found = drawn(some, (0.3, 0.1))
    real = draw_work._model_scores

    def fail(work: PairWork, *others: object) -> list[Score]:
        assert work.proposal is not None
        if work.proposal.sample_id.endswith("seed-1"):
            raise ValueError("no number")
        return real(work, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(draw_work, "_model_scores", fail)
    done = choose_best(found, some)
    assert [(each.candidate_id, each.reason) for each in done.rejects] == [
        ("eq-sd/a/seed-1", "error:ValueError")
    ]
    assert counted(done)["seeds"] == (2, 1)


def test_what_was_refused_before_is_not_drawn(tmp_path: Path) -> None:
    refused = PairWork(proposal=proposal("a")).refused(DRAWINGS_STAGE, Rejection(reason="no"))

    def draw(_work: PairWork, _number: int) -> PairWork:
        raise AssertionError

    found = drawings_of(refused, 3, draw)
    assert found == Drawings(pair=refused, works=())
    assert choose_best(found, rules(tmp_path)) == refused


def test_a_single_drawing_keeps_the_name_and_has_no_rank(tmp_path: Path) -> None:
    some = rules(tmp_path)
    found = drawn(some, (0.3,))
    (work,) = found.works
    assert work.proposal == found.pair.proposal
    (sample,) = samples_of(choose_best(found, some), "eq-sd")
    assert [score.name for score in sample.scores] == ["changed_outside"]


def test_the_first_seed_is_the_pairs_own_and_the_others_follow_from_it() -> None:
    seeds = [seed_of(5, number) for number in range(4)]
    assert seeds[0] == 5
    assert len(set(seeds)) == 4
    assert seeds == [seed_of(5, number) for number in range(4)]
    assert seed_of(6, 1) != seeds[1]
