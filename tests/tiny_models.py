"""Tiny image-text models with real tokenizers, saved in folders as transformers saves them."""

import string
from collections.abc import Iterable
from pathlib import Path
from typing import Any

IMAGE_PX = 32
WORDS = ["a", "red", "blue", "green", "cup", "ball", "box", "on", "the", "and", "dog", "cat", "two"]


def bert_tokenizer(folder: Path, words: Iterable[str] = WORDS) -> Any:
    """A WordPiece tokenizer of some words and of every letter."""
    from transformers import BertTokenizer

    letters = [*string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase)]
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = list(dict.fromkeys([*specials, *letters, *sorted(words)]))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    tokenizer = BertTokenizer.from_pretrained(folder)
    assert len(tokenizer) == len(tokens)
    return tokenizer


def clip_tokenizer() -> Any:
    """CLIP's byte-pair tokenizer with letters as its only merges."""
    from transformers import CLIPTokenizer

    letters = list(string.ascii_lowercase)
    tokens = [*letters, *(f"{letter}</w>" for letter in letters)]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    tokenizer = CLIPTokenizer(vocab={token: n for n, token in enumerate(tokens)}, merges=[])
    assert len(tokenizer) == len(tokens)
    return tokenizer


def save_clip(folder: Path, seed: int = 0) -> Path:
    import torch
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel

    torch.manual_seed(seed)
    tokenizer = clip_tokenizer()
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = CLIPConfig(
        text_config=_SIZES
        | ends
        | {"vocab_size": len(tokenizer), "max_position_embeddings": 24, "pad_token_id": 0},
        vision_config=_SIZES | _VISION,
        projection_dim=16,
    )
    CLIPModel(config).save_pretrained(folder)
    size = {"height": IMAGE_PX, "width": IMAGE_PX}
    CLIPImageProcessorPil(size={"shortest_edge": IMAGE_PX}, crop_size=size).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_dinov2(folder: Path, seed: int = 0) -> Path:
    """Saves a DINOv2 of random weights, with the preparation of the published ones, made small."""
    import torch
    from transformers import BitImageProcessorPil, Dinov2Config, Dinov2Model

    torch.manual_seed(seed)
    sizes = ("hidden_size", "num_hidden_layers", "num_attention_heads")
    shape: dict[str, Any] = {**{name: _SIZES[name] for name in sizes}, **_VISION}
    Dinov2Model(Dinov2Config(**shape, initializer_range=0.3)).save_pretrained(folder)
    crop = {"height": IMAGE_PX, "width": IMAGE_PX}
    size = {"shortest_edge": IMAGE_PX * 8 // 7}
    statistics: dict[str, Any] = {
        "image_mean": [0.485, 0.456, 0.406],
        "image_std": [0.229, 0.224, 0.225],
    }
    BitImageProcessorPil(size=size, crop_size=crop, **statistics).save_pretrained(folder)
    return folder


def save_siglip(folder: Path, seed: int = 0) -> Path:
    """Saves a SigLIP of random weights, with a word tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from transformers import (
        PreTrainedTokenizerFast,
        SiglipConfig,
        SiglipImageProcessorPil,
        SiglipModel,
    )

    torch.manual_seed(seed)
    words = ["<pad>", "<unk>", *WORDS]
    core = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, "<unk>"))
    core.normalizer, core.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", unk_token="<unk>", eos_token="<pad>"
    )
    config = SiglipConfig(
        text_config=_SIZES | {"vocab_size": len(words), "max_position_embeddings": 12},
        vision_config=_SIZES | _VISION,
    )
    model = SiglipModel(config)
    with torch.no_grad():
        model.logit_scale.fill_(2.0)
        model.logit_bias.fill_(-1.5)
    model.save_pretrained(folder)
    size = {"height": IMAGE_PX, "width": IMAGE_PX}
    SiglipImageProcessorPil(size=size).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_blip(
    folder: Path, words: Iterable[str] = WORDS, seed: int = 0, spread: float = 0.02
) -> Path:
    import torch
    from transformers import BlipConfig, BlipForImageTextRetrieval, BlipImageProcessorPil

    torch.manual_seed(seed)
    tokenizer = bert_tokenizer(folder, words)
    text = {
        "vocab_size": len(tokenizer),
        "encoder_hidden_size": 32,
        "max_position_embeddings": 40,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
        "sep_token_id": tokenizer.sep_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    common = _SIZES | {"initializer_range": spread}
    config = BlipConfig(
        text_config=common | text, vision_config=common | _VISION, image_text_hidden_size=16
    )
    BlipForImageTextRetrieval(config).save_pretrained(folder)
    size = {"height": IMAGE_PX, "width": IMAGE_PX}
    BlipImageProcessorPil(size=size).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def train_blip(folder: Path, pictures: list[Any], captions: list[str]) -> Path:
    """Saves a BLIP that has learnt by heart which caption is of which picture, in some seconds.

    Half of a batch are captions with their own picture, half with another one.
    """
    import torch
    from transformers import AutoImageProcessor, AutoTokenizer, BlipForImageTextRetrieval

    words = {word.strip(".,").lower() for caption in captions for word in caption.split()}
    # With weights as small as BLIP's own a model so narrow learns nothing for a minute.
    save_blip(folder, words, spread=0.15)
    model = BlipForImageTextRetrieval.from_pretrained(folder).eval()
    tokens = AutoTokenizer.from_pretrained(folder)(captions, padding=True, return_tensors="pt")
    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    pixels = processor(images=pictures, return_tensors="pt").pixel_values
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    draw = torch.Generator().manual_seed(0)
    half, count = 32, len(captions)
    labels = torch.tensor([1] * half + [0] * half)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for _ in range(TRAINING_STEPS):
        asked = torch.randint(count, (2 * half,), generator=draw)
        others = asked[half:] + torch.randint(1, count, (half,), generator=draw)
        shown = torch.cat([asked[:half], others % count])
        classes = _classify(model, pixels, tokens, shown, asked)
        loss = torch.nn.functional.cross_entropy(classes, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < 0.01:
            break
    torch.set_num_threads(threads)
    model.save_pretrained(folder)
    return folder


def _classify(model: Any, pixels: Any, tokens: Any, shown: Any, asked: Any) -> Any:
    import torch

    states = model.vision_model(pixel_values=pixels).last_hidden_state[shown]
    fused = model.text_encoder(
        input_ids=tokens["input_ids"][asked],
        attention_mask=tokens["attention_mask"][asked],
        encoder_hidden_states=states,
        encoder_attention_mask=torch.ones(states.shape[:2]),
    )
    return model.itm_head(fused.last_hidden_state[:, 0])


TRAINING_STEPS = 300
_SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "projection_dim": 16,
}
_VISION = {"image_size": IMAGE_PX, "patch_size": 8}
