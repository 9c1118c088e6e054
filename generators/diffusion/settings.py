"""Settings of the diffusion model, and the records of what it draws."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol

from eqforge.core.errors import InputError
from eqforge.core.identity import Trace
from eqforge.core.ranges import check_range

if TYPE_CHECKING:
    import numpy as np

DEFAULT_MODEL: Final = "CompVis/stable-diffusion-v1-4"
"""The model of the published dataset (EqBen, section 4.2)."""

DEFAULT_REVISION: Final = "133a221b8aa7292a167afc5127cb63fb5005638b"
"""The commit of `DEFAULT_MODEL` that stores its weights as safetensors."""

TINY: Final = "tiny"
"""The name of a model that is created on demand, with random weights."""

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
    if device.partition(":")[0] == "cpu" and precision == "fp16":
        raise InputError(
            "--precision fp16 needs a GPU (--device cuda:0); on the CPU, choose fp32 or bf16"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffusionSettings:
    """Diffusion model and sampling settings."""

    model: Annotated[str, Trace.NAME] = DEFAULT_MODEL
    """Folder of a Diffusers pipeline, or its id on the Hugging Face Hub."""

    revision: str | None = None
    """Commit of the model on the Hub. Required for every Hub model except the default."""

    local_files_only: Annotated[bool, Trace.NONE] = False
    """Work offline. The model must be in a local folder or already downloaded."""

    device: str = "cpu"
    """PyTorch device, such as cuda:0. Images are byte-identical only on the same device."""

    precision: Precision = "fp32"
    """Data type of the model. `fp16` needs a GPU and halves memory use."""

    scheduler: Scheduler = "ddim"
    """Noise scheduler. `model` selects the scheduler saved with the model."""

    steps: int = 50
    """Number of denoising steps."""

    guidance_scale: float = 7.5
    """Weight of the prompt (guidance scale). Values of 1 or less turn guidance off and halve the
    generation time."""

    size_px: int | None = None
    """Width and height of the images in pixels (default: the model's training size)."""

    cpu_threads: int = 4
    """Number of CPU threads. Changing this number changes the images slightly."""

    batch_rows: Literal[4, 2, 1] = 4
    """Batch size of a denoising pass. Smaller batches need less memory. If memory runs out, eqforge
    retries with a smaller batch."""

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= _MAX_STEPS:
            raise InputError(f"--steps {self.steps}: expected 1 to {_MAX_STEPS}")
        if self.cpu_threads < 1:
            raise InputError(f"--cpu-threads {self.cpu_threads}: expected 1 or more")
        if not math.isfinite(self.guidance_scale):
            raise InputError(f"--guidance-scale {self.guidance_scale}: expected a finite number")


# Source: Hertz et al. 2022, sections 3.2 and 3.3; defaults from the authors' README,
# threshold from `LocalBlend` in their notebooks.
@dataclass(frozen=True, kw_only=True, slots=True)
class EditSettings:
    """Prompt-to-prompt settings, by which the first image of a pair guides the second."""

    cross_replace: float = 0.8
    """Fraction of steps, counted from the start, in which the second image reuses the first image's
    attention to shared words."""

    changed_cross_replace: float | None = None
    """Like --cross-replace, but for changed or added words (default: the --cross-replace value)."""

    reweight: float = 1.0
    """Factor that scales the attention to changed or added words."""

    self_replace: float = 0.4
    """Fraction of steps, counted from the start, in which the second image reuses the first image's
    layout."""

    local_blend: bool = True
    """Take everything outside the changed area from the first image. --no-local-blend redraws all
    pixels."""

    blend_threshold: float = 0.3
    """Attention above which a pixel belongs to a word, as a fraction of the maximum attention."""

    alignment: Literal["exact", "published"] = "exact"
    """Match the words of the two prompts exactly (`exact`), or as the authors' code does
    (`published`)."""

    def __post_init__(self) -> None:
        for name in ("cross_replace", "changed_cross_replace", "self_replace", "blend_threshold"):
            check_range(name, getattr(self, name), 0, 1)
        if not 0 <= self.reweight < math.inf:
            raise InputError(f"--reweight {self.reweight}: expected 0 or more")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelIdentity:
    """The weights that generated the images.

    Attributes:
      name: id on the hub, or the folder's name.
      revision: commit on the hub, or of a folder its digest.
      digest: SHA-256 over names and contents of the model's files.
      pipeline: class of diffusers.
    """

    name: str
    revision: str
    digest: str
    pipeline: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PairImages:
    """A pair of images, and how they were generated.

    Attributes:
      images: two of uint8 [height, width, 3], RGB.
      flagged: whether the model's safety checker blacked out an image; None without a checker.
      batch_rows: how many of the four rows (two prompts, each with and without text) went through
        the network at a time; fewer than requested after running out of memory.
      blend_mask: bool [height, width] of the latent, where the second image could differ; None
        without local blend.
    """

    images: "tuple[np.ndarray, np.ndarray]"
    flagged: tuple[bool, bool] | None
    batch_rows: int
    blend_mask: "np.ndarray | None"
