"""Generate a pair of images from one initial latent, the first guiding the second."""

import functools
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.identity import derive_seed, fingerprint
from eqforge.generators.diffusion.attention import controlled, limited_rows
from eqforge.generators.diffusion.control import plan_control
from eqforge.generators.diffusion.load import deterministic, load_pipeline, quiet_libraries
from eqforge.generators.diffusion.prompts import PromptPair
from eqforge.generators.diffusion.settings import DiffusionSettings, EditSettings, PairImages

if TYPE_CHECKING:
    import torch

GENERATOR_VERSION: Final = 3
"""Version of the code; every change that alters an image increases it."""


class PairGenerator:
    """Generates pairs with one diffusion model."""

    def __init__(self, settings: DiffusionSettings) -> None:
        self.settings = settings
        self.pipeline, self.identity = load_pipeline(settings)
        self.size_px = _size_px(self.pipeline, settings)

    @functools.cached_property
    def parameters(self) -> dict[str, str | int | float]:
        """Everything that decides an image except the request and the weights, for the row."""
        import diffusers
        import torch
        import transformers

        return {
            "generator_version": GENERATOR_VERSION,
            "pipeline": self.identity.pipeline,
            "scheduler": type(self.pipeline.scheduler).__name__,
            "steps": self.settings.steps,
            "guidance_scale": self.settings.guidance_scale,
            "size_px": self.size_px,
            "precision": self.settings.precision,
            "device": self.pipeline.device.type,
            "cpu_threads": self.settings.cpu_threads,
            "torch": torch.__version__,
            "diffusers": diffusers.__version__,
            "transformers": transformers.__version__,
        }

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest of everything that decides an image except the request and memory limits."""
        rows = self.settings.batch_rows
        return fingerprint({**self.parameters, "weights": self.identity.digest, "batch_rows": rows})

    def generate(self, pair: PromptPair, edit: EditSettings) -> PairImages:
        """Generate a pair; when out of memory, retry with half as many rows at a time.

        Raises:
          InputError: the prompts do not fit the model.
          torch.OutOfMemoryError: not even one row at a time fits.
        """
        import torch

        rows: int = self.settings.batch_rows
        while True:
            try:
                return self._draw(pair, edit, rows)
            except torch.OutOfMemoryError:
                if rows == 1:
                    raise
            # Outside the handler: the error holds the tensors of the failed attempt.
            rows //= 2
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

    def _draw(self, pair: PromptPair, edit: EditSettings, rows: int) -> PairImages:
        import torch

        pipeline, steps = self.pipeline, self.settings.steps
        pipeline.scheduler.set_timesteps(steps)
        calls = len(pipeline.scheduler.timesteps)
        latents = initial_latents(pipeline, self.size_px, pair.seed)
        sides = map_sides(pipeline, latents.shape[-1])
        control = plan_control(pair, edit, pipeline.tokenizer, calls, steps, latents, sides)
        masks: list[torch.Tensor] = []

        def after_step(
            pipeline: Any, step: int, timestep: Any, tensors: dict[str, Any]
        ) -> dict[str, Any]:
            blended, mask = blend(tensors["latents"], control.heat, edit.blend_threshold)
            masks[:] = [mask]
            return {"latents": blended}

        # The scheduler's noise is the same for both images.
        noise_seed = derive_seed(pair.seed, "diffusion", "scheduler-noise", 1)
        with (
            torch.inference_mode(),
            quiet_libraries(),
            deterministic(self.settings.cpu_threads),
            limited_rows(pipeline.unet, rows, control),
            controlled(pipeline.unet, control),
        ):
            output = pipeline(
                prompt=list(pair.prompts),
                height=self.size_px,
                width=self.size_px,
                num_inference_steps=steps,
                guidance_scale=self.settings.guidance_scale,
                generator=[torch.Generator("cpu").manual_seed(noise_seed) for _ in range(2)],
                latents=latents,
                callback_on_step_end=after_step if control.is_blended else None,
                output_type="np",
            )
        flagged = getattr(output, "nsfw_content_detected", None)
        # As diffusers does for PNG files.
        first, second = ((image * 255).round().astype(np.uint8) for image in output.images)
        return PairImages(
            images=(first, second),
            flagged=None if flagged is None else (bool(flagged[0]), bool(flagged[1])),
            batch_rows=rows,
            blend_mask=masks[0].cpu().numpy() if masks else None,
        )


def initial_latents(pipeline: Any, size_px: int, seed: int) -> "torch.Tensor":
    """Return the initial latent of both images, twice: [2, channels, height, width].

    It is drawn on the CPU in float32, so it is the same on every device and, up to rounding, in
    every precision.
    """
    import torch

    side = size_px // pipeline.vae_scale_factor
    random = torch.Generator("cpu").manual_seed(seed)
    shape = (1, pipeline.unet.config.in_channels, side, side)
    latent = torch.randn(shape, generator=random, dtype=torch.float32)
    return latent.to(pipeline.device, pipeline.unet.dtype).expand(2, -1, -1, -1).contiguous()


def map_sides(pipeline: Any, side: int) -> tuple[int, ...]:
    """Return the sides of a network's cross-attention maps: every level halves the latents'."""
    blocks = enumerate(pipeline.unet.config.down_block_types)
    return tuple(-(-side // 2**level) for level, block in blocks if "CrossAttn" in block)


def _size_px(pipeline: Any, settings: DiffusionSettings) -> int:
    channels, latent = pipeline.unet.config.in_channels, pipeline.vae.config.latent_channels
    if channels != latent:
        advice = ". To use an inpainting model, run `eqforge build eq-edit --editor inpaint`."
        raise InputError(
            f"{settings.model}: the model cannot draw from text alone: its network has {channels} "
            f"input channels, not {latent}{advice if channels == 2 * latent + 1 else ''}"
        )
    size = settings.size_px
    if size is None:
        size = int(pipeline.unet.config.sample_size * pipeline.vae_scale_factor)
    step = max(8, pipeline.vae_scale_factor)
    if size < step or size % step:
        raise InputError(f"--size-px {size}: expected a positive multiple of {step}")
    return size


def blend_mask(heat: "torch.Tensor", threshold: float, size: tuple[int, int]) -> "torch.Tensor":
    """Return where the second image may differ, bool of a latent's size (height, width).

    `heat` is the attention of each image to its words, [2, pixels] of a square map; `threshold` a
    fraction of the largest attention of an image.
    """
    from torch.nn import functional

    side = round(heat.shape[1] ** 0.5)
    maps = heat.reshape(2, 1, side, side)
    wide = functional.max_pool2d(maps, kernel_size=3, stride=1, padding=1)
    large = functional.interpolate(wide, size=size)[:, 0]
    inside = large > threshold * large.amax(dim=(1, 2), keepdim=True)
    return inside[0] | inside[1]


def blend(
    latents: "torch.Tensor", heat: "torch.Tensor", threshold: float
) -> "tuple[torch.Tensor, torch.Tensor]":
    """Take the second latent's pixels outside the words from the first, bit for bit.

    Source: `LocalBlend` in the notebooks of prompt-to-prompt: the attention to the words, summed
    over the steps so far, as replaced; widened by a 3x3 maximum, enlarged to the latent, cut at a
    fraction of its largest value; the union of both images.

    Returns:
      The latents, [2, channels, height, width], and the mask of `blend_mask`.
    """
    import torch

    mask = blend_mask(heat, threshold, (latents.shape[2], latents.shape[3]))
    second = torch.where(mask, latents[1], latents[0])
    return torch.stack([latents[0], second]), mask
