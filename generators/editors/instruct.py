"""InstructPix2Pix: edits as an instruction says, with a network that sees the original.

Source: Brooks et al. 2023, "InstructPix2Pix: Learning to Follow Image Editing Instructions".
"""

from __future__ import annotations

from typing import Any, ClassVar

from eqforge.core.late import Image
from eqforge.generators.editors.canvas import Canvas
from eqforge.generators.editors.pipeline_editor import OneCallEditor
from eqforge.generators.editors.records import EditRequest


class InstructPix2Pix(OneCallEditor):
    """Follows an instruction; two weights say how closely it follows it and the original."""

    name = "instruct-pix2pix"
    needs = frozenset({"instruction"})
    runs: ClassVar = {
        "StableDiffusionInstructPix2PixPipeline": "StableDiffusionInstructPix2PixPipeline",
        "StableDiffusionXLInstructPix2PixPipeline": "StableDiffusionXLInstructPix2PixPipeline",
    }
    summary = "follows an instruction, by a Stable Diffusion that sees the original"
    knobs: ClassVar = {
        "steps": "num_inference_steps",
        "guidance": "guidance_scale",
        "image_guidance": "image_guidance_scale",
    }

    def channels_of(self, latent: int) -> tuple[int, ...]:
        return (2 * latent,)  # with the original's

    def arguments(self, request: EditRequest, canvas: Canvas) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "prompt": request.instruction,
            "image": Image.fromarray(canvas.image, "RGB"),
        }
        # Stable Diffusion's pipeline takes the sides from the picture.
        if hasattr(self.pipeline, "text_encoder_2"):
            arguments |= {"height": canvas.height, "width": canvas.width}
        return arguments
