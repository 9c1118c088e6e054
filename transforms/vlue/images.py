"""Finds an image whose name is the same, but written in another form of Unicode."""

import os
from functools import lru_cache

from eqforge.core.files.source_folder import SourceFolder
from eqforge.sources.vlue import canonical_name

FOLDERS_REMEMBERED = 4_096


def match_name(folder: SourceFolder, name: str) -> str:
    """Returns the name under which an image lies in a folder, part by part of its path.

    A part that exists as written is taken; else the one that is equal in Unicode NFC, of several
    the first in code point order; else it is kept, and opening the file reports what is missing.
    Archives unpacked on different systems differ only in this.

    Args:
      folder: the images folder; on a web server, which lists no names, none is matched.
      name: an image's name, with folders before it, relative to it.
    """
    if not folder.is_on_disk:
        names = folder.names or frozenset((name,))
        return name if name in names else _canonical(names).get(canonical_name(name), name)
    place, found = folder.root, []
    for part in name.split("/"):
        if part in ("", ".", ".."):
            return name  # for the images folder to judge
        by_name = {} if os.path.lexists(os.path.join(place, part)) else _names(place)
        found.append(by_name.get(canonical_name(part), part))
        place = os.path.join(place, found[-1])
    return "/".join(found)


@lru_cache
def _canonical(names: frozenset[str]) -> dict[str, str]:
    """Returns names by their NFC."""
    return {canonical_name(name): name for name in sorted(names, reverse=True)}


@lru_cache(maxsize=FOLDERS_REMEMBERED)
def _names(folder: str) -> dict[str, str]:
    """Returns the names in a folder by their NFC; empty where it cannot be listed."""
    try:
        names = sorted(os.listdir(folder), reverse=True)
    except OSError:
        return {}
    return {canonical_name(name): name for name in names}
