"""Settings of the diffusion model, and the records of what it is asked for and draws."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol

from eqforge.core.errors import InputError

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
        if not 1 <= self.steps <= _MAX_STEPS:
            raise InputError(f"--steps {self.steps}: expected 1 to {_MAX_STEPS}")
        if self.cpu_threads < 1:
            raise InputError(f"--cpu-threads {self.cpu_threads}: expected 1 or more")
        if not math.isfinite(self.guidance_scale):
            raise InputError(f"--guidance-scale {self.guidance_scale}: expected a number")


Span = float | tuple[float, float]
"""A part of the denoising steps: up to a fraction, or between two, each in [0, 1]."""

WordName = str | int
"""A word as the prompt has it, or several in a row; or the number that `str.split` gives it."""

DEFAULT_WORDS: Final = "default_"
"""Stands for all words that are not named, as in the authors' code."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalBlend:
    """Where the second image may differ: at the words, as located by attention.

    Attributes:
      words: those of the first and of the second prompt.
      threshold: fraction of the largest attention, above which a pixel belongs to the words.
      start: fraction of the steps after which pixels are taken from the first image.

    Source: `LocalBlend` in the notebooks of prompt-to-prompt: threshold 0.3, 16x16 maps, from the
      first step on; its null-text notebook starts at 0.2.
    """

    words: tuple[tuple[WordName, ...], tuple[WordName, ...]]
    threshold: float = 0.3
    start: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class EditControl:
    """How the attention of the first image guides the second.

    Attributes:
      method: `replace` exchanges words and wants as many words in both prompts; `refine` keeps the
        attention of the words both prompts have and leaves new words theirs.
      cross_replace_steps: when the cross-attention is replaced: for all words, or by word of the
        second prompt, with `default_` for the rest.
      self_replace_steps: when the self-attention is replaced.
      self_replace_side: self-attention maps up to this width are replaced; without it, up to a
        quarter of the latent's, at least 16: the 16 of the authors at 512x512 pixels.
      reweight: factors on the attention to words of the second prompt, while it is replaced.
      heat_side: width of the cross-attention maps that tell where the words are in the picture;
        without it, chosen likewise.
      blend: keeps the rest of the image as it is; None allows changes everywhere.
      alignment: `published` aligns words and tokens as the authors' code does, with its defects.
      changed: the words of either prompt that the edit touches, by number; without them the prompts
        are equal. Where it is known, `refine` cannot mistake one "on" for another; None compares
        the tokens.

    Source: Hertz et al. 2022, sections 3.2 and 3.3; the defaults are those of the authors' README.
    """

    method: Literal["replace", "refine"]
    cross_replace_steps: Span | Mapping[WordName, Span] = 0.8
    self_replace_steps: Span = 0.4
    self_replace_side: int | None = None
    reweight: Mapping[WordName, float] = field(default_factory=dict)
    heat_side: int | None = None
    blend: LocalBlend | None = None
    alignment: Literal["exact", "published"] = "exact"
    changed: tuple[tuple[int, ...], tuple[int, ...]] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PairRequest:
    """Two prompts to draw from one initial latent.

    Attributes:
      prompts: those of the first and the second image.
      seed: of the initial latent and of a stochastic scheduler's noise, in [0, 2**63).
      control: how the first image guides the second; None generates both independently.
    """

    prompts: tuple[str, str]
    seed: int
    control: EditControl | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelIdentity:
    """The weights that generated the images.

    Attributes:
      name: id on the hub, or the folder's name.
      revision: commit on the hub; of a folder, the digest.
      digest: SHA-256 over names and contents of the model's files.
      pipeline: class of diffusers.
    """

    name: str
    revision: str
    digest: str
    pipeline: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionSummary:
    """What the control did.

    Attributes:
      cross_steps, self_steps: calls of the network in which cross- and self-attention were
        replaced.
      cross_layers, self_layers: layers in which they were; 0 where there was no such step.
      changed_tokens: how many tokens of either prompt have no equal in the other one.
    """

    cross_steps: int
    self_steps: int
    cross_layers: int
    self_layers: int
    changed_tokens: tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class PairImages:
    """A pair of images, and how they were generated.

    Attributes:
      images: two of uint8 [height, width, 3], RGB.
      flagged: whether the model's safety checker blacked out an image; None without a checker.
      batch_rows: how many of the four rows (two prompts, each with and without text) went through
        the network at a time; fewer than requested after running out of memory.
      latents: float32 [2, channels, height, width], the last ones.
      blend_mask: bool [height, width] of the latent, where the second image could differ; None
        without local blend.
      attention: what the control did; None without control.
    """

    images: "tuple[np.ndarray, np.ndarray]"
    flagged: tuple[bool, bool] | None
    batch_rows: int
    latents: "np.ndarray"
    blend_mask: "np.ndarray | None"
    attention: AttentionSummary | None
