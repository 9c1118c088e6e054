"""Construct benchmarks of minimal pairs for vision-language models.

The commands are functions here, with the options as keyword arguments:

    import eqforge

    pairs = eqforge.build("eq-video", captions="mine.csv", videos="videos", output="pairs")
    for sample in pairs.samples():
        print(sample.record.caption_0, sample.images["image_0"].size)
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eqforge.interface.calls import build, lint, metrics, open, plan, score, verify
    from eqforge.schemas.errors import BuildError, EqforgeError, InputError, MissingExtra

__all__ = [
    "BuildError",
    "EqforgeError",
    "InputError",
    "MissingExtra",
    "build",
    "lint",
    "metrics",
    "open",
    "plan",
    "score",
    "verify",
]

# torch's matrix products on a processor come from MKL, which reads this at its first one: a row's
# last bits are then the same wherever in a batch it stands.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")


def __getattr__(name: str) -> Any:
    """Loads what is asked for; a worker or `eqforge --help` needs nothing of it."""
    if name == "__version__":  # it stands in pyproject.toml alone
        return import_module("importlib.metadata").version(__name__)
    if name not in __all__:
        raise AttributeError(f"module 'eqforge' has no attribute {name!r}")
    module = "interface.calls" if name.islower() else "schemas.errors"
    return getattr(import_module(f"eqforge.{module}"), name)
