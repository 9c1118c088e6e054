"""Makes a tiny Stable Diffusion with a ControlNet, of random weights, to try harmonising."""

from pathlib import Path
from typing import Any

from eqforge.generators.diffusion.quiet import quiet_libraries
from eqforge.generators.diffusion.tiny import TOKENS, tiny_sd
from eqforge.generators.diffusion.tiny_tokenizer import make_tokenizer


def make_tiny_harmoniser(folder: Path, seed: int = 0, flag_above: float | None = None) -> Path:
    """Saves a tiny pipeline with a ControlNet; the same arguments give the same bytes.

    Args:
      folder: where to save it; created if missing.
      seed: of the weights.
      flag_above: similarity, in [-1, 1], from which on its safety checker flags a picture; None for
        no checker.

    Returns:
      The folder.
    """
    import torch

    with quiet_libraries(), torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        _tiny(flag_above).save_pretrained(folder)
    return folder


def _tiny(flag_above: float | None) -> Any:
    import torch
    from diffusers import ControlNetModel, StableDiffusionControlNetPipeline

    plain = tiny_sd(make_tokenizer(TOKENS), flag_above)
    controlnet: Any = ControlNetModel.from_unet(
        plain.unet, conditioning_embedding_out_channels=(16, 32)
    )
    # A new ControlNet changes nothing: its last layers are zero. Here depth is to be seen.
    for block in (*controlnet.controlnet_down_blocks, controlnet.controlnet_mid_block):
        torch.nn.init.normal_(block.weight, std=0.1)
    torch.nn.init.normal_(controlnet.controlnet_cond_embedding.conv_out.weight, std=0.1)
    return StableDiffusionControlNetPipeline(
        **plain.components,
        controlnet=controlnet,
        requires_safety_checker=flag_above is not None,
    )
