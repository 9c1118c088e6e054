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
    """The model that edits, and how.

    Numbers that are not given are those of the model's pipeline in diffusers.
    """

    model: Annotated[str, Trace.NAME] = DEFAULT_MODEL
    """Folder of a pipeline saved by diffusers, or its id on the Hugging Face hub. `tiny` makes one
    of random weights for --editor inpaint (the default) or instruct-pix2pix, to try everything but
    the pictures."""

    editor: EditorName | None = None
    """How the model edits. The class of its pipeline says it (Stable Diffusion inpaints); only
    `tiny` needs this setting."""

    revision: str | None = None
    """Commit on the hub; needed for every model but the default one, which has a pinned one."""

    local_files_only: Annotated[bool, Trace.NONE] = False
    """Never ask the hub: the model is a folder, or was fetched before."""

    device: str = "cpu"
    """Device as torch names it, such as cuda:0. Only the same one gives the same bytes again."""

    precision: Precision = "fp32"
    """Type of the weights and of the computation; FLUX and Qwen-Image were made in bf16, fp16 needs
    a GPU, and both take half the memory."""

    offload: bool = False
    """Keep the parts of the model in the machine's memory, and only the one that works on the GPU:
    slower, and for GPUs that do not hold the whole model."""

    steps: int | None = None
    """Denoising steps; the time grows with it."""

    guidance: float | None = None
    """Weight of the text."""

    image_guidance: float | None = None
    """Weight of the original picture; InstructPix2Pix alone has it."""

    strength: float | None = None
    """Share of the steps, above 0 and up to 1, that are taken from the original with noise:
    inpainting alone has it, and at 1 nothing of what was there is left."""

    resolution: int | None = None
    """Pictures are edited at about this many pixels squared, and brought back to their own size;
    without it, at the size that the model was trained on."""

    cpu_threads: int = 4
    """Threads that compute on the CPU. The bytes depend on it, so no machine decides it."""

    def __post_init__(self) -> None:
        for name in ("steps", "resolution", "cpu_threads"):
            number = getattr(self, name)
            expect(self, name, number is None or number >= 1, "1 or more")
        for name in ("guidance", "image_guidance"):
            number = getattr(self, name)
            expect(self, name, number is None or math.isfinite(number), "a number")
        check_range("strength", self.strength, 0, 1)
        if self.strength == 0:
            raise InputError("--strength 0: nothing would change; expected more than 0, up to 1")
        least = self.image_guidance
        expect(self, "image_guidance", least is None or least >= 1, "1 or more")
        check_precision(self.precision, self.device)
        if self.device.partition(":")[0] == "cpu" and self.offload:
            raise InputError("--offload moves parts of a model to a GPU: name it with --device")

    def on(self, device: str) -> "EditorSettings":
        """Return the settings for another device, to try there whether the model loads."""
        if device != "cpu":
            return replace(self, device=device)
        precision: Precision = "fp32" if self.precision == "fp16" else self.precision
        return replace(self, device=device, precision=precision, offload=False)
