"""The description of an image filter."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from eqforge.core.late import numpy as np
from eqforge.schemas.records.scores import Rejection, Score

if TYPE_CHECKING:
    from numpy.typing import NDArray

Settings = TypeVar("Settings")


def _needs_nothing(_settings: Any) -> None:
    """Loads nothing."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ImageFilter(Generic[Settings]):
    """A filter of images: one function scores, another compares the scores with its settings.

    Attributes:
      settings: its settings; their defaults are those of corrected mode.
      off: the settings with which it refuses nothing.
      reasons: every reason that it may give, explained in one sentence.
      packages: the packages whose versions the scores depend on.
      basis: returns what else they depend on besides the image; limits are not part of it.
      score: scores an image, uint8 of shape (height, width, 3), RGB.
      refuse: returns why an image with such scores is refused; None if it is not.
      prepare: loads what `score` needs, so that a missing package shows before any work.
    """

    settings: type[Settings]
    off: Settings
    reasons: Mapping[str, str]
    packages: tuple[str, ...]
    basis: Callable[[Settings], object]
    score: Callable[[NDArray[np.uint8], Settings], list[Score]]
    refuse: Callable[[Sequence[Score], Settings], Rejection | None]
    prepare: Callable[[Settings], None] = _needs_nothing
