"""Edit images: one call of a diffusers pipeline per image.

Source: Brooks et al. 2023, "InstructPix2Pix"; Black Forest Labs 2025, "FLUX.1 Kontext"; Wu et al.
2025, "Qwen-Image Technical Report".
"""

from __future__ import annotations

import functools
import inspect
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np
from PIL import Image

from eqforge.core.errors import InputError
from eqforge.core.identity import fingerprint
from eqforge.generators.diffusion.load import (
    check_texts,
    deterministic,
    find_folder,
    import_libraries,
    load_weights,
    quiet_libraries,
    read_index,
)
from eqforge.generators.diffusion.settings import TINY
from eqforge.generators.diffusion.tiny import SIZE_PX, make_tiny_pipeline, naming_folder
from eqforge.generators.editors.canvas import Canvas, fit
from eqforge.generators.editors.settings import EditorName, EditorSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.generators.diffusion.settings import ModelIdentity

VERSION: Final = 1
"""Version of the editors; every change that alters an edited image increases it."""

Need = Literal["mask", "instruction"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class EditRequest:
    """An image, and the change to make.

    Attributes:
      image: uint8 [height, width, 3], RGB, upright; any size.
      instruction: such as "replace the dog with a cat"; None for editors without need.
      mask: bool [height, width], True where the image may change; None for editors without need.
    """

    image: NDArray[np.uint8]
    target: str
    instruction: str | None = None
    mask: NDArray[np.bool_] | None = None
    seed: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Edited:
    """An edited image.

    Attributes:
      image: uint8 of the original's shape. No editor keeps pixels outside of the mask bit for bit:
        the whole image went through the model's autoencoder.
      parameters: everything that decided it except the request, for the row.
      flagged: whether the model's safety checker made the image black; None without a checker.
    """

    image: NDArray[np.uint8]
    parameters: Mapping[str, Any]
    flagged: bool | None = None


class Editor(ABC):
    """A loaded pipeline that edits one image at a time; not thread-safe.

    Attributes:
      needs: the parts of a request that may not be None.
      runs: the pipeline that edits, for the class that a model was saved as.
      knobs: arguments of the pipeline, for the settings that it has.
    """

    name: ClassVar[EditorName]
    needs: ClassVar[frozenset[Need]]
    runs: ClassVar[Mapping[str, str]]
    knobs: ClassVar[Mapping[str, str]]

    def __init__(self, pipeline: Any, identity: ModelIdentity, settings: EditorSettings) -> None:
        self.pipeline, self.identity, self.settings = pipeline, identity, settings
        self._check_channels()
        self.multiple = self.multiple_of(pipeline)
        unet = getattr(pipeline, "unet", None)
        latent = pipeline.default_sample_size if unet is None else unet.config.sample_size
        # Without a setting, the side of the square images that the model was trained on.
        self.resolution = settings.resolution or int(latent * pipeline.vae_scale_factor)
        self.knob_values = self._knob_values()
        check_texts(pipeline, settings.model)
        pipeline.watermark = None
        pipeline.set_progress_bar_config(disable=True)

    @abstractmethod
    def arguments(self, request: EditRequest, canvas: Canvas) -> dict[str, Any]: ...

    def multiple_of(self, pipeline: Any) -> int:
        """Return the number of pixels that divides the sides of every image."""
        # Transformers read latents in patches of 2x2; the U-Nets' pipelines insist on 8 pixels.
        patch = 1 if hasattr(pipeline, "unet") else 2
        return max(8, int(pipeline.vae_scale_factor * patch))

    def channels_of(self, latent: int) -> tuple[int, ...]:
        """Return how many channels a U-Net may read, for latents of `latent` channels."""
        return (latent,)

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """Everything that decides an edit except the request, for the row."""
        import diffusers
        import torch
        import transformers

        return {
            "editor": self.name,
            "editor_version": VERSION,
            "pipeline": self.identity.pipeline,
            "weights": self.identity.digest,
            "scheduler": type(self.pipeline.scheduler).__name__,
            **self.knob_values,
            "resolution": self.resolution,
            "precision": self.settings.precision,
            "device": torch.device(self.settings.device).type,
            "cpu_threads": self.settings.cpu_threads,
            "torch": torch.__version__,
            "diffusers": diffusers.__version__,
            "transformers": transformers.__version__,
        }

    @functools.cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.parameters)

    def edit(self, request: EditRequest) -> Edited:
        """Edit an image: the same bytes for the same request on the same device.

        Raises:
          InputError: the request lacks what the editor needs, or its text does not fit the model.
          torch.OutOfMemoryError: the device has too little memory.
        """
        import torch

        self._check(request)
        canvas = fit(request.image, request.mask, self.resolution, self.multiple)
        arguments = self.arguments(request, canvas)
        _check_length(arguments["prompt"], self.pipeline)
        with torch.inference_mode(), quiet_libraries(), deterministic(self.settings.cpu_threads):
            output = self.pipeline(
                **arguments,
                **{self.knobs[name]: value for name, value in self.knob_values.items()},
                image=Image.fromarray(canvas.image, "RGB"),
                generator=torch.Generator("cpu").manual_seed(request.seed),
                output_type="np",
            )
        flagged = getattr(output, "nsfw_content_detected", None)
        return Edited(
            image=canvas.restore((output.images[0] * 255).round().astype(np.uint8)),
            parameters={**self.parameters, "canvas": [canvas.height, canvas.width]},
            flagged=None if flagged is None else bool(flagged[0]),
        )

    def _check_channels(self) -> None:
        unet, latent = getattr(self.pipeline, "unet", None), self.pipeline.vae.config
        if unet is None:
            return
        wanted = self.channels_of(latent.latent_channels)
        if unet.config.in_channels not in wanted:
            raise InputError(
                f"{self.settings.model}: its network has {unet.config.in_channels} input channels, "
                f"but the editor {self.name} needs {' or '.join(map(str, wanted))}; choose a "
                "different model"
            )

    def _knob_values(self) -> dict[str, Any]:
        parameters = inspect.signature(type(self.pipeline).__call__).parameters
        values: dict[str, Any] = {}
        for name in ("steps", "guidance", "image_guidance", "strength"):
            value, argument = getattr(self.settings, name), self.knobs.get(name)
            if argument is not None:
                values[name] = parameters[argument].default if value is None else value
            elif value is not None:
                flag = name.replace("_", "-")
                raise InputError(
                    f"--{flag} {value}: the editor {self.name} does not use this option; omit it"
                )
        if int(values["steps"] * values.get("strength", 1)) < 1:
            raise InputError(
                f"--strength {values['strength']} with --steps {values['steps']} leaves no "
                "denoising steps; raise --strength or --steps"
            )
        return values

    def _check(self, request: EditRequest) -> None:
        if "instruction" in self.needs and not (request.instruction or "").strip():
            raise InputError(
                f"the editor {self.name} needs an instruction, such as 'make the dog a cat'"
            )
        if "mask" not in self.needs:
            return
        if request.mask is None:
            raise InputError(f"the editor {self.name} needs a mask of the area that may change")
        if request.mask.shape != request.image.shape[:2]:
            raise InputError(
                f"the mask is {request.mask.shape[1]}x{request.mask.shape[0]} pixels, but the "
                f"image is {request.image.shape[1]}x{request.image.shape[0]}; both must have the "
                "same size"
            )
        if not request.mask.any():
            raise InputError("the mask is empty, so nothing may change; mark the area to change")


class Inpaint(Editor):
    """Draws the target inside the mask.

    Inpainting models see the surroundings of the mask. Stable Diffusion, SDXL and FLUX inpaint by
    keeping the surroundings at every step.
    """

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
            "mask_image": Image.fromarray(canvas.mask),
            "height": canvas.height,
            "width": canvas.width,
        }


class InstructPix2Pix(Editor):
    """Follows an instruction with a network that sees the original."""

    name = "instruct-pix2pix"
    needs = frozenset({"instruction"})
    runs: ClassVar = {
        "StableDiffusionInstructPix2PixPipeline": "StableDiffusionInstructPix2PixPipeline",
        "StableDiffusionXLInstructPix2PixPipeline": "StableDiffusionXLInstructPix2PixPipeline",
    }
    knobs: ClassVar = {
        "steps": "num_inference_steps",
        "guidance": "guidance_scale",
        "image_guidance": "image_guidance_scale",
    }

    def channels_of(self, latent: int) -> tuple[int, ...]:
        return (2 * latent,)  # with the original's

    def arguments(self, request: EditRequest, canvas: Canvas) -> dict[str, Any]:
        # Stable Diffusion's pipeline takes the sides from the image.
        takes_sides = hasattr(self.pipeline, "text_encoder_2")
        sides = {"height": canvas.height, "width": canvas.width} if takes_sides else {}
        return {"prompt": request.instruction, **sides}


class FluxKontext(Editor):
    """Follows an instruction with a transformer that attends to the original."""

    name = "flux-kontext"
    needs = frozenset({"instruction"})
    runs: ClassVar = {"FluxKontextPipeline": "FluxKontextPipeline"}
    knobs: ClassVar = {"steps": "num_inference_steps", "guidance": "guidance_scale"}

    def arguments(self, request: EditRequest, canvas: Canvas) -> dict[str, Any]:
        return {
            "prompt": request.instruction,
            "height": canvas.height,
            "width": canvas.width,
            # Otherwise the pipeline resizes both to its own sizes and loses the original's shape.
            "max_area": canvas.height * canvas.width,
            "_auto_resize": False,
        }


class QwenImageEdit(Editor):
    """Follows an instruction; a language model reads the original along with it."""

    name = "qwen-image-edit"
    needs = frozenset({"instruction"})
    runs: ClassVar = {
        "QwenImageEditPipeline": "QwenImageEditPipeline",
        "QwenImageEditPlusPipeline": "QwenImageEditPlusPipeline",
    }
    knobs: ClassVar = {"steps": "num_inference_steps", "guidance": "true_cfg_scale"}

    def multiple_of(self, pipeline: Any) -> int:
        return 32  # as the pipeline rounds the original's sides, so that both have one shape

    def arguments(self, request: EditRequest, canvas: Canvas) -> dict[str, Any]:
        return {
            "prompt": request.instruction,
            "negative_prompt": " ",  # without one there is no guidance
            "height": canvas.height,
            "width": canvas.width,
        }


def _check_length(prompt: str, pipeline: Any) -> None:
    """Check that no text encoder of a pipeline would cut off the prompt.

    In FLUX, CLIP reads only the start, for the gist, and T5 reads everything. Language models have
    no limit that a prompt would reach.
    """
    encoders = {
        suffix: type(getattr(pipeline, f"text_encoder{suffix}", None)).__name__
        for suffix in ("", "_2")
    }
    kind = "T5" if encoders["_2"].startswith("T5") else "CLIP"
    for suffix, name in encoders.items():
        if not name.startswith(kind):
            continue
        tokenizer = getattr(pipeline, f"tokenizer{suffix}")
        count, limit = (
            len(tokenizer(prompt, truncation=False).input_ids),
            tokenizer.model_max_length,
        )
        if count > limit:
            raise InputError(
                f"the prompt {prompt!r} has {count} tokens, but the text encoder reads at most "
                f"{limit}; shorten the prompt"
            )


EDITORS: Final[Mapping[EditorName, type[Editor]]] = {
    editor.name: editor for editor in (Inpaint, InstructPix2Pix, FluxKontext, QwenImageEdit)
}


def editor_of(settings: EditorSettings, pipeline: str) -> EditorName:
    found = next((name for name, editor in EDITORS.items() if pipeline in editor.runs), None)
    if found is None:
        raise InputError(
            f"{settings.model}: a {pipeline} cannot edit images. Choose a pipeline of one of these "
            f"editors: {describe_editors()}."
        )
    if settings.editor not in (None, found):
        raise InputError(
            f"{settings.model}: a {pipeline} needs --editor {found}, not --editor {settings.editor}"
        )
    return found


def describe_editors(with_mask: bool = True) -> str:
    return "; ".join(
        f"{name} ({', '.join(editor.runs)})"
        for name, editor in EDITORS.items()
        if with_mask or "mask" not in editor.needs
    )


def load_editor(settings: EditorSettings) -> Editor:
    import_libraries()
    if settings.model == TINY:
        pipeline = next(iter(EDITORS[settings.editor or "inpaint"].runs))
        with tempfile.TemporaryDirectory(prefix="eqforge-model-") as temporary:
            pipeline_folder = make_tiny_pipeline(f"{temporary}/{TINY}", pipeline)
            with naming_folder(pipeline_folder):
                size = settings.resolution or SIZE_PX
                return load_editor(replace(settings, model=str(pipeline_folder), resolution=size))
    folder = find_folder(settings)
    index = read_index(folder, settings.model)
    editor = EDITORS[editor_of(settings, index.pipeline)]
    pipeline, identity = load_weights(
        folder, index, settings, editor.runs[index.pipeline], settings.offload
    )
    return editor(pipeline, identity, settings)
