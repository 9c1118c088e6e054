"""Prompt-to-prompt on a photograph: its noise is found, and two pictures are drawn of it.

The first, of the caption, is the photograph again; its attention guides the second, of the target,
as in pictures that are drawn of two prompts (`diffusion.generate`). Nothing is random.

Source: Hertz et al. 2022 for the attention control, Mokady et al. 2023 for photographs.
"""

from __future__ import annotations

import dataclasses
import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from eqforge.core.errors import InputError
from eqforge.core.late import numpy as np
from eqforge.generators.diffusion.deterministic import deterministic
from eqforge.generators.diffusion.load import ModelIndex
from eqforge.generators.diffusion.prompt_tokens import tokenize
from eqforge.generators.diffusion.quiet import quiet_libraries
from eqforge.generators.diffusion.records import EditControl, LocalBlend, PairRequest
from eqforge.generators.diffusion.settings import DiffusionSettings
from eqforge.generators.editors.canvas import Canvas, fit
from eqforge.generators.editors.invert import ddim_path, decode, encode, null_texts, plain_texts
from eqforge.generators.editors.pipeline_editor import PipelineEditor
from eqforge.generators.editors.records import Edited, EditRequest
from eqforge.generators.editors.settings import EditorSettings

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

    from eqforge.generators.diffusion.generate import PairGenerator
    from eqforge.generators.diffusion.records import PairImages


class PromptToPrompt(PipelineEditor):
    """Draws the target with the attention of the photograph."""

    name = "prompt-to-prompt"
    is_random = False
    runs: ClassVar = {
        "StableDiffusionPipeline": "StableDiffusionPipeline",
        "StableDiffusionXLPipeline": "StableDiffusionXLPipeline",
    }
    summary = "inverts the picture, and draws the target with its attention"
    knobs: ClassVar = {"steps": "num_inference_steps", "guidance": "guidance_scale"}

    def __init__(self, generator: PairGenerator, settings: EditorSettings) -> None:
        drawing = generator.settings
        settings = dataclasses.replace(
            settings,
            steps=drawing.steps,
            guidance=drawing.guidance_scale,
            resolution=generator.size_px,
        )
        super().__init__(generator.pipeline, generator.identity, settings)
        self.generator = generator
        self.steps, self.guidance = drawing.steps, drawing.guidance_scale
        # Without guidance there is nothing to optimise.
        self.is_optimised = settings.inversion == "null-text" and self.guidance > 1
        self.pipeline.unet.requires_grad_(False)

    @classmethod
    def load(cls, folder: Path, index: ModelIndex, settings: EditorSettings) -> PromptToPrompt:
        from eqforge.generators.diffusion.generate import PairGenerator

        if settings.offload:
            raise InputError("--offload: prompt-to-prompt needs the whole model on the GPU")
        numbers: dict[str, Any] = {"steps": settings.steps, "guidance_scale": settings.guidance}
        drawing = DiffusionSettings(
            model=settings.model,
            revision=settings.revision,
            local_files_only=settings.local_files_only,
            device=settings.device,
            precision=settings.precision,
            size_px=settings.resolution,
            cpu_threads=settings.cpu_threads,
            **{name: number for name, number in numbers.items() if number is not None},
        )
        return cls(PairGenerator(drawing), settings)

    @property
    def own_parameters(self) -> dict[str, Any]:
        control = ("cross_replace", "self_replace", "local_blend", "blend_threshold")
        return {
            "inversion": "null-text" if self.is_optimised else "ddim",
            "null_text_steps": self.settings.null_text_steps if self.is_optimised else 0,
            **{name: getattr(self.settings, name) for name in control},
        }

    def edit(self, request: EditRequest) -> Edited:
        canvas = fit(request.image, None, self.resolution, self.multiple, square=True)
        control = self.control_of(request)
        with quiet_libraries(), deterministic(self.settings.cpu_threads):
            latent = encode(self.pipeline, canvas.image)
            path, text = ddim_path(self.pipeline, latent, request.caption, self.steps)
            plain = {}
            if self.is_optimised:
                inner = self.settings.null_text_steps
                plain = null_texts(self.pipeline, path, text, self.guidance, inner)
        prompts = (request.caption, request.target)
        wanted = PairRequest(prompts=prompts, seed=request.seed, control=control)
        with plain_texts(self.pipeline.unet, plain):
            drawn = self.generator.generate(wanted, path[-1])
        with quiet_libraries(), deterministic(self.settings.cpu_threads):
            errors = self._errors(canvas, latent, drawn)
        found = {
            "canvas": [canvas.height, canvas.width],
            "control": control.method,
            "batch_rows": drawn.batch_rows,
            "reconstruction": errors,
        }
        return Edited(
            image=canvas.restore(drawn.images[1]),
            parameters={**self.parameters, **found},
            flagged=None if drawn.flagged is None else any(drawn.flagged),
        )

    def control_of(self, request: EditRequest) -> EditControl:
        """Returns how the photograph guides the edited picture.

        Raises:
          InputError: caption and target have the same words, or one does not fit the text encoder.
        """
        prompts = (request.caption, request.target)
        changed = changed_words(*prompts)
        counts = [len(tokenize(prompt, self.pipeline.tokenizer).words) for prompt in prompts]
        blend = LocalBlend(words=changed, threshold=self.settings.blend_threshold)
        return EditControl(
            method="replace" if counts[0] == counts[1] else "refine",
            cross_replace_steps=self.settings.cross_replace,
            self_replace_steps=self.settings.self_replace,
            blend=blend if self.settings.local_blend else None,
            changed=changed,
        )

    def _errors(self, canvas: Canvas, latent: torch.Tensor, drawn: PairImages) -> dict[str, float]:
        """Returns how far the first picture is from the photograph, which it should be.

        `latent` is the root of the mean squared difference of the latents, whose deviation is
        about 1; `pixels` that of the pixels, 0 to 255, and `autoencoder` how much of it is the
        autoencoder's alone.
        """
        original = canvas.crop(canvas.image)
        coded = canvas.crop(decode(self.pipeline, latent))
        first = canvas.crop(drawn.images[0])
        return {
            "latent": _distance(drawn.latents[0], latent[0].float().cpu().numpy()),
            "pixels": _distance(first, original),
            "autoencoder": _distance(coded, original),
        }


def changed_words(caption: str, target: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the numbers that `str.split` gives the words of either text which differ.

    Raises:
      InputError: none does.
    """
    words = caption.lower().split(), target.lower().split()
    matcher = difflib.SequenceMatcher(None, words[0], words[1], autojunk=False)
    edits = [code[1:] for code in matcher.get_opcodes() if code[0] != "equal"]
    if not edits:
        raise InputError(f"the target {target!r} has the words of the caption: nothing changes")
    return (
        tuple(place for start, end, _, _ in edits for place in range(start, end)),
        tuple(place for _, _, start, end in edits for place in range(start, end)),
    )


def _distance(one: NDArray[Any], other: NDArray[Any]) -> float:
    difference = one.astype(np.float64) - other.astype(np.float64)
    return round(float(np.sqrt((difference**2).mean())), 4)
