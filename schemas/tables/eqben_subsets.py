"""EqBen's seven subsets: their order, their sizes, and the kinds of pairs that are of them."""

from collections.abc import Mapping
from typing import Final

EQBEN: Final = "eqben"
EQBEN_SIZES: Final[Mapping[str, int]] = {
    "ag": 195_872,
    "youcook2": 45_849,
    "gebc": 1_814,
    "kubric-location": 2_000,
    "kubric-counting": 2_000,
    "kubric-attribute": 2_000,
    "sd": 1_513,
}
"""Number of samples of EqBen's subsets, in the order of its published score vectors."""

EQBEN_FOLDERS: Final[Mapping[str, str]] = {
    "ag": "eqbenag",
    "youcook2": "eqbenyoucook2",
    "gebc": "eqbengebc",
    "kubric-location": "eqbenkubric_loc",
    "kubric-counting": "eqbenkubric_cnt",
    "kubric-attribute": "eqbenkubric_attr",
    "sd": "eqbensd",
}
"""The folder of each subset in the published image tree."""

_SUBSETS: Final = {
    "eq-ag": "ag",
    "eq-youcook2": "youcook2",
    "eq-gebc": "gebc",
    "eq-kubric/location": "kubric-location",
    "eq-kubric/counting": "kubric-counting",
    "eq-kubric/attribute": "kubric-attribute",
    "eq-sd": "sd",
    **{folder: subset for subset, folder in EQBEN_FOLDERS.items()},
}


def eqben_subset(kind: str) -> str:
    """Returns the subset of EqBen that a kind of pairs is of; an empty name if it is of none."""
    own = kind.removeprefix(f"{EQBEN}/")
    return _SUBSETS.get(own) or _SUBSETS.get(own.partition("/")[0], "")
