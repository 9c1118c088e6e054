"""Requests for edits of one picture, their results, and what an editor is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from eqforge.generators.diffusion.records import ModelIdentity

EditorName = Literal[
    "prompt-to-prompt", "inpaint", "instruct-pix2pix", "flux-kontext", "qwen-image-edit"
]

Need = Literal["mask", "instruction"]
"""A part of a request that some editors cannot do without."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class EditRequest:
    """A picture, and what is to change in it.

    Attributes:
      image: uint8 [height, width, 3], RGB, upright; any size.
      caption: true of the picture.
      target: what the edited picture is to show.
      instruction: what to do, such as "replace the dog with a cat"; None for editors without need.
      mask: bool [height, width], True where the picture may change; None for editors without need.
      seed: of the noise, in [0, 2**63).
    """

    image: NDArray[np.uint8]
    caption: str
    target: str
    instruction: str | None = None
    mask: NDArray[np.bool_] | None = None
    seed: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Edited:
    """An edited picture.

    Attributes:
      image: uint8 of the original's shape. No editor keeps pixels outside of the mask bit for bit:
        all of the picture went through the model's autoencoder.
      parameters: everything that decided it except the request, for the row: numbers, texts, lists.
      flagged: whether the model's safety checker made the picture black; None without a checker.
    """

    image: NDArray[np.uint8]
    parameters: Mapping[str, Any]
    flagged: bool | None = None


class Editor(Protocol):
    """A loaded model that edits one picture at a time; not for several threads at once."""

    @property
    def name(self) -> EditorName:
        """The kind of editor."""
        ...

    @property
    def needs(self) -> frozenset[Need]:
        """The parts of a request that may not be None."""
        ...

    @property
    def is_random(self) -> bool:
        """Whether another seed gives another picture."""
        ...

    @property
    def identity(self) -> ModelIdentity:
        """The weights."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Everything that decides an edit except the request: what is stored with every row."""
        ...

    @property
    def fingerprint(self) -> str:
        """Digest of `parameters`, the weights among them."""
        ...

    def edit(self, request: EditRequest) -> Edited:
        """Returns the edited picture: the same bytes for the same request on the same device.

        Raises:
          InputError: the request lacks what the editor needs, or its texts do not fit the model.
          torch.OutOfMemoryError: the device has too little memory.
        """
        ...
