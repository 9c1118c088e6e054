"""What editors by a pipeline of diffusers share, and those whose edit is one call of it."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from eqforge.core.errors import InputError
from eqforge.core.identity import fingerprint
from eqforge.core.late import numpy as np
from eqforge.generators.diffusion.deterministic import deterministic
from eqforge.generators.diffusion.load import ModelIndex, check_texts, load_weights
from eqforge.generators.diffusion.prompt_tokens import check_length
from eqforge.generators.diffusion.quiet import quiet_libraries
from eqforge.generators.editors.canvas import Canvas, fit
from eqforge.generators.editors.records import Edited, EditorName, EditRequest, Need
from eqforge.generators.editors.settings import EditorSettings

if TYPE_CHECKING:
    from eqforge.generators.diffusion.records import ModelIdentity

VERSION: Final = 1
"""Version of the editors; increased by every change that alters an edited picture."""


class PipelineEditor(ABC):
    """Edits by a pipeline; its classes say which pipelines, and how.

    Args:
      pipeline: of diffusers, on its device.
      identity: its weights.
      settings: how it edits.

    Attributes:
      name, needs: see `Editor`.
      runs: the pipeline that edits, for the class that a model was saved as.
      summary: a line for users.
      knobs: arguments of the pipeline, for the settings that it has.
      is_random: see `Editor`.

    Raises:
      InputError: a setting is given that the pipeline does not have, or does not fit it.
    """

    name: ClassVar[EditorName]
    needs: ClassVar[frozenset[Need]] = frozenset()
    runs: ClassVar[Mapping[str, str]]
    summary: ClassVar[str]
    knobs: ClassVar[Mapping[str, str]]
    is_random: ClassVar[bool] = True

    def __init__(self, pipeline: Any, identity: ModelIdentity, settings: EditorSettings) -> None:
        self.pipeline, self.identity, self.settings = pipeline, identity, settings
        self._check_channels()
        self.multiple = self.multiple_of(pipeline)
        self.resolution = settings.resolution or self.native_of(pipeline)
        self.knob_values = self._knob_values()
        check_texts(pipeline, settings.model)
        pipeline.watermark = None
        pipeline.set_progress_bar_config(disable=True)

    @classmethod
    def load(cls, folder: Path, index: ModelIndex, settings: EditorSettings) -> PipelineEditor:
        """Loads a model's weights into the pipeline that edits.

        Args:
          folder: where they are.
          index: what it says of itself; its pipeline is one of `runs`.
          settings: how it edits.

        Raises:
          InputError: the weights cannot be loaded, or a setting does not fit them.
        """
        pipeline, identity = load_weights(
            folder, index, settings, cls.runs[index.pipeline], settings.offload
        )
        return cls(pipeline, identity, settings)

    def multiple_of(self, pipeline: Any) -> int:
        """Returns what the sides of a picture have to be multiples of."""
        # Transformers read latents in patches of 2x2; the U-Nets' pipelines insist on 8 pixels.
        patch = 1 if hasattr(pipeline, "unet") else 2
        return max(8, int(pipeline.vae_scale_factor * patch))

    def native_of(self, pipeline: Any) -> int:
        """Returns the side, in pixels, of the square pictures that the model was trained on."""
        unet = getattr(pipeline, "unet", None)
        latent = pipeline.default_sample_size if unet is None else unet.config.sample_size
        return int(latent * pipeline.vae_scale_factor)

    def channels_of(self, latent: int) -> tuple[int, ...]:
        """Returns how many channels a U-Net may read, for latents of so many."""
        return (latent,)

    @property
    def own_parameters(self) -> dict[str, Any]:
        """Parameters that other editors do not have."""
        return {}

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
            **self.own_parameters,
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
        """Digest of everything that decides an edit except the request."""
        return fingerprint(self.parameters)

    @abstractmethod
    def edit(self, request: EditRequest) -> Edited:
        """Edits a picture; see `Editor.edit`."""

    def _check_channels(self) -> None:
        """Checks that a U-Net reads what the editor gives it, latents and what it adds to them."""
        unet, latent = getattr(self.pipeline, "unet", None), self.pipeline.vae.config
        if unet is None:
            return
        wanted = self.channels_of(latent.latent_channels)
        if unet.config.in_channels not in wanted:
            raise InputError(
                f"{self.settings.model}: its network reads {unet.config.in_channels} channels, and "
                f"the editor {self.name} gives it {' or '.join(map(str, wanted))}: it was not "
                "trained for that, whatever its model_index.json says"
            )

    def _knob_values(self) -> dict[str, Any]:
        """Returns the value of every setting that the pipeline has: the user's, or its own."""
        own = inspect.signature(type(self.pipeline).__call__).parameters
        values: dict[str, Any] = {}
        for name in ("steps", "guidance", "image_guidance", "strength"):
            given, argument = getattr(self.settings, name), self.knobs.get(name)
            if argument is not None:
                values[name] = own[argument].default if given is None else given
            elif given is not None:
                flag = name.replace("_", "-")
                raise InputError(f"--{flag} {given}: the editor {self.name} has no such setting")
        if int(values["steps"] * values.get("strength", 1)) < 1:
            raise InputError(
                f"--strength {values['strength']} of --steps {values['steps']}: not even one step "
                "is left; give more"
            )
        return values


class OneCallEditor(PipelineEditor):
    """Edits by one call of a pipeline."""

    @abstractmethod
    def arguments(self, request: EditRequest, canvas: Canvas) -> dict[str, Any]:
        """Returns what the pipeline is called with, besides numbers and noise."""

    def edit(self, request: EditRequest) -> Edited:
        """Edits a picture; see `Editor.edit`."""
        import torch

        check_request(request, self.name, self.needs)
        canvas = fit(request.image, request.mask, self.resolution, self.multiple)
        arguments = self.arguments(request, canvas)
        check_length(arguments["prompt"], self.pipeline)
        with (
            torch.inference_mode(),
            quiet_libraries(),
            deterministic(self.settings.cpu_threads),
        ):
            output = self.pipeline(
                **arguments,
                **{self.knobs[name]: value for name, value in self.knob_values.items()},
                generator=torch.Generator("cpu").manual_seed(request.seed),
                output_type="np",
            )
        flagged = getattr(output, "nsfw_content_detected", None)
        return Edited(
            image=canvas.restore((output.images[0] * 255).round().astype(np.uint8)),
            parameters={**self.parameters, "canvas": [canvas.height, canvas.width]},
            flagged=None if flagged is None else bool(flagged[0]),
        )


def check_request(request: EditRequest, name: EditorName, needs: frozenset[Need]) -> None:
    """Checks that a request has what an editor needs.

    Raises:
      InputError: it has not.
    """
    if "instruction" in needs and not (request.instruction or "").strip():
        raise InputError(f"the editor {name} needs an instruction, such as 'make the dog a cat'")
    if "mask" not in needs:
        return
    if request.mask is None:
        raise InputError(f"the editor {name} needs a mask of where the picture may change")
    if request.mask.shape != request.image.shape[:2]:
        raise InputError(
            f"the mask has {request.mask.shape[1]}x{request.mask.shape[0]} pixels, the picture "
            f"{request.image.shape[1]}x{request.image.shape[0]}: they have to have as many"
        )
    if not request.mask.any():
        raise InputError("the mask is empty: nothing may change")
