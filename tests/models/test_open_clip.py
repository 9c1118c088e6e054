"""open_clip's models against open_clip's own calls, on a tiny real model."""

import json
import zipfile
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
    with pytest.raises(
        InputError, match=r"expected an existing \.safetensors, \.pt, \.pth or \.bin f"
    ):
        load("ViT-B-32", ",weights=model.npz")


@pytest.fixture
def tiny(library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tiny architecture among open_clip's own."""
    (tmp_path / "eqforge-tiny.json").write_text(json.dumps(CONFIG))
    for name in ("_MODEL_CONFIG_PATHS", "_MODEL_CONFIGS"):
        monkeypatch.setattr(library.factory, name, getattr(library.factory, name).copy())
    library.add_model_config(tmp_path / "eqforge-tiny.json")
    return "eqforge-tiny"


def check_cosines(
    scorer: Scorer, model: Any, transform: Any, tokenizer: Any, pictures: list[Picture]
) -> None:
    """Compare a scorer's cosines with the cosines that open_clip itself computes."""
    import torch

    with torch.inference_mode():
        images = model.eval().encode_image(torch.stack([transform(image_of(p)) for p in pictures]))
        texts = model.encode_text(tokenizer(CAPTIONS))
        expected = torch.nn.functional.cosine_similarity(images[:, None], texts[None], dim=-1)
    found = score_pictures(scorer, pictures, CAPTIONS, np.argwhere(np.ones((2, 2))))
    assert found.cosines == pytest.approx(expected.numpy().ravel(), abs=1e-6)
    assert np.ptp(found.cosines) > 1e-3


def test_a_checkpoint_of_open_clips_training_scores_as_its_weights_do(
    library: Any, tiny: str, pictures: list[Picture], tmp_path: Path
) -> None:
    """NegCLIP's form: epoch, name, optimizer, and weights of a model that ran on several GPUs."""
    import torch

    torch.manual_seed(3)
    model, _, transform = library.create_model_and_transforms(tiny)
    optimizer = torch.optim.AdamW(model.parameters())
    saved = {f"module.{name}": tensor for name, tensor in model.state_dict().items()}
    checkpoint = {"epoch": 5, "name": "negclip", "state_dict": saved}
    torch.save(checkpoint | {"optimizer": optimizer.state_dict()}, tmp_path / "negCLIP.pt")
    scorer = load(tiny, f",weights={tmp_path / 'negCLIP.pt'}")
    check_cosines(scorer, model, transform, library.get_tokenizer(tiny), pictures)
    assert scorer.identity.revision.startswith("sha256:")
    assert scorer.identity.model == f"{tiny},weights=negCLIP.pt"


def test_lora_layers_of_a_checkpoint_score_as_in_svlcs_network(
    library: Any, tiny: str, pictures: list[Picture], tmp_path: Path
) -> None:
    """Each layer of the expected network adds x A^T B^T / rank to its output, as SVLC's do."""
    import torch
    from torch.nn import functional

    torch.manual_seed(4)
    rank = 2
    model, _, transform = library.create_model_and_transforms(tiny)
    saved = {f"module.{name}": tensor.clone() for name, tensor in model.state_dict().items()}

    def matrices(prefix: str, columns: int, rows: int, kernel: int = 1) -> tuple[Any, Any]:
        shapes = {"A": (rank * kernel, columns * kernel), "B": (rows * kernel, rank * kernel)}
        made = {f"{prefix}lora_{side}": torch.randn(shape) / 4 for side, shape in shapes.items()}
        saved.update({f"module.{name}": tensor for name, tensor in made.items()})
        first, second = made.values()
        return first, second

    def added(first: Any, second: Any, given: Any) -> Any:
        return given @ first.T @ second.T / rank

    def adapt_linear(layer: Any, name: str) -> None:
        pair = matrices(f"{name}.", layer.in_features, layer.out_features)
        layer.register_forward_hook(lambda _, given, found: found + added(*pair, given[0]))

    def adapt_attention(layer: Any, name: str) -> None:
        width, heads = layer.embed_dim, layer.num_heads
        inner = matrices(f"{name}.in_proj_weight_", width, 3 * width)
        outer = matrices(f"{name}.out_proj.", width, width)

        def attend(given: Any, *_: Any, attn_mask: Any = None, **__: Any) -> tuple[Any, None]:
            stacked = functional.linear(given, layer.in_proj_weight, layer.in_proj_bias)
            stacked = stacked + added(*inner, given)
            query, key, value = (
                each.unflatten(-1, (heads, -1)).transpose(1, 2) for each in stacked.chunk(3, -1)
            )
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask)
            mixed = mixed.transpose(1, 2).flatten(2)
            linear = functional.linear(mixed, layer.out_proj.weight, layer.out_proj.bias)
            return linear + added(*outer, mixed), None

        layer.forward = attend

    def adapt_patches(layer: Any, name: str) -> None:
        kernel = layer.kernel_size[0]
        first, second = matrices(f"{name}.", 3, layer.out_channels, kernel)
        change = (second @ first).view(layer.weight.shape) / rank
        layer.register_forward_hook(
            lambda _, given, found: found + functional.conv2d(given[0], change, stride=kernel)
        )

    adapt_patches(model.visual.conv1, "visual.conv1")
    for tower, prefix in ((model.visual.transformer, "visual."), (model.transformer, "")):
        for number, block in enumerate(tower.resblocks):
            name = f"{prefix}transformer.resblocks.{number}"
            adapt_attention(block.attn, f"{name}.attn")
            for part in ("c_fc", "c_proj"):
                adapt_linear(getattr(block.mlp, part), f"{name}.mlp.{part}")
    torch.save({"epoch": 5, "state_dict": saved}, tmp_path / "svlc.pt")
    scorer = load(tiny, f",weights={tmp_path / 'svlc.pt'}")
    check_cosines(scorer, model, transform, library.get_tokenizer(tiny), pictures)

    saved["module.token_embedding.lora_A"] = torch.randn(rank, 49408)
    saved["module.token_embedding.lora_B"] = torch.randn(16, rank)
    torch.save({"state_dict": saved}, tmp_path / "embedding.pt")
    with pytest.raises(InputError, match=r"token_embedding\.lora_A does not match"):
        load(tiny, f",weights={tmp_path / 'embedding.pt'}")


@pytest.mark.parametrize("prefix", [b"", b"ccollections\nOrderedDict\n)RNb0"])
def test_code_in_a_checkpoint_is_not_run(
    library: Any, tiny: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: bytes
) -> None:
    """With the prefix, torch raises a TypeError, and open_clip reads the file a second time."""
    import torch

    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")

    class Code:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "ran",)

    torch.save({"state_dict": {"weight": Code()}}, tmp_path / "plain.pt")
    with (
        zipfile.ZipFile(tmp_path / "plain.pt") as plain,
        zipfile.ZipFile(tmp_path / "code.pt", "w") as changed,
    ):
        for name in plain.namelist():
            data = plain.read(name)
            is_pickle = name.endswith("data.pkl")
            changed.writestr(name, data[:2] + prefix + data[2:] if is_pickle else data)
    with pytest.raises(InputError, match="eqforge-tiny: the model cannot be loaded"):
        load(tiny, f",weights={tmp_path / 'code.pt'}")
    assert not (tmp_path / "ran").exists()


@pytest.mark.usefixtures("library")
def test_a_text_encoder_from_elsewhere_is_refused(folder: Path, tmp_path: Path) -> None:
    config = json.loads((folder / "open_clip_config.json").read_text())
    config["model_cfg"]["text_cfg"]["hf_model_name"] = "roberta-base"
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"contains no \.safetensors file with weights"):
        load(tmp_path)
    (tmp_path / "m.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="its text encoder, 'roberta-base'"):
        load(tmp_path)
