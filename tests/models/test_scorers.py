"""CLIP, SigLIP and BLIP-ITM against transformers' own forward pass, on tiny real models."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.models.pretrained import Weights, load_model, tokenizer_digest
from eqforge.models.scorer import (
    Picture,
    Scorer,
    counts_tokens,
    gives_log_odds,
    is_dual_encoder,
    sends_preparer,
    sigmoid,
)
from eqforge.models.spec import load_scorer, parse_specs
from tests.optional import optional
from tests.scored import image_of, score_pictures
from tests.tiny_models import save_blip, save_clip, save_siglip

optional("transformers")

ALL = np.array([(image, caption) for image in range(3) for caption in range(2)])
CAPTIONS = ["a red cup", "two dogs and a cat on the box"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {
        "clip": save_clip(root / "clip"),
        "siglip": save_siglip(root / "siglip"),
        "blip-itm": save_blip(root / "blip"),
    }


@pytest.fixture(scope="module")
def pictures() -> list[Picture]:
    rng = np.random.default_rng(5)
    sizes = ((40, 60), (64, 33), (32, 32))
    return [
        Picture(key=str(n), pixels=rng.integers(0, 256, (*size, 3), dtype=np.uint8))
        for n, size in enumerate(sizes)
    ]


def load(folders: dict[str, Path], kind: str, options: str = "") -> Scorer:
    (spec,) = parse_specs(f"{kind}:{folders[kind]}{options}")
    return load_scorer(spec)


def inputs(folder: Path, pictures: list[Picture], padding: Any) -> dict[str, Any]:
    """What transformers' own classes make of the images and captions."""
    from transformers import AutoImageProcessor, AutoTokenizer

    images = [image_of(picture) for picture in pictures]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    length = {"max_length": 12} if padding == "max_length" else {}
    tokens = tokenizer(CAPTIONS, padding=padding, return_tensors="pt", **length)
    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    return {**tokens, "pixel_values": processor(images=images, return_tensors="pt").pixel_values}


def test_the_digest_of_a_slow_tokenizer_covers_the_numbers_of_its_tokens(tmp_path: Path) -> None:
    from transformers import EsmTokenizer

    digests = set()
    for number, words in enumerate((["cat", "dog"], ["dog", "cat"])):
        path = tmp_path / f"{number}.txt"
        path.write_text("\n".join(["<cls>", "<pad>", "<eos>", "<unk>", "<mask>", *words]))
        digests.add(tokenizer_digest(EsmTokenizer(str(path))))
    assert len(digests) == 2


def test_clip_scores_are_its_own_cosines(folders: dict[str, Path], pictures: list[Picture]) -> None:
    import torch
    from transformers import CLIPModel

    scorer = load(folders, "clip", ",scale=20,centre=0.05")
    found = score_pictures(scorer, pictures, CAPTIONS, ALL)

    model = CLIPModel.from_pretrained(folders["clip"]).eval()
    with torch.inference_mode():
        output = model(**inputs(folders["clip"], pictures, True))
        scale = model.logit_scale.exp()
    cosines = (output.logits_per_image / scale).numpy().ravel()
    assert found.cosines == pytest.approx(cosines, abs=1e-6)
    assert found.logits == pytest.approx(20 * (cosines - 0.05), abs=1e-4)
    assert found.probabilities == pytest.approx(1 / (1 + np.exp(1 - 20 * cosines)), abs=1e-5)
    assert scorer.identity.calibration == "sigmoid(20 * cosine -1)"


def test_siglip_has_its_own_probability(folders: dict[str, Path], pictures: list[Picture]) -> None:
    import torch
    from transformers import SiglipModel

    found = score_pictures(load(folders, "siglip"), pictures, CAPTIONS, ALL)

    model = SiglipModel.from_pretrained(folders["siglip"]).eval()
    given = inputs(folders["siglip"], pictures, "max_length")
    with torch.inference_mode():
        logits = model(
            input_ids=given["input_ids"], pixel_values=given["pixel_values"]
        ).logits_per_image
    assert found.logits == pytest.approx(logits.numpy().ravel(), abs=1e-5)
    assert found.probabilities == pytest.approx(torch.sigmoid(logits).numpy().ravel(), abs=1e-6)


def test_blip_itm_is_its_own_softmax(folders: dict[str, Path], pictures: list[Picture]) -> None:
    import torch
    from transformers import BlipForImageTextRetrieval

    found = score_pictures(load(folders, "blip-itm"), pictures, CAPTIONS, ALL)

    model = BlipForImageTextRetrieval.from_pretrained(folders["blip-itm"]).eval()
    given = inputs(folders["blip-itm"], pictures, True)
    with torch.inference_mode():
        classes = model(
            input_ids=given["input_ids"][ALL[:, 1]],
            attention_mask=given["attention_mask"][ALL[:, 1]],
            pixel_values=given["pixel_values"][ALL[:, 0]],
            use_itm_head=True,
        ).itm_score
    assert found.probabilities == pytest.approx(classes.softmax(-1)[:, 1].numpy(), abs=1e-6)
    assert found.logits == pytest.approx((classes[:, 1] - classes[:, 0]).numpy(), abs=1e-5)
    assert np.ptp(found.probabilities) > 0


class Handing:
    """A user's scorer that hands everything on to another one."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scorer, name)


@pytest.mark.parametrize("kind", ["clip", "siglip", "blip-itm"])
def test_a_scorer_that_hands_on_to_another_offers_the_same(
    folders: dict[str, Path], kind: str
) -> None:
    scorer = load(folders, kind)
    assert is_dual_encoder(scorer) == (kind != "blip-itm")
    for offers in (is_dual_encoder, gives_log_odds, counts_tokens, sends_preparer):
        assert offers(Handing(scorer)) == offers(scorer)


def test_the_identity_follows_the_files_not_their_place(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    import shutil

    folder = tmp_path / "elsewhere" / "clip"
    shutil.copytree(folders["clip"], folder)
    here = load(folders, "clip").identity
    assert load({"clip": folder}, "clip").identity == here
    assert here.revision.startswith("sha256:")
    assert here.model == "clip"

    other = load({"clip": save_clip(tmp_path / "clip", seed=1)}, "clip").identity
    assert (other.revision != here.revision, other.preprocessing) == (True, here.preprocessing)


def test_half_precision_is_close_and_says_so(
    folders: dict[str, Path], pictures: list[Picture]
) -> None:
    full = score_pictures(load(folders, "clip"), pictures, CAPTIONS, ALL)
    scorer = load(folders, "clip", ",precision=bfloat16")
    half = score_pictures(scorer, pictures, CAPTIONS, ALL)

    assert scorer.identity.precision == "bfloat16"
    assert half.cosines == pytest.approx(full.cosines, abs=0.05)
    assert half.logits.dtype == np.float32


def test_a_hub_model_without_its_commit_is_refused() -> None:
    for name in ("openai/clip-vit-base-patch32", "openai/clip-vit-base-patch32@main"):
        (spec,) = parse_specs(f"clip:{name}")
        with pytest.raises(InputError, match="ID@COMMIT with the full commit hash"):
            spec.weights()
    (spec,) = parse_specs("clip:openai/clip@" + "0" * 40)
    assert spec.weights() == Weights(source="openai/clip", revision="0" * 40)


def test_a_hub_model_that_is_not_here_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (spec,) = parse_specs("blip-itm:nobody/nothing@" + "0" * 40)
    with pytest.raises(InputError, match="If you are offline, pass a folder"):
        load_scorer(spec)


def test_a_model_without_a_matching_head_is_refused(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    """A captioner's checkpoint loads, and its matching head would be random."""
    from safetensors.torch import load_file, save_file

    folder = save_blip(tmp_path / "blip")
    tensors = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith("itm_head")}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"lacks 2 tensors of Blip\w+, such as 'itm_head.bias'"):
        load({"blip-itm": folder}, "blip-itm")


def test_a_model_of_another_kind_is_named_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="tensor shapes do not match the class CLIPModel"):
        load({"clip": save_blip(tmp_path / "blip")}, "clip")


def test_pickled_weights_are_not_read(folders: dict[str, Path], tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    folder = save_clip(tmp_path / "clip")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="with weights in safetensors"):
        load({"clip": folder}, "clip")


def test_a_tokenizer_of_another_model_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = save_blip(
        tmp_path / "blip", words=[f"{letter}{n}" for letter in "ab" for n in range(99)]
    )
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (folder / name).unlink(missing_ok=True)
        if (folders["blip-itm"] / name).exists():
            (folder / name).write_bytes((folders["blip-itm"] / name).read_bytes())
    with pytest.raises(InputError, match="use the tokenizer"):
        load({"blip-itm": folder}, "blip-itm")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("blip:x", "expected KIND:SOURCE, where KIND is one of blip-itm, clip"),
        ("clop:x", "vilt, lxmert, oscar, matrix, vectors; did you mean 'clip'\\?$"),
        ("blip-itm:x+sigilp:y", "unknown KIND 'sigilp' after the \\+; did you mean 'siglip'\\?$"),
        ("clip:x,devcie=cpu", "unknown option 'devcie'; .*; did you mean 'device'\\?$"),
        ("clip", "expected KIND:SOURCE"),
        ("clip:", "expected KIND:SOURCE"),
        ("clip:x,colour=red", "option 'colour'; clip has the options centre, device"),
        ("blip-itm:x,scale=2", "option 'scale'; blip-itm has the options"),
    ],
)
def test_a_wrong_name_says_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_specs(text)


def test_several_models_are_named_with_a_plus() -> None:
    first, second = parse_specs("blip-itm:some+folder,device=cuda:0+clip:./a@b,centre=0.2")
    assert (first.source, dict(first.options)) == ("some+folder", {"device": "cuda:0"})
    assert (second.source, second.revision) == ("./a@b", None)
    assert second.number("centre") == 0.2


def test_a_folder_that_is_there_may_hold_an_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cl@1").mkdir()
    monkeypatch.chdir(tmp_path)
    (there,) = parse_specs("clip:cl@1")
    (elsewhere,) = parse_specs("clip:cl@2")
    assert (there.source, there.revision) == ("cl@1", None)
    assert (elsewhere.source, elsewhere.revision) == ("cl", "2")


def test_a_number_that_is_none_is_named(folders: dict[str, Path]) -> None:
    for options in (",scale=big", ",scale=-1"):
        with pytest.raises(InputError, match=r"scale=(big|-1\.0): expected"):
            load(folders, "clip", options)


def test_a_device_that_is_not_there_is_named(folders: dict[str, Path]) -> None:
    with pytest.raises(InputError, match="device=cuda:99: "):
        load(folders, "clip", ",device=cuda:99")
    with pytest.raises(InputError, match="device=toaster: "):
        load(folders, "blip-itm", ",device=toaster")


def test_the_sigmoid_does_not_overflow() -> None:
    found = sigmoid(np.array([-1e4, -2.0, 0.0, 2.0, 1e4], np.float32))
    assert found == pytest.approx([0, 0.11920292, 0.5, 0.88079708, 1], abs=1e-8)


@pytest.mark.parametrize("name", ["../a.safetensors", "/etc/passwd", "b/a.safetensors"])
def test_an_index_names_no_weights_outside_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": {"x": name}})
    )
    with pytest.raises(InputError, match="which is not in the folder"):
        load_model(Weights(source=str(tmp_path)), "CLIPModel")
