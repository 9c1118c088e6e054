"""FLUX Kontext: edits as an instruction says, by a transformer that attends to the original.

Source: Black Forest Labs 2025, "FLUX.1 Kontext: Flow Matching for In-Context Image Generation and
  Editing in Latent Space".
"""

from __future__ import annotations

from typing import Any, ClassVar

from eqforge.core.late import Image
from eqforge.generators.editors.canvas import Canvas
from eqforge.generators.editors.pipeline_editor import OneCallEditor
from eqforge.generators.editors.records import EditRequest


class FluxKontext(OneCallEditor):
    """Follows an instruction."""

    name = "flux-kontext"
    needs = frozenset({"instruction"})
    runs: ClassVar = {"FluxKontextPipeline": "FluxKontextPipeline"}
    summary = "follows an instruction, by FLUX Kontext"
    knobs: ClassVar = {"steps": "num_inference_steps", "guidance": "guidance_scale"}

    def arguments(self, request: EditRequest, canvas: Canvas) -> dict[str, Any]:
        return {
            "prompt": request.instruction,
            "image": Image.fromarray(canvas.image, "RGB"),
            "height": canvas.height,
            "width": canvas.width,
            # Otherwise the pipeline brings both to sizes of its own, the original's shape lost.
            "max_area": canvas.height * canvas.width,
            "_auto_resize": False,
        }
