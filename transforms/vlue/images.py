"""Finds an image whose name is the same, but written in another form of Unicode."""

import os
from functools import lru_cache

from eqforge.schemas.sources.vlue import canonical_name

FOLDERS_REMEMBERED = 4_096


def match_name(root: str, name: str) -> str:
    """Returns the name under which an image lies in a folder, part by part of its path.

    A part that exists as written is taken; else the one that is equal in Unicode NFC, of several
    the first in code point order; else it is kept, and opening the file reports what is missing.
    Archives unpacked on different systems differ only in this.

    Args:
      root: the images folder.
      name: an image's name, with folders before it, relative to `root`.
    """
    folder, found = root, []
    for part in name.split("/"):
        if part in ("", ".", ".."):
            return name  # for the images folder to judge
        by_name = {} if os.path.lexists(os.path.join(folder, part)) else _names(folder)
        found.append(by_name.get(canonical_name(part), part))
        folder = os.path.join(folder, found[-1])
    return "/".join(found)


@lru_cache(maxsize=FOLDERS_REMEMBERED)
def _names(folder: str) -> dict[str, str]:
    """Returns the names in a folder by their NFC; empty where it cannot be listed."""
    try:
        names = sorted(os.listdir(folder), reverse=True)
    except OSError:
        return {}
    return {canonical_name(name): name for name in names}
