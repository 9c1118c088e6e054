"""Finds the noise that draws a photograph: DDIM inversion, and null-text optimisation.

DDIM's steps are taken backwards, without guidance; the noise that is found draws the photograph
again, but not under guidance, which moves every step elsewhere. Null-text optimisation changes what
guidance compares with, the embedding of no text, step by step, until it does.

Source: Song et al. 2021, "Denoising Diffusion Implicit Models"; Mokady et al. 2023, "Null-text
  Inversion for Editing Real Images using Guided Diffusion Models", and its authors' notebook, of
  which the rate and the end of the optimisation are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eqforge.core.late import numpy as np

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

_RATE = 1e-2
_ENOUGH = (1e-5, 2e-5)
"""The squared error at which optimisation ends: the first step's, and what each one adds."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Text:
    """What the network is told: the text encoder's output, and SDXL's further conditions.

    Attributes:
      hidden: [1, tokens, channels].
      added: `added_cond_kwargs` of the network; None for Stable Diffusion.
    """

    hidden: torch.Tensor
    added: dict[str, torch.Tensor] | None


def encode(pipeline: Any, image: NDArray[np.uint8]) -> torch.Tensor:
    """Returns the latent of an image, [1, channels, height, width], without the encoder's noise."""
    import torch

    pixels = torch.from_numpy(image.astype(np.float32) / 127.5 - 1).permute(2, 0, 1)[None]
    with torch.no_grad(), _full_precision(pipeline.vae) as vae:
        latent = vae.encode(pixels.to(pipeline.device)).latent_dist.mode()
    return (latent * vae.config.scaling_factor).to(pipeline.unet.dtype)


def decode(pipeline: Any, latent: torch.Tensor) -> NDArray[np.uint8]:
    """Returns the image of a latent, uint8 [height, width, 3]."""
    import torch

    with torch.no_grad(), _full_precision(pipeline.vae) as vae:
        pixels = vae.decode(latent.float() / vae.config.scaling_factor).sample[0]
    scaled = (pixels.permute(1, 2, 0).cpu().numpy() / 2 + 0.5).clip(0, 1)
    return (scaled * 255).round().astype(np.uint8)


@contextmanager
def _full_precision(vae: Any) -> Iterator[Any]:
    """Computes in float32 for the block: autoencoders overflow in fp16."""
    import torch

    dtype = vae.dtype
    if dtype == torch.float32:
        yield vae
        return
    vae.to(torch.float32)
    try:
        yield vae
    finally:
        vae.to(dtype)


def ddim_path(
    pipeline: Any, latent: torch.Tensor, prompt: str, steps: int
) -> tuple[list[torch.Tensor], Text]:
    """Takes DDIM's steps backwards, without guidance.

    Args:
      pipeline: of Stable Diffusion or SDXL, with a DDIM scheduler.
      latent: of the image, [1, channels, height, width].
      prompt: says what the image shows.
      steps: how many.

    Returns:
      The latents after every step, the image's own first and the noise last, and what the network
      was told.
    """
    from diffusers import DDIMInverseScheduler

    path, told = [latent], {}

    def keep(_network: Any, _args: Any, kwargs: dict[str, Any]) -> None:
        told.update(kwargs)

    def after_step(_pipeline: Any, _step: int, _time: Any, tensors: dict[str, Any]) -> Any:
        path.append(tensors["latents"].clone())
        return {}

    forward, side = pipeline.scheduler, pipeline.vae_scale_factor
    pipeline.scheduler = DDIMInverseScheduler.from_config(forward.config)
    hook = pipeline.unet.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        pipeline(
            prompt=prompt,
            height=latent.shape[2] * side,
            width=latent.shape[3] * side,
            num_inference_steps=steps,
            guidance_scale=1.0,
            latents=latent,
            callback_on_step_end=after_step,
            output_type="latent",
        )
    finally:
        hook.remove()
        pipeline.scheduler = forward
    return path, Text(hidden=told["encoder_hidden_states"], added=told.get("added_cond_kwargs"))


def null_texts(
    pipeline: Any, path: list[torch.Tensor], text: Text, guidance: float, inner_steps: int
) -> dict[int, torch.Tensor]:
    """Returns what guidance has to compare with in every step, for the path to be walked back.

    Args:
      pipeline: with a DDIM scheduler.
      path: see `ddim_path`.
      text: what the network is told of the image.
      guidance: weight of the text against none, above 1.
      inner_steps: of the optimisation, for each step of the path.

    Returns:
      Of every timestep the embedding that takes the place of no text's, [1, tokens, channels].
    """
    import torch

    steps = len(path) - 1
    pipeline.scheduler.set_timesteps(steps, device=pipeline.device)
    latent, plain = path[-1], _no_text(pipeline, text)
    found = {}
    for number, timestep in enumerate(pipeline.scheduler.timesteps):
        step = _Step(pipeline, latent, timestep, text, guidance)
        optimised = step.optimise(
            plain,
            path[-2 - number],
            inner_steps,
            _RATE * (1 - number / (2 * steps)),
            _ENOUGH[0] + number * _ENOUGH[1],
        )
        plain = Text(hidden=optimised, added=plain.added)
        found[int(timestep)] = optimised
        with torch.no_grad():
            latent = step.take(plain)
    return found


class _Step:
    """A step of denoising from one latent, which is guided by one text."""

    def __init__(
        self, pipeline: Any, latent: torch.Tensor, timestep: Any, text: Text, guidance: float
    ) -> None:
        import torch

        self.pipeline, self.latent, self.timestep = pipeline, latent, timestep
        self.guidance = guidance
        with torch.no_grad():
            self.told = self._noise(text)

    def _noise(self, text: Text) -> Any:
        return self.pipeline.unet(
            self.latent,
            self.timestep,
            encoder_hidden_states=text.hidden.to(self.latent.dtype),
            added_cond_kwargs=text.added,
            return_dict=False,
        )[0]

    def take(self, plain: Text) -> Any:
        """Returns the next latent, under guidance against `plain`."""
        untold = self._noise(plain)
        noise = untold + self.guidance * (self.told - untold)
        return self.pipeline.scheduler.step(noise, self.timestep, self.latent, return_dict=False)[0]

    def optimise(
        self, plain: Text, goal: torch.Tensor, steps: int, rate: float, enough: float
    ) -> torch.Tensor:
        """Returns `plain`, changed so that the next latent comes near to `goal`."""
        import torch

        hidden = plain.hidden.detach().float().clone().requires_grad_()
        optimiser = torch.optim.Adam([hidden], lr=rate)
        with torch.enable_grad():
            for _ in range(steps):
                reached = self.take(Text(hidden=hidden, added=plain.added))
                loss: Any = torch.nn.functional.mse_loss(reached.float(), goal.float())
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                if loss.item() < enough:
                    break
        return hidden.detach()


def _no_text(pipeline: Any, text: Text) -> Text:
    """Returns what the network is told for guidance to compare with."""
    import torch

    with torch.no_grad():
        encoded = pipeline.encode_prompt(
            "",
            device=pipeline.device,
            num_images_per_prompt=1,
            do_classifier_free_guidance=True,
        )
    if text.added is None:
        return Text(hidden=encoded[1], added=None)
    return Text(hidden=encoded[1], added={**text.added, "text_embeds": encoded[3]})


@contextmanager
def plain_texts(network: Any, texts: Mapping[int, torch.Tensor]) -> Iterator[None]:
    """Tells the network these in place of no text for the block, each at its timestep.

    Args:
      network: called with the rows without text in the first half of its batch.
      texts: see `null_texts`; none to change nothing.
    """
    import torch

    def replace(_network: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        told = kwargs["encoder_hidden_states"]
        half = told.shape[0] // 2
        plain = texts[int(args[1])].to(told.dtype).expand(half, -1, -1)
        return args, {**kwargs, "encoder_hidden_states": torch.cat([plain, told[half:]])}

    hook = network.register_forward_pre_hook(replace, with_kwargs=True) if texts else None
    try:
        yield
    finally:
        if hook is not None:
            hook.remove()
