"""Named colours that look different, and the pairs that light and shade may make look alike.

The names are the eleven basic colour terms of English (Berlin and Kay, Basic Color Terms, 1969).
Each name has one value, so no colour is near the border between two names, but lighting changes how
it looks: a white object in deep shade is as dark as a grey one in the sun. Pairs of scenes
therefore never exchange two colours of TOO_CLOSE.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations

from eqforge.schemas.records.scenes import Vector

PALETTE: Mapping[str, Vector] = {
    "red": (0.527, 0.005, 0.013),
    "orange": (0.956, 0.205, 0.003),
    "yellow": (0.888, 0.644, 0.011),
    "green": (0.013, 0.262, 0.026),
    "blue": (0.007, 0.080, 0.644),
    "purple": (0.270, 0.013, 0.305),
    "pink": (0.913, 0.279, 0.456),
    "brown": (0.156, 0.045, 0.006),
    "white": (0.847, 0.847, 0.847),
    "grey": (0.216, 0.216, 0.216),
    "black": (0.007, 0.007, 0.007),
}
"""Linear red, green and blue in [0, 1]."""

LEAST_DIFFERENCE = 24.5
"""CIEDE2000 difference below which two colours, each at 0.5 to 1.3 of full light, are too close."""

SHADES = (0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.25)
"""How much of full light a surface gets; in less, every colour is nearly black."""

TOO_CLOSE = frozenset(
    {
        *(("red", "orange"), ("red", "pink"), ("red", "brown")),
        *(("orange", "yellow"), ("orange", "brown")),
        *(("blue", "purple"), ("purple", "pink")),
        *(("pink", "white"), ("pink", "grey")),
        *(("brown", "grey"), ("brown", "black")),
        *(("white", "grey"), ("grey", "black")),
    }
)
"""Pairs of names, in palette order, below LEAST_DIFFERENCE; a test recomputes them."""


def are_distinct(first: str, second: str) -> bool:
    """Return True if two palette colours look different in any lighting of the scenes."""
    return first != second and not {(first, second), (second, first)} & TOO_CLOSE


def distinct_pairs() -> Iterator[tuple[str, str]]:
    """Yield the pairs of colours that a pair of scenes may exchange, in a fixed order."""
    return (pair for pair in combinations(PALETTE, 2) if are_distinct(*pair))
