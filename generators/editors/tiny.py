"""Makes tiny pipelines with random weights that edit pictures, to try editors and to test them.

They have all parts of the real ones. What they draw is coloured noise that depends on picture,
mask and text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.quiet import quiet_libraries
from eqforge.generators.diffusion.tiny import SIZE_PX, TOKENS, tiny_sd, tiny_sdxl
from eqforge.generators.diffusion.tiny_tokenizer import make_tokenizer
from eqforge.generators.editors.tiny_transformers import TRANSFORMERS, tiny_transformer_pipeline

TINY_SIZE_PX: Final = SIZE_PX
"""The side of the pictures that they edit, if no other is asked for."""

_UNET_CHANNELS = {
    "StableDiffusionPipeline": 4,
    "StableDiffusionXLPipeline": 4,
    "StableDiffusionInpaintPipeline": 9,  # latent, mask, and what is around it
    "StableDiffusionXLInpaintPipeline": 9,
    "StableDiffusionInstructPix2PixPipeline": 8,  # latent, and the original's
    "StableDiffusionXLInstructPix2PixPipeline": 8,
}


def make_tiny_editor(
    folder: str | Path, pipeline: str, seed: int = 0, flag_above: float | None = None
) -> Path:
    """Saves a tiny pipeline and returns its folder; the same arguments give the same bytes.

    Args:
      folder: where to save it; created if missing.
      pipeline: the class of diffusers, one that an editor runs with.
      seed: of the weights.
      flag_above: see `make_tiny_pipeline`; only Stable Diffusion has a safety checker.

    Raises:
      InputError: there is no tiny pipeline of that class.
    """
    import torch

    with quiet_libraries(), torch.random.fork_rng(devices=()):
        torch.manual_seed(seed)
        _make(pipeline, flag_above).save_pretrained(folder)
    return Path(folder)


def _make(pipeline: str, flag_above: float | None) -> Any:
    if pipeline in TRANSFORMERS:
        return tiny_transformer_pipeline(pipeline)
    channels = _UNET_CHANNELS.get(pipeline)
    if channels is None:
        raise InputError(f"there is no tiny {pipeline}")
    if "XL" in pipeline:
        return tiny_sdxl(make_tokenizer(TOKENS), pipeline, in_channels=channels)
    return tiny_sd(make_tokenizer(TOKENS), flag_above, pipeline, in_channels=channels)
