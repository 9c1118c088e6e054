"""Pairs made by hand, a square on noise, go through the step that generated datasets share."""

from pathlib import Path

import numpy as np
import pytest

from eqforge.commands import verify
from eqforge.schemas.dataset.manifest import load_manifest
from eqforge.schemas.records.scores import Rejection
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.filters.pairs import PAIRS_STAGE
from eqforge.transforms.filters.perceptual import Perceptual, PerceptualSettings, prepare_perceptual
from eqforge.transforms.generated.diffuse import DRAWINGS_STAGE
from eqforge.transforms.generated.pairs import (
    IMAGES_STAGE,
    GeneratedRules,
    drop_generated,
    make_once,
    measure_generated,
)
from eqforge.transforms.generated.work import MadePair, PairWork, samples_of
from eqforge.transforms.oracle.judges import OracleSettings, prepare_oracle
from tests.builds import books, dataset_bytes, rows
from tests.handmade import SCORE, SIDE, made, mask, picture, png, proposal, rules, work, write
from tests.tiny_models import save_blip, save_dinov2


def judged(some: GeneratedRules, begun: PairWork) -> PairWork:
    return drop_generated(measure_generated(begun, some), some)


def test_a_sound_pair_becomes_a_sample_with_measures_and_scores(tmp_path: Path) -> None:
    some = rules(tmp_path)
    done = judged(some, work(some, "a", picture(255), picture(20)))

    (sample,) = samples_of(done, "eq-sd")

    assert sample.mask_0_id == sample.mask_1_id
    assert sample.image_0_id != sample.image_1_id
    assert (sample.word_edit_distance, sample.edited_spans_0[0].start) == (1, 2)
    assert 400 / SIDE**2 * 0.8 < sample.changed_area_fraction < 400 / SIDE**2 * 1.2
    assert sample.scores == (SCORE,)
    assert [(tally.stage, tally.candidates, tally.kept) for tally in done.tallies] == [
        ("drawings", 1, 1),
        (IMAGES_STAGE.name, 2, 2),
        (PAIRS_STAGE.name, 1, 1),
    ]


def test_a_dropped_image_drops_its_pair(tmp_path: Path) -> None:
    some = rules(tmp_path)
    black = png(np.zeros((SIDE, SIDE, 3), np.uint8))

    done = judged(some, work(some, "a", picture(255), black))

    assert not list(samples_of(done, "eq-sd"))
    assert [(r.candidate_id, r.stage, r.reason) for r in done.rejects] == [
        ("eq-sd/a/1", IMAGES_STAGE.name, "black_image"),
        ("eq-sd/a", PAIRS_STAGE.name, "image_rejected"),
    ]
    assert [(tally.candidates, tally.kept) for tally in done.tallies] == [(1, 1), (2, 1), (1, 0)]


@pytest.mark.parametrize(
    ("captions", "second", "gates", "reason"),
    [
        (("a", "b"), picture(255), GateSettings(), "same_image"),
        (("a cup", "A  cup"), picture(20), GateSettings(), "equal_captions"),
        (("a", "b"), picture(20), GateSettings(min_changed_area=0.5), "change_too_small"),
    ],
)
def test_a_pair_is_refused_for_a_reason(
    tmp_path: Path, captions: tuple[str, str], second: bytes, gates: GateSettings, reason: str
) -> None:
    some = rules(tmp_path, gates=gates)
    begun = PairWork(proposal=proposal("a", captions), made=made(some, picture(255), second))

    assert [reject.reason for reject in judged(some, begun).rejects] == [reason]


def test_a_kind_may_have_limits_of_its_own(tmp_path: Path) -> None:
    strict = GateSettings(min_changed_area=0.5)
    some = rules(tmp_path, gates=strict, kind_gates=(("attribute", GateSettings()),))
    other = rules(tmp_path, kind_gates=(("attribute", strict),))
    begun = work(some, "a", picture(255), picture(20))

    assert not judged(some, begun).rejects
    assert [reject.reason for reject in judged(other, begun).rejects] == ["change_too_small"]


def test_a_perceptual_distance_is_stored_once_and_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    asked = f"dinov2:{save_dinov2(tmp_path / 'dinov2')}"
    some, strict = (
        rules(tmp_path, perceptual=prepare_perceptual(PerceptualSettings(**settings)))
        for settings in ({"perceptual": asked}, {"perceptual": asked, "max_perceptual": 1e-6})
    )
    begun = work(some, "a", picture(255), picture(20))

    (sample,) = samples_of(judged(some, begun), "eq-sd")
    assert [score.name for score in sample.scores] == [SCORE.name, "perceptual_distance"]
    value = sample.scores[1].value
    monkeypatch.setattr(Perceptual, "score", None)  # the next run remembers it
    (reject,) = judged(strict, begun).rejects
    assert (reject.reason, reject.value) == ("looks_too_different", value)


def test_a_pair_that_its_maker_refused_is_left_alone(tmp_path: Path) -> None:
    begun = PairWork(proposal=proposal("a")).refused(DRAWINGS_STAGE, Rejection(reason="overlap"))

    assert judged(rules(tmp_path), begun) == begun


def test_an_image_that_cannot_be_measured_is_a_reject_of_its_pair(tmp_path: Path) -> None:
    some = rules(tmp_path)

    done = judged(some, work(some, "a", picture(255), b"no picture"))

    assert [reject.reason for reject in done.rejects] == ["error:BadImage"]
    assert done.tallies[-1].kept == 0


def test_a_pair_is_made_once_while_the_store_has_it(tmp_path: Path) -> None:
    some, calls = rules(tmp_path), []
    ledger = some.ledger("render", ["settings"])

    def make() -> MadePair:
        calls.append(1)
        return made(some, picture(255), picture(20))

    first = make_once(["a"], ledger, some.media, make)
    assert make_once(["a"], ledger, some.media, make) == first
    assert len(calls) == 1

    assert isinstance(first, MadePair)
    Path(some.media.path(first.images[0].image_id, ".png")).write_bytes(b"cut")
    assert make_once(["a"], ledger, some.media, make) == first
    assert len(calls) == 2


def test_why_there_is_no_pair_is_found_out_once(tmp_path: Path) -> None:
    some, calls = rules(tmp_path), []
    ledger = some.ledger("render", [])

    def refuse() -> Rejection:
        calls.append(1)
        return Rejection(reason="safety_checker", detail="image 1")

    first = make_once(["a"], ledger, some.media, refuse)
    assert make_once(["a"], ledger, some.media, refuse) == first
    assert first == Rejection(reason="safety_checker", detail="image 1")
    assert len(calls) == 1


def test_an_error_on_the_way_is_not_remembered(tmp_path: Path) -> None:
    some = rules(tmp_path)
    ledger = some.ledger("render", [])

    refused = make_once(["a"], ledger, some.media, lambda: Rejection(reason="error:ChildDied"))

    assert refused == Rejection(reason="error:ChildDied")
    assert ledger.recall(["a"], MadePair) is None
    assert make_once(["a"], ledger, some.media, lambda: made(some, picture(255), picture(20)))
    assert ledger.recall(["a"], MadePair) is not None


def test_a_dataset_of_generated_pairs_is_sound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Images and masks that two samples share are stored once, and verify follows all of them."""
    write(tmp_path / "a")

    assert books(tmp_path / "a") == {"drawings": (4, 3, 1), "images": (6, 5, 1), "pairs": (3, 2, 1)}
    tables = load_manifest(str(tmp_path / "a")).tables
    assert {name: sum(file.rows for file in files) for name, files in tables.items()} == {
        "samples": 2,
        "images": 3,
        "masks": 1,
        "rejects": 3,
    }
    (stored,) = rows(tmp_path / "a", "masks")
    assert stored["image"] == {"bytes": mask(1), "path": stored["mask_id"] + ".png"}
    assert verify.main([str(tmp_path / "a")]) == 0, capsys.readouterr().out

    write(tmp_path / "b")
    assert dataset_bytes(tmp_path / "a") == dataset_bytes(tmp_path / "b")


def test_an_oracle_judges_the_pairs_that_nothing_else_refuses(tmp_path: Path) -> None:
    """Without limits all four scores are in the row; with them they decide."""
    pytest.importorskip("transformers")
    asked = f"blip-itm:{save_blip(tmp_path / 'blip')}"
    lenient = OracleSettings(oracle=asked, oracle_min=None, oracle_max=None)
    some = rules(tmp_path, oracle=prepare_oracle(lenient))
    (sample,) = samples_of(judged(some, work(some, "a", picture(255), picture(20))), "eq-sd")
    names = [score.name for score in sample.scores]
    assert names[0] == SCORE.name
    assert names[1:] == [f"oracle_1_c{caption}_i{image}" for image in (0, 1) for caption in (0, 1)]

    strict = prepare_oracle(OracleSettings(oracle=asked, oracle_min=1.0))
    for gates, reason in (
        (GateSettings(), "own_caption_mismatch"),
        (GateSettings(min_changed_area=0.5), "change_too_small"),
    ):
        some = rules(tmp_path, oracle=strict, gates=gates)
        done = judged(some, work(some, "b", picture(255), picture(20)))
        assert [reject.reason for reject in done.rejects] == [reason]
        assert done.tallies[-1].candidates == 1
