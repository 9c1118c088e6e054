"""Settings of the diffusion model and its sampling."""

import math
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from eqforge.core.errors import InputError

DEFAULT_MODEL: Final = "CompVis/stable-diffusion-v1-4"
"""The model of the published dataset (EqBen, section 4.2)."""

DEFAULT_REVISION: Final = "133a221b8aa7292a167afc5127cb63fb5005638b"
"""The commit of `DEFAULT_MODEL` since its weights are stored as safetensors."""

TINY: Final = "tiny"
"""The name of the model that is made on the spot, with random weights."""

Scheduler = Literal["ddim", "pndm", "euler", "euler-ancestral", "ddpm", "dpm-solver", "model"]

Precision = Literal["fp32", "fp16", "bf16"]


class ModelSettings(Protocol):
    """What settings say of a model that is to be loaded."""

    @property
    def model(self) -> str: ...
    @property
    def revision(self) -> str | None: ...
    @property
    def local_files_only(self) -> bool: ...
    @property
    def device(self) -> str: ...
    @property
    def precision(self) -> Precision: ...


_MAX_STEPS = 1000  # the noise levels that models are trained with


def check_precision(precision: Precision, device: str) -> None:
    """Check that a device computes in a precision."""
    if device.partition(":")[0] == "cpu" and precision == "fp16":
        raise InputError("--precision fp16 needs a GPU (--device cuda:0); the CPU has fp32, bf16")


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffusionSettings:
    """The diffusion model, and how it draws."""

    model: str = DEFAULT_MODEL
    """Folder of a pipeline saved by diffusers, or its id on the Hugging Face hub."""

    revision: str | None = None
    """Commit on the hub; needed for every model but the default one, which has a pinned one."""

    local_files_only: bool = False
    """Never ask the hub: the model is a folder, or was fetched before."""

    device: str = "cpu"
    """Device as torch names it, such as cuda:0. Only the same one gives the same bytes again."""

    precision: Precision = "fp32"
    """Type of the weights and of the computation; fp16 needs a GPU and half the memory."""

    scheduler: Scheduler = "ddim"
    """How noise is removed; `model` takes the one that the model was saved with."""

    steps: int = 50
    """Denoising steps; the time grows with it."""

    guidance_scale: float = 7.5
    """Weight of the prompt against none; 1 and less draws without guidance, in half the time."""

    size_px: int | None = None
    """Width and height of the pictures; without it, those that the model was trained on."""

    cpu_threads: int = 4
    """Threads that compute on the CPU. The bytes depend on it, so no machine decides it."""

    batch_rows: Literal[4, 2, 1] = 4
    """Rows of a pair that go through the network at a time; less takes less memory and more time.
    When the memory does not suffice, a pair is drawn again with half of it, and its row says so."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not 1 <= self.steps <= _MAX_STEPS:
            raise InputError(f"--steps {self.steps}: expected 1 to {_MAX_STEPS}")
        if self.cpu_threads < 1:
            raise InputError(f"--cpu-threads {self.cpu_threads}: expected 1 or more")
        if not math.isfinite(self.guidance_scale):
            raise InputError(f"--guidance-scale {self.guidance_scale}: expected a number")
