import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.models.scorer import Identity, IndexPairs, Matches, Picture
from eqforge.models.spec import load_scorer, parse_specs
from eqforge.schemas.records.scores import Score
from eqforge.transforms.oracle import scores as oracle_scores
from eqforge.transforms.oracle.judges import (
    Oracle,
    OracleSettings,
    oracle_warnings,
    prepare_oracle,
    refuse_pair,
    score_pair,
)
from eqforge.transforms.oracle.scores import PAIR_CELLS
from tests.optional import optional
from tests.tiny_models import save_blip, save_clip

optional("transformers")

CAPTIONS = ("a red cup", "two dogs and a cat on the box")


@pytest.fixture(scope="module")
def blip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_blip(tmp_path_factory.mktemp("models") / "blip")


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("models") / "clip")


def noise(seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (40, 60, 3), dtype=np.uint8)


def images(first: int = 0) -> dict[str, NDArray[np.uint8]]:
    return {str(seed): noise(seed) for seed in (first, first + 1)}


def oracle(*named: str, **settings: Any) -> Oracle:
    return prepare_oracle(OracleSettings(oracle="+".join(named), **settings))


def scores_of(*values: float, judge: int = 1) -> tuple[Score, ...]:
    """Scores of one judge: own of image 0, its crossed, crossed of image 1, its own."""
    names = [f"oracle_{judge}_{cell}" for cell in PAIR_CELLS]
    return tuple(
        Score(name=name, value=value, scorer="clip", version="1", settings="{}")
        for name, value in zip(names, values, strict=True)
    )


def test_both_images_are_scored_with_both_captions(blip: Path) -> None:
    scores = score_pair(oracle(f"blip-itm:{blip}"), images(), CAPTIONS)

    found = {score.name: score.value for score in scores}
    scorer = load_scorer(*parse_specs(f"blip-itm:{blip}"))
    for caption in (0, 1):
        for image in (0, 1):
            picture = Picture(key="", pixels=noise(image))
            encoded = scorer.encode_images([scorer.prepare(picture)])
            alone = scorer.match(encoded, [CAPTIONS[caption]], np.array([[0, 0]]))
            expected = alone.probabilities[0]
            assert found[f"oracle_1_c{caption}_i{image}"] == pytest.approx(expected, abs=2e-6)
    assert {score.scorer for score in scores} == {"blip-itm"}
    assert {score.version for score in scores} == {scorer.identity.revision}
    assert scorer.identity.preprocessing in scores[0].settings
    assert str(blip.parent) not in scores[0].settings


def test_two_judges_score_one_after_the_other(blip: Path, clip: Path) -> None:
    both = score_pair(oracle(f"blip-itm:{blip}", f"clip:{clip},scale=3"), images(), CAPTIONS)
    second = score_pair(oracle(f"clip:{clip},scale=3"), images(), CAPTIONS)

    assert [score.scorer for score in both] == ["blip-itm"] * 4 + ["clip"] * 4
    assert [score.value for score in both[4:]] == [score.value for score in second]
    assert both[4].name == "oracle_2_c0_i0"


def test_without_a_model_nothing_is_scored_and_nothing_refused() -> None:
    nobody = prepare_oracle(OracleSettings())
    assert score_pair(nobody, images(), CAPTIONS) == ()
    assert refuse_pair((), nobody.settings) is None
    assert list(oracle_warnings(nobody)) == []


def test_an_images_scores_do_not_depend_on_its_other_pairs(blip: Path) -> None:
    """Each picture is decoded and encoded once, and the scores are those of the pair alone."""
    asked: list[str] = []

    def pixels(key: str) -> NDArray[np.uint8]:
        asked.append(key)
        return noise(int(key))

    judges = oracle(f"blip-itm:{blip}")
    scorer = judges.scorer(pixels)
    pairs = [(first, second) for first in range(4) for second in range(first)]
    together = [scorer.score_pair((str(a), str(b)), CAPTIONS) for a, b in pairs]

    assert sorted(asked) == ["0", "1", "2", "3"]
    for (a, b), scores in zip(pairs, together, strict=True):
        alone = score_pair(judges, {str(a): noise(a), str(b): noise(b)}, CAPTIONS)
        assert scores == alone


def test_a_judge_of_an_evaluated_family_is_warned_of(blip: Path, clip: Path) -> None:
    judges = oracle(f"blip-itm:{blip}", f"clip:{clip}", evaluated_families=("CLIP", "flava"))
    (warning,) = oracle_warnings(judges)
    assert warning.startswith("the oracle clip:clip@sha256:")
    assert "belongs to the family 'clip', which is evaluated on this dataset" in warning
    judges = oracle(f"blip-itm:{blip}", evaluated_families=("siglp", "another"))
    (warning,) = oracle_warnings(judges)
    assert warning.endswith("siglp: no known model belongs to this family; did you mean 'siglip'?")


def test_the_basis_follows_the_models_and_not_the_limits(blip: Path, clip: Path) -> None:
    found = oracle(f"blip-itm:{blip}")
    assert found.basis() == oracle(f"blip-itm:{blip}", oracle_min=0.2).basis()
    assert found.basis() != oracle(f"clip:{clip}").basis()
    assert oracle(f"clip:{clip}").basis() != oracle(f"clip:{clip},centre=0.2").basis()


def test_torchs_number_of_threads_is_left_as_it_was(blip: Path) -> None:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        two = score_pair(oracle(f"blip-itm:{blip}"), images(), CAPTIONS)
        assert torch.get_num_threads() == 2
        torch.set_num_threads(1)
        assert score_pair(oracle(f"blip-itm:{blip}"), images(), CAPTIONS) == two
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("values", "reason", "value", "threshold"),
    [
        ((0.95, 0.05, 0.05, 0.95), None, None, None),
        ((0.95, 0.05, 0.05, 0.6), "own_caption_mismatch", 0.6, 0.9),
        ((0.90, 0.05, 0.05, 0.95), "own_caption_mismatch", 0.9, 0.9),
        ((0.95, 0.05, 0.40, 0.95), "crossed_caption_match", 0.4, 0.1),
        ((0.95, 0.10, 0.05, 0.95), "crossed_caption_match", 0.1, 0.1),
        ((0.20, 0.99, 0.99, 0.20), "own_caption_mismatch", 0.2, 0.9),
    ],
)
def test_a_pair_is_kept_where_own_captions_match_and_crossed_do_not(
    values: tuple[float, ...], reason: str | None, value: float | None, threshold: float | None
) -> None:
    found = refuse_pair(scores_of(*values), OracleSettings(oracle="clip:x"))
    if found is None:
        assert reason is None
    else:
        assert (found.reason, found.value, found.threshold) == (reason, value, threshold)


def test_limits_that_are_off_refuse_nothing() -> None:
    scores = scores_of(0.2, 0.99, 0.99, 0.2)
    lenient = OracleSettings(oracle="clip:x", oracle_min=None)
    assert refuse_pair(scores, replace(lenient, oracle_max=None)) is None
    found = refuse_pair(scores, lenient)
    assert found is not None
    assert found.reason == "crossed_caption_match"
    assert refuse_pair((), OracleSettings()) is None


def test_two_judges_must_agree() -> None:
    settings = OracleSettings(oracle="clip:x+siglip:y")
    good, bad, worse = (0.95, 0.05, 0.05, 0.95), (0.3, 0.05, 0.05, 0.95), (0.95, 0.5, 0.05, 0.95)

    def reason(first: Sequence[float], second: Sequence[float]) -> str | None:
        found = refuse_pair((*scores_of(*first), *scores_of(*second, judge=2)), settings)
        return None if found is None else found.reason

    assert reason(good, good) is None
    assert reason(good, bad) == reason(bad, good) == "oracle_disagreement"
    assert reason(bad, worse) == "own_caption_mismatch"
    assert reason(worse, bad) == "crossed_caption_match"
    found = refuse_pair((*scores_of(*good), *scores_of(*worse, judge=2)), settings)
    assert found is not None
    assert found.detail == "oracle_2_c1_i0: crossed_caption_match"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"oracle_min": 1.5}, "--oracle-min 1.5: expected a probability"),
        ({"oracle_max": -0.1}, "--oracle-max -0.1: expected a probability"),
        ({"oracle": "oracle:x"}, "expected KIND:SOURCE"),
    ],
)
def test_wrong_settings_are_refused_at_once(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        OracleSettings(**changes)


def test_a_model_is_loaded_once_and_called_by_one_thread_at_a_time(
    blip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Any] = []
    busy: list[int] = []
    overlaps: list[int] = []

    @dataclasses.dataclass
    class Watched:
        scorer: Any
        identity: Identity
        reads_pixels: bool = True

        def prepare(self, image: Picture) -> Any:
            return self.scorer.prepare(image)

        def encode_images(self, prepared: Sequence[Any]) -> Any:
            return self.scorer.encode_images(prepared)

        def match(
            self, images: Sequence[Any], captions: Sequence[str], pairs: IndexPairs
        ) -> Matches:
            overlaps.append(len(busy))
            busy.append(1)
            found: Matches = self.scorer.match(images, captions, pairs)
            busy.pop()
            return found

    def load(spec: Any) -> Watched:
        loaded.append(spec)
        scorer = load_scorer(spec)
        return Watched(scorer, scorer.identity)

    judges = oracle(f"blip-itm:{blip}")
    monkeypatch.setattr("eqforge.models.spec.load_scorer", load)
    oracle_scores._load.cache_clear()
    with ThreadPoolExecutor(4) as threads:
        work = [threads.submit(score_pair, judges, images(n), CAPTIONS) for n in range(12)]
        found = [one.result() for one in work]
    oracle_scores._load.cache_clear()

    assert len(loaded) == 1
    assert set(overlaps) == {0}
    assert found == [score_pair(judges, images(n), CAPTIONS) for n in range(12)]


def test_a_model_of_broken_weights_gives_no_score(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = save_clip(tmp_path / "clip")
    tensors = load_file(folder / "model.safetensors")
    tensors["visual_projection.weight"][:] = float("nan")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"0: clip returned P\(match\) = nan"):
        score_pair(oracle(f"clip:{folder}"), images(), CAPTIONS)
