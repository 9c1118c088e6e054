"""Whether the scenes of a family show what their captions say, by the boxes of the objects.

The gates measure the same on the renderings; as in `legible`, the limits here have a reserve.
"""

from eqforge.generators.scenes.claims import names_of, side_margin
from eqforge.generators.scenes.families.base import StagedDraft
from eqforge.generators.scenes.legible import (
    MAX_CROSSED_SIDE,
    MIN_SIDE,
    is_sized,
)
from eqforge.generators.scenes.placement import Layout, Placed
from eqforge.generators.scenes.steps import COMPARED
from eqforge.schemas.records.scenes import Claim

MAX_NEAR = 0.03
"""Greatest gap of things that are next to each other, in picture widths."""

MAX_CROSSED_HEIGHT = 0.04
"""How much higher the lower end of a thing is, where only the other caption says that it is on the
other one, in picture widths."""

MIN_FAR = 0.28
"""Least gap of things that are far from each other."""


def is_shown(layout: Layout, draft: StagedDraft, progress: float) -> bool:
    """Tells whether both scenes show what their own captions say, and not the other's."""
    claims = draft.claims
    named = {name for claim in claims for name in names_of(claim)}
    for placed in layout.placed:
        if placed.item.name in named and not is_sized(layout, placed, draft.least, progress):
            return False
    for scene, claim in enumerate(claims):
        seen = {placed.item.name: placed for placed in layout.placed if scene in placed.scenes}
        if not _holds(seen, claim) or _is_crossed(seen, claims[1 - scene]):
            return False
    return layout.is_plain(named)


def _holds(seen: dict[str, Placed], claim: Claim) -> bool:
    if claim.relation in COMPARED:
        return True  # by as much as the step says, which comes later
    if claim.relation in ("near", "far"):
        gap = _gap(seen, claim)
        return gap <= MAX_NEAR if claim.relation == "near" else gap >= MIN_FAR
    if claim.relation in ("on", "in", "under") or claim.reference is None:
        return True
    return _side(seen, claim) >= MIN_SIDE


def _is_crossed(seen: dict[str, Placed], other: Claim) -> bool:
    """Tells whether what the other caption says may be taken for true, too."""
    if other.relation == "on":
        return _raised(seen, other) > MAX_CROSSED_HEIGHT
    if other.relation in ("near", "far", "in", "under", *COMPARED) or other.reference is None:
        return False  # they exclude each other, and what is on a thing is not next to it
    return _side(seen, other) > MAX_CROSSED_SIDE


def _side(seen: dict[str, Placed], claim: Claim) -> float:
    """Returns by how much the order from left to right is as claimed, in picture widths."""
    middles = {name: float(seen[name].silhouette.low[0] + seen[name].silhouette.high[0]) / 2
               for name in names_of(claim)}  # fmt: skip
    return side_margin(claim, middles)


def _raised(seen: dict[str, Placed], claim: Claim) -> float:
    """Returns how much higher the lower end of a target is than its reference's, in the picture."""
    assert claim.reference is not None
    ends = (seen[name].silhouette.high[1] for name in (claim.reference, claim.target))
    reference, target = map(float, ends)
    return reference - target


def _gap(seen: dict[str, Placed], claim: Claim) -> float:
    assert claim.reference is not None
    return seen[claim.target].silhouette.gap(seen[claim.reference].silhouette)
