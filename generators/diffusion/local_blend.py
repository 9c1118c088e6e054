"""Keeps the second image equal to the first, except where the words are.

Source: `LocalBlend` in the notebooks of prompt-to-prompt: the attention to the words, summed over
  the steps so far, as replaced; widened by a 3x3 maximum, enlarged to the latent, cut at a fraction
  of its largest value; the union of both pictures.
"""

from typing import TYPE_CHECKING

from eqforge.generators.diffusion.records import LocalBlend

if TYPE_CHECKING:
    import torch


def blend_mask(heat: "torch.Tensor", threshold: float, size: tuple[int, int]) -> "torch.Tensor":
    """Returns where the second image may differ: bool [height, width].

    Args:
      heat: [2, pixels], the attention of each image to its words, on a square map.
      threshold: fraction of the largest attention of an image.
      size: height and width of the latent.
    """
    from torch.nn import functional

    side = round(heat.shape[1] ** 0.5)
    maps = heat.reshape(2, 1, side, side)
    wide = functional.max_pool2d(maps, kernel_size=3, stride=1, padding=1)
    large = functional.interpolate(wide, size=size)[:, 0]
    inside = large > threshold * large.amax(dim=(1, 2), keepdim=True)
    return inside[0] | inside[1]


def blend(
    latents: "torch.Tensor", heat: "torch.Tensor", settings: LocalBlend, step: int, steps: int
) -> "tuple[torch.Tensor, torch.Tensor | None]":
    """Takes the second latent's pixels outside the words from the first, bit for bit.

    Args:
      latents: [2, channels, height, width] after a step.
      heat: [2, pixels], the attention to the words so far.
      settings: threshold and start.
      step: number of the step, from 0.
      steps: number of steps.

    Returns:
      The latents, and the mask; None before the blend starts.
    """
    import torch

    if step < int(settings.start * steps):
        return latents, None
    mask = blend_mask(heat, settings.threshold, (latents.shape[2], latents.shape[3]))
    second = torch.where(mask, latents[1], latents[0])
    return torch.stack([latents[0], second]), mask
