"""Draws a rendering anew with a diffusion model that a ControlNet holds to it.

Source: Zhang et al. 2023, "Adding Conditional Control to Text-to-Image Diffusion Models"; Meng et
  al. 2022, "SDEdit", for the start from the rendering with noise.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from eqforge.core.errors import InputError
from eqforge.core.identity import fingerprint
from eqforge.core.late import Image
from eqforge.core.late import numpy as np
from eqforge.generators.diffusion.deterministic import deterministic
from eqforge.generators.diffusion.load import (
    check_texts,
    find_folder,
    find_part,
    import_libraries,
    load_weights,
    read_index,
)
from eqforge.generators.diffusion.prompt_tokens import check_length
from eqforge.generators.diffusion.quiet import quiet_libraries
from eqforge.generators.diffusion.tiny import called_tiny
from eqforge.generators.editors.canvas import fit
from eqforge.generators.harmonise.settings import TINY, HarmoniseSettings, NamedModel, named
from eqforge.generators.harmonise.tiny import make_tiny_harmoniser

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.generators.diffusion.records import ModelIdentity

VERSION: Final = 1
"""Increased by every change that alters a drawn picture."""

RUNS: Final[Mapping[str, str]] = {
    "StableDiffusionPipeline": "StableDiffusionControlNetImg2ImgPipeline",
    "StableDiffusionControlNetPipeline": "StableDiffusionControlNetImg2ImgPipeline",
    "StableDiffusionControlNetImg2ImgPipeline": "StableDiffusionControlNetImg2ImgPipeline",
    "StableDiffusionXLPipeline": "StableDiffusionXLControlNetImg2ImgPipeline",
    "StableDiffusionXLControlNetPipeline": "StableDiffusionXLControlNetImg2ImgPipeline",
    "StableDiffusionXLControlNetImg2ImgPipeline": "StableDiffusionXLControlNetImg2ImgPipeline",
}
"""The pipeline that draws, for the class that a model was saved as."""

_EDGES = (60, 140)
"""Thresholds of Canny's edges, in steps of the gradient."""


class Harmoniser:
    """A model on its device.

    Args:
      pipeline: of diffusers.
      identity: its weights.
      settings: how it draws.
      controlnet: the weights of a ControlNet that was not saved with it.
    """

    def __init__(
        self,
        pipeline: Any,
        identity: ModelIdentity,
        settings: HarmoniseSettings,
        controlnet: ModelIdentity | None = None,
    ) -> None:
        """Checks that the parts fit each other.

        Raises:
          InputError: they do not, or the style alone is longer than the model reads.
        """
        self._pipeline, self.identity, self._settings = pipeline, identity, settings
        self._controlnet = controlnet
        check_texts(pipeline, str(settings.harmonise))
        check_length(settings.harmonise_style, pipeline)
        wide = pipeline.unet.config.cross_attention_dim
        held = pipeline.controlnet.config.cross_attention_dim
        if held != wide:
            raise InputError(
                f"{settings.controlnet or settings.harmonise}: the ControlNet reads texts of "
                f"{held} numbers and the model has {wide}: they do not belong together"
            )
        pipeline.watermark = None
        pipeline.set_progress_bar_config(disable=True)
        native = int(pipeline.unet.config.sample_size * pipeline.vae_scale_factor)
        self._resolution = settings.harmonise_resolution or native

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """Everything that decides a picture except the rendering, its caption and the seed."""
        import diffusers
        import torch
        import transformers

        settings = self._settings
        return {
            "version": VERSION,
            "pipeline": self.identity.pipeline,
            "weights": self.identity.digest,
            "controlnet": None if self._controlnet is None else asdict(self._controlnet),
            "scheduler": type(self._pipeline.scheduler).__name__,
            "control": settings.control,
            "control_scale": settings.control_scale,
            "strength": settings.harmonise_strength,
            "steps": settings.harmonise_steps,
            "guidance": settings.harmonise_guidance,
            "style": settings.harmonise_style,
            "resolution": self._resolution,
            "precision": settings.harmonise_precision,
            "device": torch.device(settings.harmonise_device).type,
            "cpu_threads": settings.harmonise_threads,
            "torch": torch.__version__,
            "diffusers": diffusers.__version__,
            "transformers": transformers.__version__,
        }

    @functools.cached_property
    def fingerprint(self) -> str:
        """Digest of the parameters."""
        return fingerprint(self.parameters)

    def draw(
        self, image: NDArray[np.uint8], control: NDArray[np.uint8], caption: str, seed: int
    ) -> NDArray[np.uint8] | None:
        """Draws a rendering anew.

        Args:
          image: RGB, uint8 of shape (height, width, 3).
          control: what the ControlNet reads, of the same shape.
          caption: what the picture shows.
          seed: of the noise.

        Returns:
          A picture of the same shape; None where the model's own checker flagged it, and made it
          black.

        Raises:
          InputError: the caption is longer than the model reads.
        """
        import torch

        canvas = fit(image, None, self._resolution, 8)
        held = fit(control, None, self._resolution, 8)
        prompt = f"{caption.rstrip('.')}, {self._settings.harmonise_style}".rstrip(", ")
        check_length(prompt, self._pipeline)
        with (
            torch.inference_mode(),
            quiet_libraries(),
            deterministic(self._settings.harmonise_threads),
        ):
            output = self._pipeline(
                prompt=prompt,
                image=Image.fromarray(canvas.image, "RGB"),
                control_image=Image.fromarray(held.image, "RGB"),
                height=canvas.height,
                width=canvas.width,
                strength=self._settings.harmonise_strength,
                num_inference_steps=self._settings.harmonise_steps,
                guidance_scale=self._settings.harmonise_guidance,
                controlnet_conditioning_scale=self._settings.control_scale,
                generator=torch.Generator("cpu").manual_seed(seed),
                output_type="np",
            )
        if any(getattr(output, "nsfw_content_detected", None) or ()):
            return None
        return canvas.restore((output.images[0] * 255).round().astype(np.uint8))


def edges(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Returns the edges of a picture, white on black, uint8 of shape (height, width, 3)."""
    import cv2

    found = cv2.Canny(np.ascontiguousarray(image), *_EDGES)
    return np.repeat(found[..., None], 3, axis=2)


def load_harmoniser(settings: HarmoniseSettings, device: str | None = None) -> Harmoniser:
    """Loads a model and its ControlNet.

    Args:
      settings: name them.
      device: to load them onto, on a machine that has not the one of the settings.

    Raises:
      InputError: one cannot be found or loaded, or they do not belong together.
      MissingExtra: torch, diffusers or transformers is not installed.
    """
    import_libraries()
    assert settings.harmonise is not None
    if settings.harmonise != TINY:
        return _load(named(settings.harmonise, settings, device), settings, device)
    with tempfile.TemporaryDirectory(prefix="eqforge-tiny-") as temporary:
        folder = make_tiny_harmoniser(Path(temporary) / TINY)
        with called_tiny(folder):
            return _load(named(str(folder), settings, device), settings, device)


def _load(model: NamedModel, settings: HarmoniseSettings, device: str | None) -> Harmoniser:
    folder = find_folder(model)
    index = read_index(folder, model.model)
    if index.pipeline not in RUNS:
        raise InputError(
            f"{model.model}: a {index.pipeline} cannot be held to a rendering by a ControlNet; "
            f"those that can: {', '.join(RUNS)}"
        )
    parts: dict[str, Any] = {}
    controlnet = None
    if settings.controlnet is not None:
        parts["controlnet"], controlnet = find_part(
            named(settings.controlnet, settings, device), "ControlNetModel"
        )
    elif "controlnet" not in index.parts:
        raise InputError(
            f"{model.model} has no ControlNet of its own: name one with --controlnet, such as "
            "lllyasviel/control_v11f1p_sd15_depth@COMMIT for Stable Diffusion 1.5"
        )
    pipeline, identity = load_weights(folder, index, model, RUNS[index.pipeline], parts=parts)
    return Harmoniser(pipeline, identity, settings, controlnet)
