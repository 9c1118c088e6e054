"""Finds what an annotation may have meant by the name of a file that is not there."""

import itertools
import os
import posixpath
from collections.abc import Iterable, Iterator, Sequence

from eqforge.core.files.found_file import FoundFile
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.visible import visible

LOOKED_AT = 100_000
"""How many files of a folder are looked at; a folder of frames may hold millions."""


def namesakes(
    folder: SourceFolder, names: Sequence[str], suffixes: Sequence[str]
) -> dict[str, str]:
    """Return `; did you mean …?` for each name whose file lies elsewhere in the folder.

    A file matches if its own name is the same, apart from case and an ending of `suffixes`. Of
    several, the one that shares most folders with the name is suggested.
    """
    wanted = {_own_name(name, suffixes) for name in names}
    found: dict[str, list[str]] = {}
    for file in itertools.islice(_files(folder), LOOKED_AT) if names else ():
        own = _own_name(file, suffixes)
        if own in wanted and isinstance(folder.find(file), FoundFile):  # a link may be rejected
            found.setdefault(own, []).append(file)
    return {
        name: f"; did you mean {visible(_nearest(name, files))!r}?"
        for name in names
        if (files := found.get(_own_name(name, suffixes)))
    }


def _own_name(name: str, suffixes: Sequence[str]) -> str:
    own = posixpath.basename(name).casefold()
    stem, ending = os.path.splitext(own)
    return stem if ending in suffixes else own


def _nearest(name: str, files: Iterable[str]) -> str:
    """Return the file that shares most folders with a name, counted from the end."""

    def distance(file: str) -> tuple[int, str]:
        pairs = zip(name.split("/")[-2::-1], file.split("/")[-2::-1], strict=False)
        return -len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))), file

    return min(files, key=distance)


def _files(folder: SourceFolder) -> Iterator[str]:
    """Yield the names of a folder's files; nothing for a web server, which lists none."""
    if not folder.is_on_disk:
        yield from folder.names or ()
        return
    for path, _, files in os.walk(folder.root):
        for file in files:
            yield os.path.relpath(os.path.join(path, file), folder.root)
