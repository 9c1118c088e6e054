"""Where eqforge keeps its downloads, for all runs of a user."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Returns eqforge's cache folder: $EQFORGE_CACHE, else `eqforge` in the user's cache folder."""
    if own := os.environ.get("EQFORGE_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eqforge"
