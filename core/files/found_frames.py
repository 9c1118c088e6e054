"""A folder of numbered pictures in the place of a video, such as FFmpeg writes: `0001.png`, ...

The number is the last run of digits before the ending, whatever is written before it:
`img_00001.jpg`, `000089.png`. FFmpeg counts from 1, and so is counted here.
"""

import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from eqforge.core.files.find_file import (
    MISSING,
    MissingFile,
    find_folder,
    folder_candidates,
    refuse_name,
)
from eqforge.core.files.found_file import FoundFile
from eqforge.core.files.pictures import FILE_SUFFIXES
from eqforge.core.files.source_folder import SourceFolder

_NUMBERED = re.compile(r"(?P<before>.*?)(?P<number>[0-9]+)\.[^.]+", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundFrames:
    """A folder of numbered pictures.

    Attributes:
      name: its path below the folder of videos.
      files: the pictures' names in it, by number.
      fault: why it is not clear which picture is which frame; empty where it is.
    """

    name: str
    files: Mapping[int, str] = field(default_factory=dict)
    fault: str = ""

    @property
    def last(self) -> int:
        """The greatest number, 0 where there is no picture."""
        return max(self.files, default=0)

    def path(self, number: int) -> str:
        """Returns the path of a picture below the folder of videos."""
        return posixpath.normpath(posixpath.join(self.name, self.files[number]))


FoundVideo = FoundFile | FoundFrames
"""A video's file, or the folder of its frames."""


def find_video(
    folder: SourceFolder, name: str, suffixes: Sequence[str]
) -> FoundVideo | MissingFile:
    """Returns a video's file; where there is none, the folder of its frames, or why there is none.

    Raises:
      BuildError, FetchFailed: see `SourceFolder.find`.
    """
    return or_frames(folder, name, suffixes, folder.find(name, suffixes))


def or_frames(
    folder: SourceFolder, name: str, suffixes: Sequence[str], found: FoundFile | MissingFile
) -> FoundVideo | MissingFile:
    """Returns what was found, or the folder of frames where no file was; see `find_video`."""
    if isinstance(found, FoundFile) or found.reason != MISSING.reason:
        return found
    if folder.is_on_disk:
        return _on_disk(folder, name, suffixes)
    if folder.names is None or refuse_name(name) is not None:  # a web server lists no folders
        return found
    listed = _by_folder(folder.names)
    names = map(posixpath.normpath, folder_candidates(name, suffixes))
    return next((number_frames(each, listed[each]) for each in names if each in listed), found)


def _on_disk(folder: SourceFolder, name: str, suffixes: Sequence[str]) -> FoundFrames | MissingFile:
    path = find_folder(folder.root, name, suffixes, folder.follow_links)
    if isinstance(path, MissingFile):
        return path
    try:
        with os.scandir(path) as entries:
            files = [entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        return MissingFile(reason="video_unreadable", detail=error.strerror or str(error))
    return number_frames(os.path.relpath(path, folder.root), files)


@lru_cache(maxsize=4)
def _by_folder(names: frozenset[str]) -> dict[str, list[str]]:
    """Returns the names of files by the folder in which they lie."""
    folders: dict[str, list[str]] = {}
    for name in names:
        folder, _, file = name.rpartition("/")
        folders.setdefault(folder or ".", []).append(file)
    return folders


def number_frames(name: str, files: Iterable[str]) -> FoundFrames:
    """Returns a folder of frames, given the names of the files in it, in any order.

    Hidden files and those that are no pictures with a number are left aside. A folder is not clear
    if two pictures have the same number, if the names before the numbers differ, as where optical
    flow lies beside pictures, or if there is a number 0: then all others would be off by one.
    """
    numbered: dict[int, str] = {}
    beginnings: dict[str, str] = {}
    for file in sorted(files):
        parts = _parts(file)
        if parts is None:
            continue
        before, number = parts
        if number in numbered:
            fault = f"{numbered[number]} and {file} have the same number"
            return FoundFrames(name=name, fault=fault)
        numbered[number] = beginnings[before] = file
    if len(beginnings) > 1:
        first, second = sorted(beginnings.values())[:2]
        return FoundFrames(name=name, fault=f"{first} and {second} are not named alike")
    if 0 in numbered:
        fault = f"{numbered[0]} has the number 0; the first frame is 1, as FFmpeg counts"
        return FoundFrames(name=name, fault=fault)
    return FoundFrames(name=name, files=numbered)


def frame_number(file: str) -> int | None:
    """Returns the number in the name of a picture; None for any other file."""
    parts = _parts(file)
    return None if parts is None else parts[1]


def _parts(file: str) -> tuple[str, int] | None:
    """Returns what a picture's name begins with, and its number; None for any other file."""
    parts = _NUMBERED.fullmatch(file)
    if parts is None or file.startswith(".") or not file.lower().endswith(FILE_SUFFIXES):
        return None
    return parts["before"], int(parts["number"])
