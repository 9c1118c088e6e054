"""Qwen-Image-Edit: edits as an instruction says; a language model reads the original along with it.

Source: Wu et al. 2025, "Qwen-Image Technical Report".
"""

from __future__ import annotations

from typing import Any, ClassVar

from eqforge.core.late import Image
from eqforge.generators.editors.canvas import Canvas
from eqforge.generators.editors.pipeline_editor import OneCallEditor
from eqforge.generators.editors.records import EditRequest


class QwenImageEdit(OneCallEditor):
    """Follows an instruction."""

    name = "qwen-image-edit"
    needs = frozenset({"instruction"})
    runs: ClassVar = {
        "QwenImageEditPipeline": "QwenImageEditPipeline",
        "QwenImageEditPlusPipeline": "QwenImageEditPlusPipeline",
    }
    summary = "follows an instruction, by Qwen-Image-Edit or its Plus versions"
    knobs: ClassVar = {"steps": "num_inference_steps", "guidance": "true_cfg_scale"}

    def multiple_of(self, pipeline: Any) -> int:
        return 32  # as the pipeline rounds the original's sides, so that both have one shape

    def arguments(self, request: EditRequest, canvas: Canvas) -> dict[str, Any]:
        return {
            "prompt": request.instruction,
            "negative_prompt": " ",  # without one there is no guidance
            "image": Image.fromarray(canvas.image, "RGB"),
            "height": canvas.height,
            "width": canvas.width,
        }
