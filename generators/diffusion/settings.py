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
    if device.partition(":")[0] == "cpu" and precision == "fp16":
        raise InputError("--precision fp16 needs a GPU (--device cuda:0); the CPU has fp32, bf16")


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffusionSettings:
    """The diffusion model, and how it draws."""

    model: Annotated[str, Trace.NAME] = DEFAULT_MODEL
    """Folder of a pipeline saved by diffusers, or its id on the Hugging Face hub."""

    revision: str | None = None
    """Commit on the hub; needed for every model but the default one, which has a pinned one."""

    local_files_only: Annotated[bool, Trace.NONE] = False
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
        if not 1 <= self.steps <= _MAX_STEPS:
            raise InputError(f"--steps {self.steps}: expected 1 to {_MAX_STEPS}")
        if self.cpu_threads < 1:
            raise InputError(f"--cpu-threads {self.cpu_threads}: expected 1 or more")
        if not math.isfinite(self.guidance_scale):
            raise InputError(f"--guidance-scale {self.guidance_scale}: expected a number")


# Source: Hertz et al. 2022, sections 3.2 and 3.3; defaults from the authors' README,
# threshold from `LocalBlend` in their notebooks.
@dataclass(frozen=True, kw_only=True, slots=True)
class EditSettings:
    """How the first picture of a pair guides the second."""

    cross_replace: float = 0.8
    """Share of the steps, from the first, in which the second picture takes the first one's
    attention to the words that both have."""

    changed_cross_replace: float | None = None
    """The same share for the words that are changed or added; as for the others without it."""

    reweight: float = 1.0
    """Factor on the second picture's attention to the words that are changed or added, in the steps
    in which its attention is replaced: 2 shows them more strongly."""

    self_replace: float = 0.4
    """Share of the steps in which it takes the first one's layout, its self-attention."""

    local_blend: bool = True
    """Take the first picture's pixels wherever neither picture attends to the object or attribute
    that is changed; pairs whose scene changes are never blended."""

    blend_threshold: float = 0.3
    """Share of the greatest attention from which on a place belongs to a word."""

    alignment: Literal["exact", "published"] = "exact"
    """How words of the prompts are matched: word for word, or as the authors' code does, which
    shifts what follows a word of several tokens."""

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
