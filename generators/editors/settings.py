"""Settings of an editor: its model, and how it edits."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from eqforge.core.errors import InputError
from eqforge.core.identity import Trace
from eqforge.core.ranges import check_range, expect
from eqforge.generators.diffusion.settings import DEFAULT_MODEL, Precision, check_precision

EditorName = Literal["inpaint", "instruct-pix2pix", "flux-kontext", "qwen-image-edit"]


@dataclass(frozen=True, kw_only=True, slots=True)
class EditorSettings:
    """Image editing model. Numbers that you omit take the defaults of the model's pipeline."""

    model: Annotated[str, Trace.NAME] = DEFAULT_MODEL
    """Folder of a Diffusers pipeline, or its id on the Hugging Face Hub. `tiny` creates a model
    with random weights, for --editor inpaint or instruct-pix2pix."""

    editor: EditorName | None = None
    """Editing method of the model. Needed only with `--model tiny`."""

    revision: str | None = None
    """Commit of the model on the Hub. Required for every Hub model except the default."""

    local_files_only: Annotated[bool, Trace.NONE] = False
    """Work offline. The model must be in a local folder or already downloaded."""

    device: str = "cpu"
    """PyTorch device, such as cuda:0. Images are byte-identical only on the same device."""

    precision: Precision = "fp32"
    """Data type of the model. `fp16` and `bf16` halve memory use, but `fp16` needs a GPU."""

    offload: bool = False
    """Keep only the active component of the model on the GPU. This saves memory but is slower."""

    steps: int | None = None
    """Number of denoising steps."""

    guidance: float | None = None
    """Weight of the text prompt."""

    image_guidance: float | None = None
    """Weight of the original image. Applies only to InstructPix2Pix."""

    strength: float | None = None
    """Fraction of the denoising steps to rerun, in (0, 1]. At 1, none of the original image is
    kept. Applies only to inpainting."""

    resolution: int | None = None
    """Working resolution N in pixels. Each image is scaled to an area of about N x N pixels,
    edited, and scaled back."""

    cpu_threads: int = 4
    """Number of CPU threads. Changing this number changes the images slightly."""

    def __post_init__(self) -> None:
        for name in ("steps", "resolution", "cpu_threads"):
            number = getattr(self, name)
            expect(self, name, number is None or number >= 1, "1 or more")
        for name in ("guidance", "image_guidance"):
            number = getattr(self, name)
            expect(self, name, number is None or math.isfinite(number), "a finite number")
        check_range("strength", self.strength, 0, 1)
        if self.strength == 0:
            raise InputError("--strength 0 changes nothing; expected more than 0 and at most 1")
        least = self.image_guidance
        expect(self, "image_guidance", least is None or least >= 1, "1 or more")
        check_precision(self.precision, self.device)
        if self.device.partition(":")[0] == "cpu" and self.offload:
            raise InputError("--offload needs a GPU; also pass its name, such as --device cuda:0")

    def on(self, device: str) -> "EditorSettings":
        """Return the settings for another device, to try there whether the model loads."""
        if device != "cpu":
            return replace(self, device=device)
        precision: Precision = "fp32" if self.precision == "fp16" else self.precision
        return replace(self, device=device, precision=precision, offload=False)
