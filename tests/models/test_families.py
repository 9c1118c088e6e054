"""Every other family against transformers' own forward pass, on tiny real models."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.models.dual_encoders import ARCHITECTURES
from eqforge.models.scorer import Picture, Scorer, counts_tokens, is_dual_encoder
from eqforge.models.spec import load_scorer, parse_specs
from tests import tiny_families
from tests.evaluation.conversations.made import save_llava
from tests.optional import optional
from tests.scored import image_of, score_pictures
from tests.tiny_families import SAVE

optional("transformers")

ALL = np.array([(image, caption) for image in range(3) for caption in range(2)])
CAPTIONS = ["a red cup", "two dog and a cat on the box"]
DUAL = [kind for kind in SAVE if kind in ARCHITECTURES]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("families")
    made = {kind: save(root / kind) for kind, save in SAVE.items()}
    tiny_families.write_regions(root / "regions.tsv", ["0", "1", "2"])
    return made


@pytest.fixture(scope="module")
def pictures() -> list[Picture]:
    rng = np.random.default_rng(5)
    sizes = ((40, 60), (64, 33), (32, 32))
    return [
        Picture(key=str(n), pixels=rng.integers(0, 256, (*size, 3), dtype=np.uint8))
        for n, size in enumerate(sizes)
    ]


def load(folders: dict[str, Path], kind: str, options: str = "") -> Scorer:
    features = f",features={folders[kind].parent / 'regions.tsv'}" if kind == "lxmert" else ""
    (spec,) = parse_specs(f"{kind}:{folders[kind]}{features}{options}")
    return load_scorer(spec)


def model_of(name: str, folder: Path) -> Any:
    import transformers

    return getattr(transformers, name).from_pretrained(folder).eval()


def tokens_of(folder: Path) -> Any:
    from transformers import AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)(CAPTIONS, padding=True, return_tensors="pt")
    return {name: tokens[name] for name in ("input_ids", "attention_mask")}


def pixels_of(folder: Path, picture: Picture) -> Any:
    from transformers import AutoImageProcessor

    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    return processor(images=[image_of(picture)], return_tensors="pt")


def cosines_of(kind: str, folder: Path, pictures: list[Picture]) -> NDArray[np.float32]:
    """What transformers' own classes say, row by row an image."""
    import torch

    pixels = torch.cat([pixels_of(folder, picture)["pixel_values"] for picture in pictures])
    given = {**tokens_of(folder), "pixel_values": pixels}
    with torch.inference_mode():
        if kind == "flava":
            model = model_of("FlavaForPreTraining", folder)
            masked = torch.zeros(3, 16, dtype=torch.long)
            answers = []
            for row in range(3):
                # It takes as many images as captions.
                one = {**tokens_of(folder), "pixel_values": pixels[[row, row]]}
                found = model(
                    **one,
                    input_ids_masked=one["input_ids"],
                    bool_masked_pos=masked[[row, row]],
                    skip_multimodal_encoder=True,
                    return_loss=False,
                )
                answers.append(found.contrastive_logits_per_image[0])
            scale = model.flava.logit_scale.exp()
            return (torch.stack(answers) / scale).numpy()
        if kind == "blip-itc":
            model = model_of("BlipForImageTextRetrieval", folder)
            return model(**given, use_itm_head=False).itm_score.numpy()
        model = model_of(ARCHITECTURES[kind].model, folder)
        found = model(**given).logits_per_image
        scale = 1 / model.temperature if kind == "align" else model.logit_scale.exp()
        return (found / scale).numpy()


@pytest.mark.parametrize("kind", DUAL)
def test_a_dual_encoder_has_the_cosines_of_its_own_forward_pass(
    folders: dict[str, Path], pictures: list[Picture], kind: str
) -> None:
    found = score_pictures(load(folders, kind), pictures, CAPTIONS, ALL).cosines
    expected = cosines_of(kind, folders[kind], pictures).ravel()
    assert found == pytest.approx(expected, abs=2e-6)
    assert np.ptp(expected) > 1e-3


def test_vilt_ranks_as_its_own_forward_pass_does(
    folders: dict[str, Path], pictures: list[Picture]
) -> None:
    """Its own pass puts patches into an order of a global generator: equal but for rounding."""
    import torch

    model = model_of("ViltForImageAndTextRetrieval", folders["vilt"])
    expected = []
    with torch.inference_mode():
        for picture in pictures:
            tokens, pixels = tokens_of(folders["vilt"]), pixels_of(folders["vilt"], picture)
            for row in range(2):
                one = {name: tensor[[row]] for name, tensor in tokens.items()}
                expected.append(model(**one, **pixels).logits[0, 0].item())
    found = score_pictures(load(folders, "vilt"), pictures, CAPTIONS, ALL).logits
    assert found == pytest.approx(np.array(expected), abs=1e-5)
    assert np.ptp(expected) > 1e-2


def test_blip2_matches_as_its_own_head_does(
    folders: dict[str, Path], pictures: list[Picture]
) -> None:
    import torch

    folder = folders["blip2-itm"]
    model = model_of("Blip2ForImageTextRetrieval", folder)
    pixels = torch.cat([pixels_of(folder, picture)["pixel_values"] for picture in pictures])
    given = {name: tensor[ALL[:, 1]] for name, tensor in tokens_of(folder).items()}
    with torch.inference_mode():
        classes = model(
            pixel_values=pixels[ALL[:, 0]], **given, use_image_text_matching_head=True
        ).logits_per_image
    found = score_pictures(load(folders, "blip2-itm"), pictures, CAPTIONS, ALL)
    assert found.logits == pytest.approx((classes[:, 1] - classes[:, 0]).numpy(), abs=1e-5)
    assert found.probabilities == pytest.approx(classes.softmax(-1)[:, 1].numpy(), abs=1e-6)
    assert np.ptp(found.logits) > 1e-3


@pytest.mark.parametrize("has_decoder", [True, False])
def test_vqascore_is_the_probability_of_yes(
    pictures: list[Picture], tmp_path: Path, has_decoder: bool
) -> None:
    """As `t2v_metrics` computes it: from the loss of an encoder-decoder, or from the next token."""
    import torch
    from transformers import AutoProcessor

    save = tiny_families.save_blip2_t5 if has_decoder else save_llava
    (tmp_path / "m").mkdir()
    (spec,) = parse_specs(f"vqascore:{save(tmp_path / 'm')}")
    scorer = load_scorer(spec)
    assert scorer.identity.family == ("blip2" if has_decoder else "llava")
    found = score_pictures(scorer, pictures, CAPTIONS, ALL)
    processor = AutoProcessor.from_pretrained(tmp_path / "m", backend="pil")
    name = "Blip2ForConditionalGeneration" if has_decoder else "LlavaForConditionalGeneration"
    model, expected = model_of(name, tmp_path / "m"), []
    for image, caption in ALL:
        text = f'Does this figure show "{CAPTIONS[caption]}"? Please answer yes or no.'
        if not has_decoder:
            text = f"USER: <image>\n{text} ASSISTANT:"
        picture = image_of(pictures[image])
        inputs = processor(images=picture, text=text, return_tensors="pt")
        labels = processor.tokenizer("Yes", return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            if has_decoder:
                expected.append((-model(**inputs, labels=labels).loss).exp().item())
            else:
                shares = model(**inputs).logits[0, -1].softmax(-1)
                expected.append(shares[processor.tokenizer.convert_tokens_to_ids("Y")].item())
    assert found.probabilities == pytest.approx(expected, rel=1e-5)
    odds = np.log(expected) - np.log1p(-np.array(expected))
    assert found.logits == pytest.approx(odds, abs=1e-4)
    assert np.ptp(expected) > 1e-6


def test_lxmert_reads_features_and_boxes_of_the_regions_alone(
    folders: dict[str, Path], pictures: list[Picture], tmp_path: Path
) -> None:
    import torch

    scorer = load(folders, "lxmert")
    first = tiny_families.write_regions(tmp_path / "again.tsv", ["0"])
    model = model_of("LxmertForPreTraining", folders["lxmert"])
    regions = torch.from_numpy(first)[None].expand(2, -1, -1)
    wide = tiny_families.REGION_FEATURES
    with torch.inference_mode():
        classes = model(
            visual_feats=regions[..., :wide],
            visual_pos=regions[..., wide : wide + 4],
            **tokens_of(folders["lxmert"]),
        ).cross_relationship_score
    keys = [Picture(key=picture.key) for picture in pictures]
    found = score_pictures(scorer, keys, CAPTIONS, ALL)
    assert found.logits[:2] == pytest.approx((classes[:, 1] - classes[:, 0]).numpy(), abs=1e-5)
    assert np.ptp(found.logits) > 1e-3
    with pytest.raises(ValueError, match="no line for this image"):
        scorer.prepare(Picture(key="unknown"))


def test_lxmert_refuses_features_of_another_detector(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    tiny_families.write_regions(tmp_path / "wide.tsv", ["0"], width=20)
    (spec,) = parse_specs(f"lxmert:{folders['lxmert']},features={tmp_path / 'wide.tsv'}")
    with pytest.raises(ValueError, match="found 20 numbers per region; expected 16 "):
        load_scorer(spec).prepare(Picture(key="0"))


def test_lxmert_needs_the_file_of_features(folders: dict[str, Path]) -> None:
    (spec,) = parse_specs(f"lxmert:{folders['lxmert']}")
    with pytest.raises(InputError, match="needs region features"):
        load_scorer(spec)


@pytest.mark.parametrize("kind", SAVE)
def test_padding_changes_no_score_but_in_its_last_bits(
    folders: dict[str, Path], pictures: list[Picture], kind: str
) -> None:
    loaded = load(folders, kind)
    is_dual = is_dual_encoder(loaded)
    assert counts_tokens(loaded)
    counts = loaded.count_tokens(CAPTIONS)
    assert counts[0] < counts[1] < 24
    scorer: Any = loaded  # `length` is no part of the protocol
    images = scorer.encode_images([scorer.prepare(picture) for picture in pictures])
    if is_dual:
        shortest = scorer.encode_captions(CAPTIONS)
        padded = scorer.encode_captions(CAPTIONS, length=24)
    else:
        shortest = scorer.match(images, CAPTIONS, ALL).logits
        padded = scorer.match(images, CAPTIONS, ALL, length=24).logits
    assert padded == pytest.approx(shortest, abs=2e-5)


def needs_float32(scores: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Whether a score has more binary digits than bfloat16, or the difference of two such."""
    return np.asarray((scores.view(np.uint32) & 0x7F) != 0)


@pytest.mark.parametrize("kind", ["blip-itm", "vilt", "blip2-itm", "lxmert"])
@pytest.mark.parametrize("how", ["autocast", "precision"])
def test_a_fusion_encoder_in_bfloat16_answers_in_float32(
    folders: dict[str, Path], pictures: list[Picture], kind: str, how: str
) -> None:
    """The head's own steps are 0.03 near 5 in bfloat16, so that minimal pairs would tie."""
    import torch

    scorer = load(folders, kind, ",precision=bfloat16" if how == "precision" else "")
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=how == "autocast"):
        found = score_pictures(scorer, pictures, CAPTIONS, ALL).logits
    exact = score_pictures(load(folders, kind), pictures, CAPTIONS, ALL).logits
    assert found.dtype == np.float32
    assert needs_float32(found).mean() > 0.5
    assert found == pytest.approx(exact, abs=0.1 + 0.1 * float(np.abs(exact).max()))
