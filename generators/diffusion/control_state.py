"""What the attention layers of one pair share while it is drawn."""

from typing import TYPE_CHECKING, Literal

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.control import CallPlan, ControlPlan

if TYPE_CHECKING:
    import torch

Row = Literal["plain first", "plain second", "first", "second"]
"""A row of the network's batch: either image; `plain` ones are without prompt."""


class AttentionControl:
    """The state that the layers of one pair share.

    Args:
      plan: what is replaced and read in which call.

    Attributes:
      number: number of the network's call, from 0.
      rows: the rows in the network's current batch.
      cross_layers, self_layers: names of the layers where attention was replaced.
    """

    def __init__(self, plan: ControlPlan) -> None:
        import torch

        self.plan = plan
        self.number = 0
        self.rows: tuple[Row, ...] = ()
        self.cross_layers: set[str] = set()
        self.self_layers: set[str] = set()
        device = plan.calls[0].words.device
        self._heat = torch.zeros((plan.heat_pixels or 0, 2), dtype=torch.float32, device=device)
        self._maps = 0

    @property
    def call(self) -> CallPlan:
        """What is replaced and read of cross-attention in this call."""
        return self.plan.calls[self.number]

    def replaces_self(self, pixels: int) -> bool:
        """Tells whether self-attention maps of `pixels` pixels are replaced in this call."""
        return self.number in self.plan.self_calls and pixels <= self.plan.self_pixels

    def add_heat(self, heat: "torch.Tensor", maps: int) -> None:
        """Adds a layer's attention to the words of the local blend.

        Args:
          heat: [pixels, 2], the attention of each image.
          maps: 1 if the second image is in it, so that every layer counts once, else 0.
        """
        self._heat += heat
        self._maps += maps

    def blend_heat(self) -> "torch.Tensor":
        """Returns the attention to the words of the local blend so far, [2, pixels].

        Raises:
          InputError: the network has no map of the requested side.
        """
        if not self._maps:
            side = round((self.plan.heat_pixels or 0) ** 0.5)
            raise InputError(
                f"local blend reads {side}x{side} maps of the cross-attention, and the network has "
                "none at this picture's size: choose another side"
            )
        return self._heat.T
