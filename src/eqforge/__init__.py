"""Construct benchmarks of minimal pairs for vision-language models.

The commands are functions here, with the options as keyword arguments:

    import eqforge

    pairs = eqforge.build("eq-video", captions="mine.jsonl", videos="videos", output="pairs")
    for sample in pairs.samples():
        print(sample.record.caption_0, sample.images["image_0"].size)
"""

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eqforge.core.errors import BuildError, EqforgeError, InputError, MissingExtra
    from eqforge.interface.calls import (
        build,
        card,
        combine,
        diff,
        export,
        lint,
        metrics,
        open,
        plan,
        report,
        review_import,
        review_plan,
        score,
        verify,
    )

__all__ = [
    "BuildError",
    "EqforgeError",
    "InputError",
    "MissingExtra",
    "build",
    "card",
    "combine",
    "diff",
    "export",
    "lint",
    "metrics",
    "open",
    "plan",
    "report",
    "review_import",
    "review_plan",
    "score",
    "verify",
]

if find_spec("fcntl") is None:
    _refusal = "eqforge runs on Linux and macOS; on Windows, install and run eqforge inside WSL"
    _is_program = Path(sys.argv[0]).stem == "eqforge"
    raise SystemExit(f"eqforge: {_refusal}") if _is_program else ImportError(_refusal)

# MKL, which computes torch's matrix products on CPUs, reads this at its first one: a row's last
# bits then do not depend on its position in a batch.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")


def __getattr__(name: str) -> Any:
    """Import a public name on first use; workers and `eqforge --help` need none."""
    if name == "__version__":  # defined in pyproject.toml alone
        return import_module("importlib.metadata").version(__name__)
    if name not in __all__:
        raise AttributeError(f"module 'eqforge' has no attribute {name!r}")
    module = "interface.calls" if name.islower() else "core.errors"
    return getattr(import_module(f"eqforge.{module}"), name)
