"""Make tiny models of random weights, for the demo and the tests: Stable Diffusion and CLIP.

The diffusion models have all parts of real ones and draw coloured noise that depends on the prompt.
At their native size, 64x64 pixels, they have attention maps of 32x32 and 16x16, so every part of
prompt-to-prompt is used.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.load import quiet_libraries

SIZE_PX = 64
TOKENS = 77


_UNET_CHANNELS = {
    "StableDiffusionPipeline": 4,
    "StableDiffusionXLPipeline": 4,
    "StableDiffusionInpaintPipeline": 9,  # latent, mask, and what is around it
    "StableDiffusionXLInpaintPipeline": 9,
    "StableDiffusionInstructPix2PixPipeline": 8,  # latent, and the original's
    "StableDiffusionXLInstructPix2PixPipeline": 8,
}


def make_tiny_pipeline(folder: str | Path, pipeline: str = "StableDiffusionPipeline") -> Path:
    """Save a tiny pipeline of a class of diffusers; the same class gives the same bytes."""
    import torch

    channels = _UNET_CHANNELS.get(pipeline)
    if channels is None:
        raise InputError(f"eqforge has no tiny model for {pipeline}")
    tokenizer = make_tokenizer(TOKENS)
    with quiet_libraries(), torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        make = _tiny_sdxl if "XL" in pipeline else _tiny_sd
        make(tokenizer, pipeline, channels).save_pretrained(folder)
    return Path(folder)


@contextlib.contextmanager
def naming_folder(folder: Path) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace(str(folder), folder.name)) from error


def _tiny_sd(tokenizer: Any, pipeline: str, channels: int) -> Any:
    import diffusers
    from transformers import CLIPTextModel

    return getattr(diffusers, pipeline)(
        vae=tiny_vae(),
        text_encoder=CLIPTextModel(tiny_text_config(tokenizer)),
        tokenizer=tokenizer,
        unet=_tiny_unet(in_channels=channels, cross_attention_dim=32),
        scheduler=tiny_scheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )


def _tiny_sdxl(tokenizer: Any, pipeline: str, channels: int) -> Any:
    import diffusers
    from transformers import CLIPTextModel, CLIPTextModelWithProjection

    config = tiny_text_config(tokenizer)
    network = _tiny_unet(
        in_channels=channels,
        cross_attention_dim=64,
        transformer_layers_per_block=(1, 2),
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        projection_class_embeddings_input_dim=6 * 8 + 32,
    )
    return getattr(diffusers, pipeline)(
        vae=tiny_vae(),
        text_encoder=CLIPTextModel(config),
        text_encoder_2=CLIPTextModelWithProjection(config),
        tokenizer=tokenizer,
        tokenizer_2=tokenizer,
        unet=network,
        scheduler=tiny_scheduler(),
        add_watermarker=False,
    )


def _tiny_unet(**config: Any) -> Any:
    """Make a U-Net whose attention distinguishes words and places, and whose steps change little.

    With the usual initial weights, all words would get equal attention and two prompts share no
    pixel.
    """
    from diffusers import UNet2DConditionModel

    unet: Any = UNet2DConditionModel(
        sample_size=SIZE_PX // 2,
        block_out_channels=(16, 32),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        attention_head_dim=2,
        norm_num_groups=8,
        **config,
    )
    for name, module in unet.named_modules():
        if name.endswith("attn2"):
            module.to_k.weight.data.mul_(30)
            module.to_out[0].weight.data.mul_(3)
    unet.conv_out.weight.data.mul_(2)
    return unet


def tiny_vae(**config: Any) -> Any:
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(16, 32),
        down_block_types=("DownEncoderBlock2D", "DownEncoderBlock2D"),
        up_block_types=("UpDecoderBlock2D", "UpDecoderBlock2D"),
        latent_channels=4,
        norm_num_groups=8,
        sample_size=SIZE_PX,
        **config,
    )


def tiny_scheduler() -> Any:
    from diffusers import PNDMScheduler

    return PNDMScheduler(
        beta_start=0.00085,
        beta_end=0.012,
        beta_schedule="scaled_linear",
        skip_prk_steps=True,
        set_alpha_to_one=False,
        steps_offset=1,
    )


def tiny_text_config(tokenizer: Any) -> Any:
    from transformers import CLIPTextConfig

    return CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=TOKENS,
        projection_dim=32,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def save_tiny_clip(folder: Path) -> Path:
    """Save a tiny CLIP as transformers does, always with the same bytes; return its folder."""
    import torch
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel

    side_px = 32
    tokenizer = make_tokenizer(TOKENS)
    sizes = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    texts = {
        "vocab_size": len(tokenizer),
        "max_position_embeddings": TOKENS,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    images = {"image_size": side_px, "patch_size": 8}
    config = CLIPConfig(text_config=sizes | texts, vision_config=sizes | images, projection_dim=16)
    with quiet_libraries(), torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        CLIPModel(config).save_pretrained(folder)
    size = {"height": side_px, "width": side_px}
    CLIPImageProcessorPil(size={"shortest_edge": side_px}, crop_size=size).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


_MERGES = 200
_WORDS = """
a an the of on in at with and to by near photo painting drawing picture standing sitting wearing
horse cattle elephant goat deer camel zebra dog cat bird fish car truck boat train house castle tree
flower mountain beach desert river forest garden street city zoo grass snow sunset sunrise night
winter summer autumn spring rain water under over left right front behind red blue green yellow
white black brown small large old young cap hat crown scarf glasses
"""
Pair = tuple[str, str]


def make_tokenizer(max_tokens: int) -> Any:
    """Return a CLIP tokenizer; `max_tokens` of a text includes the start and end token."""
    from transformers import CLIPTokenizer

    merges, letters = _learn_merges(), byte_letters()
    symbols = [*letters, *(f"{letter}</w>" for letter in letters), *map("".join, merges)]
    symbols += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {symbol: number for number, symbol in enumerate(symbols)}
    make: Any = CLIPTokenizer
    return make(vocab=vocabulary, merges=merges, model_max_length=max_tokens)


def _learn_merges() -> list[Pair]:
    """Repeatedly merge the most frequent pair of neighbours; ties go to the first in order."""
    words = [[*word[:-1], f"{word[-1]}</w>"] for word in _WORDS.split()]
    merges: list[Pair] = []
    while len(merges) < _MERGES:
        counts = Counter(pair for word in words for pair in pairwise(word))
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(best)
        words = [_merge(word, best) for word in words]
    return merges


def _merge(word: list[str], pair: Pair) -> list[str]:
    merged: list[str] = []
    for symbol in word:
        if merged and (merged[-1], symbol) == pair:
            merged[-1] += symbol
        else:
            merged.append(symbol)
    return merged


def byte_letters() -> list[str]:
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return [*map(chr, printable), *(chr(0x100 + n) for n in range(256 - len(printable)))]
