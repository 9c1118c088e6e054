"""Makes a tiny CLIP of random weights, with which the demo scores."""

from pathlib import Path

from eqforge.generators.diffusion.load import quiet_libraries
from eqforge.generators.diffusion.tiny import make_tokenizer

_TOKENS = 77
_IMAGE_PX = 32
_SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}


def save_tiny_clip(folder: Path) -> Path:
    """Save the model as transformers does and return its folder; the bytes are always the same."""
    import torch
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel

    tokenizer = make_tokenizer(_TOKENS)
    texts = {
        "vocab_size": len(tokenizer),
        "max_position_embeddings": _TOKENS,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    pictures = {"image_size": _IMAGE_PX, "patch_size": 8}
    config = CLIPConfig(
        text_config=_SIZES | texts, vision_config=_SIZES | pictures, projection_dim=16
    )
    with quiet_libraries(), torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        CLIPModel(config).save_pretrained(folder)
    size = {"height": _IMAGE_PX, "width": _IMAGE_PX}
    CLIPImageProcessorPil(size={"shortest_edge": _IMAGE_PX}, crop_size=size).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
