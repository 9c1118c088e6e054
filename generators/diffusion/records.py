"""Requests for pairs of images, and their results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import numpy as np

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
