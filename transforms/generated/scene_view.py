"""A rendered scene as it is measured: its pixels and its instance mask."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eqforge.core.late import numpy as np
from eqforge.schemas.records.scenes import Overlap, RenderedObject

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RenderedView:
    """A rendered scene with its pixels.

    Attributes:
      pixels: uint8 of shape (height, width, 3), RGB.
      numbers: the instance mask, integers of shape (height, width): 0 is the backdrop, objects
        count from 1.
      objects: what the image shows of each, in the order of their numbers.
      overlaps: the pairs of objects that intersect.
    """

    pixels: NDArray[np.uint8]
    numbers: NDArray[np.integer[Any]]
    objects: tuple[RenderedObject, ...]
    overlaps: tuple[Overlap, ...]

    def mask(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Returns the mask of some objects' visible pixels; objects not in the scene have none."""
        wanted = set(names)
        numbers = [number for number, shown in enumerate(self.objects, 1) if shown.name in wanted]
        return np.isin(self.numbers, numbers)

    def shown(self, name: str) -> RenderedObject:
        """Returns what the picture shows of an object."""
        return next(shown for shown in self.objects if shown.name == name)
