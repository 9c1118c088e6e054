"""Limits of gates that were fitted to pairs which people looked at, and the file that holds them.

`eqforge review calibrate` writes it, `--calibration` of a build reads it; it holds no text and no
picture.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_bytes

FORMAT: Final = "eqforge gate limits"
VERSION: Final = 1

LIMITS: Final[Mapping[str, str]] = {
    "min_changed_area": "changed_area_fraction",
    "max_changed_area": "changed_area_fraction",
    "min_ssim": "ssim",
    "max_ssim": "ssim",
    "min_background_ssim": "background_ssim",
    "max_luminance_shift": "luminance_shift",
    "min_phash_distance": "phash_distance",
    "max_phash_distance": "phash_distance",
    "max_changed_outside": "changed_outside",
    "max_perceptual": "perceptual_distance",
    "max_implausibility": "implausibility",
    "oracle_min": "oracle_own",
    "oracle_max": "oracle_crossed",
}
"""The settings that can be fitted, with what each of them is a limit on.

A name that begins or ends with `min` is of a least value. `implausibility` is the greatest of the
captions that are drawn, `oracle_own` the least of the two P(match) of captions with their own
pictures, and `oracle_crossed` the greatest of the two with the other picture."""

WHOLE: Final = frozenset({"min_phash_distance", "max_phash_distance"})
"""Limits that are whole numbers."""

SPARE_SCENES: Final = (
    "max_changed_area",
    "min_ssim",
    "min_background_ssim",
    "max_luminance_shift",
    "max_phash_distance",
)
"""Limits that pairs whose scene changes are not held to, as most of the picture changes with it."""


def is_least(name: str) -> bool:
    """Tells whether a limit is a least value; others are a greatest one."""
    return name.startswith("min_") or name.endswith("_min")


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """How many of some labelled pairs a limit keeps, and how many of these are right.

    Attributes:
      kept, right: numbers of pairs.
      precision: the share of the kept ones that is right; None where none is kept.
      interval: of the precision at 95 %, from resampled sources; None where there is none.
    """

    kept: int
    right: int
    precision: float | None
    interval: tuple[float, float] | None


class FittedLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that was fitted by itself.

    Attributes:
      limit: the setting, a key of LIMITS.
      value: its value; None where no value reaches the precision that is wanted.
      interval: of the value at 95 %, from resampled sources; None where half of them or more have
        no value.
      reached: the share of the resamples in which a value reaches the precision.
      pairs, right: how many labelled pairs have the measure, and how many of these are right.
      fitted: what it keeps of the pairs that it was fitted to, which flatters it.
      held_out: what it keeps of pairs that it was not fitted to, in as many parts as there are
        folds.
      scorer, version: of the model that measures; empty where eqforge's own code does.
    """

    limit: str
    value: float | None
    interval: tuple[float, float] | None
    reached: float
    pairs: int
    right: int
    fitted: Held
    held_out: Held
    scorer: str = ""
    version: str = ""


class GateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits that a build takes, and all that were tried.

    Attributes:
      dataset: name of the dataset whose pairs were labelled.
      sha256: of its manifest.
      precision: the share of kept pairs that was to be right.
      pairs, right, unsure: how many pairs people decided on, kept, and were unsure about; these
        count for nothing.
      limits: the limits that a build takes, by setting.
      fits: all that were tried, in the order of LIMITS.
    """

    format: str = FORMAT
    version: int = VERSION
    dataset: str
    sha256: str
    precision: float
    pairs: int
    right: int
    unsure: int
    limits: dict[str, float]
    fits: list[FittedLimit]

    def fit(self, name: str) -> FittedLimit:
        """Returns how a limit was fitted.

        Raises:
          KeyError: it was not tried.
        """
        return {each.limit: each for each in self.fits}[name]


def read_gate_limits(path: Path) -> GateLimits:
    """Reads a file of limits.

    Raises:
      InputError: the file is none, or does not hang together.
    """
    found = decode(read_bytes(path), GateLimits, str(path))
    if (found.format, found.version) != (FORMAT, VERSION):
        raise InputError(
            f"{path}: expected format {FORMAT} {VERSION}, as eqforge review calibrate writes"
        )
    tried = {each.limit: each for each in found.fits}
    for name, value in found.limits.items():
        if name not in LIMITS or name not in tried:
            raise InputError(f"{path}: limits: {name!r} is no limit that was fitted")
        if not math.isfinite(value) or tried[name].value != value:
            raise InputError(f"{path}: limits: {name}: expected the value that was fitted")
    if not found.limits:
        raise InputError(f"{path}: limits: holds none: no limit reached the precision")
    return found


def gate_limits_json(limits: GateLimits) -> bytes:
    """Returns the file of some limits."""
    return msgspec.json.format(msgspec.json.encode(limits), indent=1) + b"\n"
