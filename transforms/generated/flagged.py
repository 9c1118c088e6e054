"""Refuses pairs of which a model's own safety checker flagged a picture."""

from collections.abc import Sequence
from typing import Final

from eqforge.schemas.records.scores import Rejection

REASON: Final = "safety_checker"
FLAGGED: Final = {REASON: "The model's own checker flagged a picture, and made it black."}


def flagged(sides: Sequence[bool]) -> Rejection | None:
    """Returns why a pair is refused, given which of its pictures were flagged; None for none."""
    found = ", ".join(str(side) for side, is_flagged in enumerate(sides) if is_flagged)
    return Rejection(reason=REASON, detail=f"image {found}") if found else None
