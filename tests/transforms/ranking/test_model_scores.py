"""The models of a ranking against the same models of transformers, called by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.transforms.dataset.ledger import Ledger
from eqforge.transforms.ranking.model_scores import direction_score, vqa_scores
from eqforge.transforms.ranking.settings import RankSettings, prepare_ranking, ranking_warnings
from tests.evaluation.conversations.made import save_llava
from tests.tiny_models import IMAGE_PX, save_clip

torch = pytest.importorskip("torch")

CAPTIONS = ("a red ball", "a blue ball")


@pytest.fixture(scope="module")
def pictures() -> list[Any]:
    rng = np.random.default_rng(3)
    return [rng.integers(0, 256, (IMAGE_PX, IMAGE_PX, 3), dtype=np.uint8) for _ in range(2)]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("models") / "clip")


@pytest.fixture(scope="module")
def llava(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llava(tmp_path_factory.mktemp("models") / "llava")


def test_the_direction_is_the_cosine_of_the_changes(clip: Path, pictures: list[Any]) -> None:
    from transformers import CLIPImageProcessorPil, CLIPModel, CLIPTokenizer

    ranking = prepare_ranking(RankSettings(direction=f"clip:{clip}"))
    assert ranking.direction is not None
    score = direction_score(ranking.settings, ranking.direction, pictures, CAPTIONS)

    model, tokenizer = CLIPModel.from_pretrained(clip), CLIPTokenizer.from_pretrained(clip)
    prepared = CLIPImageProcessorPil.from_pretrained(clip)(pictures, return_tensors="pt")
    with torch.no_grad():
        tokens = tokenizer(list(CAPTIONS), return_tensors="pt", padding=True)
        vectors = [model.get_image_features(**prepared), model.get_text_features(**tokens)]
    unit = [
        torch.nn.functional.normalize(getattr(each, "pooler_output", each), dim=-1)
        for each in vectors
    ]
    changes = [each[1] - each[0] for each in unit]
    expected = torch.nn.functional.cosine_similarity(*changes, dim=0)
    assert score.value == pytest.approx(float(expected), abs=1e-5)
    assert (score.name, score.scorer) == ("direction", "clip")
    back = direction_score(ranking.settings, ranking.direction, pictures[::-1], CAPTIONS)
    assert back.value == pytest.approx(-float(expected), abs=1e-5)


def test_pictures_without_a_change_have_no_direction(clip: Path, pictures: list[Any]) -> None:
    ranking = prepare_ranking(RankSettings(direction=f"clip:{clip}"))
    assert ranking.direction is not None
    same = [pictures[0], pictures[0]]
    assert direction_score(ranking.settings, ranking.direction, same, CAPTIONS).value is None


def test_every_picture_is_asked_about_both_captions(
    llava: Path, pictures: list[Any], tmp_path: Path
) -> None:
    from eqforge.models.chat_model import load_chat_model
    from eqforge.models.pretrained import Weights

    ranking = prepare_ranking(RankSettings(vqascore=str(llava)))
    assert ranking.vqa is not None
    ledger = Ledger(root=str(tmp_path), step="vqa", basis=None)
    found = vqa_scores(ranking.settings, ranking.vqa, pictures, CAPTIONS, ledger)

    model = load_chat_model(Weights(source=str(llava)))
    asked = [
        model.prompt(f'Does this picture show "{caption}"? Answer yes or no.')
        for caption in CAPTIONS
    ]
    assert {score.name: score.value for score in found} == {
        f"vqa_c{caption}_i{image}": pytest.approx(
            model.yes(pictures[image], asked[caption]), abs=1e-5
        )
        for image in (0, 1)
        for caption in (0, 1)
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": 0}, "--seeds 0: expected 1 to 64"),
        ({"seeds": 65}, "--seeds 65"),
        ({"direction": "blip-itm:folder"}, "--direction 'blip-itm:folder': expected KIND:SOURCE"),
        ({"direction": "clip"}, "--direction 'clip'"),
        ({"vqascore": "folder,size=3"}, "--vqascore .*no option 'size'"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RankSettings(**settings)


def test_a_ranking_that_no_model_helps_with_is_told() -> None:
    assert list(ranking_warnings(RankSettings(), has_oracle=False)) == []
    assert "differs least" in next(ranking_warnings(RankSettings(seeds=2), has_oracle=False))
    assert list(ranking_warnings(RankSettings(seeds=2), has_oracle=True)) == []
    named = RankSettings(seeds=2, direction="clip:folder")
    assert list(ranking_warnings(named, has_oracle=False)) == []
