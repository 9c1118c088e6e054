"""Packages that are imported when they are first used, so that a help does not wait for them.

`from eqforge.core.late import numpy as np` is `import numpy as np` for code, and for the reader;
only what runs when a module is imported must not use it: constants, defaults, and annotations
unless `from __future__ import annotations` leaves them as texts.
"""

import importlib
from typing import TYPE_CHECKING, Any


class _Late:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Returns what the module has of that name, and keeps it for the next time."""
        found = getattr(importlib.import_module(self._name), name)
        setattr(self, name, found)
        return found

    def __reduce__(self) -> tuple[type["_Late"], tuple[str]]:
        """Copies and pickles as the module itself would: by its name."""
        return _Late, (self._name,)


if TYPE_CHECKING:
    import numpy as numpy
    from PIL import ExifTags as ExifTags
    from PIL import Image as Image
    from PIL import ImageOps as ImageOps
else:
    numpy = _Late("numpy")
    ExifTags = _Late("PIL.ExifTags")
    Image = _Late("PIL.Image")
    ImageOps = _Late("PIL.ImageOps")
