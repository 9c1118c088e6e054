"""Tiny FLUX and Qwen-Image pipelines with random weights, which editors of tests run with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from eqforge.generators.diffusion.load import quiet_libraries
from eqforge.generators.diffusion.tiny import (
    TOKENS,
    byte_letters,
    make_tiny_pipeline,
    make_tokenizer,
    tiny_text_config,
    tiny_vae,
)

_WIDTH = 32  # of what text encoders give
_LATENT = 4  # channels
_PATCH = 4 * _LATENT  # channels of 2x2 of them
_FLUX_CHANNELS = {
    "FluxPipeline": _PATCH,
    "FluxKontextPipeline": _PATCH,
    "FluxFillPipeline": 2 * _PATCH + 16,  # and what is around the mask, and the mask's 4x4 pixels
}
_QWEN_SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"),
    *("<|image_pad|>", "<|video_pad|>"),
)
_MEAN, _STD = [0.0] * _LATENT, [1.0] * _LATENT


def make_tiny_editor(folder: Path, pipeline: str) -> Path:
    """Save a tiny pipeline of any class that an editor runs with; returns its folder."""
    import torch

    if not pipeline.startswith(("Flux", "Qwen")):
        return make_tiny_pipeline(folder, pipeline)
    make = _qwen if pipeline.startswith("Qwen") else _flux
    with quiet_libraries(), torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        make(pipeline).save_pretrained(folder)
    return folder


def _flux(pipeline: str) -> Any:
    import diffusers
    from transformers import CLIPTextModel, T5Config, T5EncoderModel

    tokenizer, t5 = make_tokenizer(TOKENS), _t5_tokenizer()
    config = T5Config(
        vocab_size=len(t5), d_model=_WIDTH, d_kv=8, d_ff=64, num_layers=2, num_heads=4
    )
    return getattr(diffusers, pipeline)(
        scheduler=_flow_scheduler(),
        vae=tiny_vae(shift_factor=0.1159, scaling_factor=0.3611),
        text_encoder=CLIPTextModel(tiny_text_config(tokenizer)),
        tokenizer=tokenizer,
        text_encoder_2=T5EncoderModel(config),
        tokenizer_2=t5,
        transformer=_attentive(
            diffusers.FluxTransformer2DModel,
            in_channels=_FLUX_CHANNELS[pipeline],
            out_channels=_PATCH,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=_WIDTH,
            pooled_projection_dim=_WIDTH,
            guidance_embeds=True,
            axes_dims_rope=(4, 4, 8),
        ),
    )


def _qwen(pipeline: str) -> Any:
    import diffusers
    from transformers import Qwen2VLImageProcessor, Qwen2VLProcessor, Qwen2VLVideoProcessor

    tokenizer, processor = _qwen_tokenizer(), cast(Any, Qwen2VLProcessor)
    pixels = 28 * 28  # that a language model sees as one token
    images = Qwen2VLImageProcessor(min_pixels=4 * pixels, max_pixels=16 * pixels)
    return getattr(diffusers, pipeline)(
        scheduler=_flow_scheduler(),
        vae=diffusers.AutoencoderKLQwenImage(
            base_dim=4,
            z_dim=_LATENT,
            # The pipelines bring every original to a megapixel: 32x32 patches of 32 pixels.
            dim_mult=[1, 1, 1, 1, 1],
            num_res_blocks=1,
            temperal_downsample=[False, False, False, False],
            latents_mean=_MEAN,
            latents_std=_STD,
        ),
        text_encoder=_qwen_reader(tokenizer),
        tokenizer=tokenizer,
        processor=processor(images, tokenizer, Qwen2VLVideoProcessor()),
        transformer=_attentive(
            diffusers.QwenImageTransformer2DModel,
            in_channels=_PATCH,
            out_channels=_LATENT,
            num_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=_WIDTH,
            axes_dims_rope=(8, 4, 4),
        ),
    )


def _attentive(network: Any, **config: Any) -> Any:
    """Makes a transformer whose output depends on text and original much as on noise.

    Weights initialised as usual attend to all tokens alike, and little to any.
    """
    made = network(**config)
    for name, module in made.named_modules():
        if name.endswith(("norm_q", "norm_k", "norm_added_q", "norm_added_k")):
            module.weight.data.mul_(3)
        elif name.endswith((".to_v", ".add_v_proj", ".to_out.0")):
            module.weight.data.mul_(6)
    return made


def _flow_scheduler() -> Any:
    from diffusers import FlowMatchEulerDiscreteScheduler

    return FlowMatchEulerDiscreteScheduler(shift=3.0, use_dynamic_shifting=True)


def _t5_tokenizer() -> Any:
    """Returns a tokenizer of letters; T5's pieces are longer."""
    from transformers import T5Tokenizer

    letters = [chr(code) for code in range(0x21, 0x7F)]
    scores = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    vocabulary = [*scores, *((letter, -3.0) for letter in letters)]
    make: Any = T5Tokenizer
    return make(vocab=vocabulary, extra_ids=0, model_max_length=512)


def _qwen_tokenizer() -> Any:
    from transformers import Qwen2Tokenizer

    vocabulary = {letter: number for number, letter in enumerate(byte_letters())}
    vocabulary |= {token: len(vocabulary) + number for number, token in enumerate(_QWEN_SPECIAL)}
    make: Any = Qwen2Tokenizer
    return make(vocab=vocabulary, merges=[], extra_special_tokens=list(_QWEN_SPECIAL[1:]))


def _qwen_reader(tokenizer: Any) -> Any:
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in _QWEN_SPECIAL}
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": _WIDTH,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "rope_parameters": {
                "rope_type": "default",
                "mrope_section": [2, 2, 4],
                "rope_theta": 1000000.0,
            },
            "bos_token_id": ids["<|endoftext|>"],
            "eos_token_id": ids["<|im_end|>"],
            "pad_token_id": ids["<|endoftext|>"],
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": _WIDTH,
            "fullatt_block_indexes": [1],
        },
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )
    return Qwen2_5_VLForConditionalGeneration(config)
