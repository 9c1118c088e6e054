"""Inpainting: the picture is drawn anew where the mask is, as the target says.

Models that were trained to inpaint know what is around the mask; Stable Diffusion, SDXL and FLUX
themselves inpaint too, by keeping what is around it at every step.
"""

from __future__ import annotations

from typing import Any, ClassVar

from eqforge.core.late import Image
from eqforge.generators.editors.canvas import Canvas
from eqforge.generators.editors.pipeline_editor import OneCallEditor
from eqforge.generators.editors.records import EditRequest


class Inpaint(OneCallEditor):
    """Draws the target where the mask is."""

    name = "inpaint"
    needs = frozenset({"mask"})
    runs: ClassVar = {
        "StableDiffusionInpaintPipeline": "StableDiffusionInpaintPipeline",
        "StableDiffusionXLInpaintPipeline": "StableDiffusionXLInpaintPipeline",
        "FluxFillPipeline": "FluxFillPipeline",
        "StableDiffusionPipeline": "StableDiffusionInpaintPipeline",
        "StableDiffusionXLPipeline": "StableDiffusionXLInpaintPipeline",
        "FluxPipeline": "FluxInpaintPipeline",
    }
    summary = "draws the masked part anew, as the target says"
    knobs: ClassVar = {
        "steps": "num_inference_steps",
        "guidance": "guidance_scale",
        "strength": "strength",
    }

    def channels_of(self, latent: int) -> tuple[int, ...]:
        return (latent, 2 * latent + 1)  # with the mask, and what is around it

    def arguments(self, request: EditRequest, canvas: Canvas) -> dict[str, Any]:
        assert canvas.mask is not None, "the request was checked"
        return {
            "prompt": request.target,
            "image": Image.fromarray(canvas.image, "RGB"),
            "mask_image": Image.fromarray(canvas.mask),
            "height": canvas.height,
            "width": canvas.width,
        }
