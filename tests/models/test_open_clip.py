"""open_clip's models against open_clip's own calls, on a tiny real model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError, MissingExtra
from eqforge.models.open_clip import import_open_clip
from eqforge.models.scorer import Picture, Scorer, is_dual_encoder
from eqforge.models.spec import load_scorer, parse_specs
from tests.scored import image_of, score_pictures

CONFIG = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "head_width": 8, "patch_size": 8},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}
CAPTIONS = ["a red cup", "two dogs and a cat on the box"]


@pytest.fixture(scope="module")
def library() -> Any:
    try:
        return import_open_clip()
    except MissingExtra:
        pytest.skip("open_clip's models need torchvision")


@pytest.fixture(scope="module")
def folder(library: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    made = tmp_path_factory.mktemp("open_clip") / "tiny"
    made.mkdir()
    model = library.model.CLIP(**CONFIG)
    preprocess = {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.2], "interpolation": "bicubic"}
    config = {"model_cfg": CONFIG, "preprocess_cfg": preprocess}
    (made / "open_clip_config.json").write_text(json.dumps(config))
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, made / "open_clip_model.safetensors")
    return made


@pytest.fixture(scope="module")
def pictures() -> list[Picture]:
    rng = np.random.default_rng(5)
    sizes = ((40, 60), (64, 33))
    return [
        Picture(key=str(n), pixels=rng.integers(0, 256, (*size, 3), dtype=np.uint8))
        for n, size in enumerate(sizes)
    ]


def load(source: Path | str, options: str = "") -> Scorer:
    (spec,) = parse_specs(f"open-clip:{source}{options}")
    return load_scorer(spec)


def test_scores_are_open_clips_own_cosines(
    library: Any, folder: Path, pictures: list[Picture]
) -> None:
    import torch

    model, _, transform = library.create_model_and_transforms(f"local-dir:{folder}")
    tokenizer = library.get_tokenizer(f"local-dir:{folder}")
    with torch.inference_mode():
        pixels = torch.stack([transform(image_of(one)) for one in pictures])
        images = model.eval().encode_image(pixels, normalize=True)
        expected = images @ model.encode_text(tokenizer(CAPTIONS), normalize=True).T

    scorer = load(folder)
    pairs = np.array([(image, caption) for image in range(2) for caption in range(2)])
    found = score_pictures(scorer, pictures, CAPTIONS, pairs)

    assert is_dual_encoder(scorer)
    assert found.cosines == pytest.approx(expected.numpy().ravel(), abs=1e-6)
    assert np.ptp(found.cosines) > 1e-3
    assert scorer.identity.family == "clip"
    assert scorer.identity.revision.startswith("sha256:")


@pytest.mark.usefixtures("library")
def test_a_name_of_open_clip_needs_its_weights(folder: Path) -> None:
    """By a name alone it would fetch what the name means today."""
    with pytest.raises(InputError, match="write ID@COMMIT"):
        load("ViT-B-32")
    with pytest.raises(InputError, match="the model cannot be loaded"):
        load("ViT-B-32", f",weights={folder / 'open_clip_model.safetensors'}")
    with pytest.raises(InputError, match="expected a file in safetensors"):
        load("ViT-B-32", ",weights=model.bin")


@pytest.mark.usefixtures("library")
def test_a_text_encoder_from_elsewhere_is_refused(folder: Path, tmp_path: Path) -> None:
    config = json.loads((folder / "open_clip_config.json").read_text())
    config["model_cfg"]["text_cfg"]["hf_model_name"] = "roberta-base"
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="contains no weights in safetensors"):
        load(tmp_path)
    (tmp_path / "m.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="'roberta-base' would be downloaded"):
        load(tmp_path)
