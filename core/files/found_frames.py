"""A folder of numbered images in place of a video, as FFmpeg writes: `0001.png`, ...

The number is the last run of digits before the suffix: `img_00001.jpg`, `000089.png`. FFmpeg counts
from 1, and so does eqforge.
"""

import functools
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from eqforge.core.errors import InputError
from eqforge.core.files.find_file import (
    MISSING,
    MissingFile,
    find_folder,
    folder_candidates,
    reject_name,
)
from eqforge.core.files.found_file import FoundFile
from eqforge.core.files.pictures import FILE_SUFFIXES
from eqforge.core.files.source_folder import SourceFolder

_NUMBERED = re.compile(r"(?P<before>.*?)(?P<number>[0-9]+)\.[^.]+", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundFrames:
    """A folder of numbered images.

    Attributes:
        name: path below the folder of videos.
        files: file names by number.
        fault: why the numbers are ambiguous; empty if they are not.
    """

    name: str
    files: Mapping[int, str] = field(default_factory=dict)
    fault: str = ""

    @property
    def last(self) -> int:
        return max(self.files, default=0)

    def path(self, number: int) -> str:
        return posixpath.normpath(posixpath.join(self.name, self.files[number]))


FoundVideo = FoundFile | FoundFrames


def find_video(
    folder: SourceFolder, name: str, suffixes: Sequence[str]
) -> FoundVideo | MissingFile:
    return or_frames(folder, name, suffixes, folder.find(name, suffixes))


def or_frames(
    folder: SourceFolder, name: str, suffixes: Sequence[str], found: FoundFile | MissingFile
) -> FoundVideo | MissingFile:
    if isinstance(found, FoundFile) or found.reason != MISSING.reason:
        return found
    if folder.is_on_disk:
        path = find_folder(folder.root, name, suffixes, folder.follow_links)
        if isinstance(path, MissingFile):
            return path
        try:
            with os.scandir(path) as entries:
                files = [entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            return MissingFile(reason="video_unreadable", detail=error.strerror or str(error))
        return number_frames(os.path.relpath(path, folder.root), files)
    if folder.names is None or reject_name(name) is not None:  # a web server lists no folders
        return found
    listed = _by_folder(folder.names)
    names = map(posixpath.normpath, folder_candidates(name, suffixes))
    return next((number_frames(each, listed[each]) for each in names if each in listed), found)


@lru_cache(maxsize=4)
def _by_folder(names: frozenset[str]) -> dict[str, list[str]]:
    folders: dict[str, list[str]] = {}
    for name in names:
        folder, _, file = name.rpartition("/")
        folders.setdefault(folder or ".", []).append(file)
    return folders


def number_frames(name: str, files: Iterable[str]) -> FoundFrames:
    """Return a folder of frames from the names of its files, in any order.

    Hidden files and files other than numbered images are skipped. A folder has a fault if two
    images have the same number, if the names before the numbers differ (as where optical flow lies
    next to images), or if there is a number 0, because all others would be off by one.
    """
    numbered: dict[int, str] = {}
    beginnings: dict[str, str] = {}
    for file in sorted(files):
        parts = _parts(file)
        if parts is None:
            continue
        before, number = parts
        if number in numbered:
            fault = f"{numbered[number]} and {file} have the same frame number"
            return FoundFrames(name=name, fault=fault)
        numbered[number] = beginnings[before] = file
    if len(beginnings) > 1:
        first, second = sorted(beginnings.values())[:2]
        return FoundFrames(name=name, fault=f"{first} and {second} are named in different ways")
    if 0 in numbered:
        fault = f"{numbered[0]} has the number 0, but frames are numbered from 1, as in FFmpeg"
        return FoundFrames(name=name, fault=fault)
    return FoundFrames(name=name, files=numbered)


def _parts(file: str) -> tuple[str, int] | None:
    parts = _NUMBERED.fullmatch(file)
    if parts is None or file.startswith(".") or not file.lower().endswith(FILE_SUFFIXES):
        return None
    return parts["before"], int(parts["number"])


_TRIMMED = re.compile(r"(?P<video>.+)_[0-9]{6}_[0-9]{6}")
_MOST_FOLDERS = 2  # such as train/abseiling


@dataclass(frozen=True)
class TrimmedClips:
    """The clips below a folder, listed once and only if needed."""

    folder: SourceFolder
    suffixes: tuple[str, ...]

    def find(self, video: str) -> str:
        """Return the name of a video, or of its only clip, below the folder.

        A file or folder of frames with the video's own name comes first. Clips are looked for in
        the folder itself, in class folders, and in split folders that hold class folders. If
        nothing is found, or a web server holds the folder, the video's own name is returned.
        """
        if not self.folder.is_on_disk and self.folder.names is None:
            return video
        found = find_video(self.folder, video, self.suffixes)
        if not isinstance(found, MissingFile) or found.reason != MISSING.reason:
            return video
        names = self._names.get(video, [])
        if len(names) > 1:
            raise InputError(
                f"--videos {self.folder.root}: the video {video} has two clips, {names[0]} and "
                f"{names[1]}. Remove one of them."
            )
        return names[0] if names else video

    @functools.cached_property
    def _names(self) -> dict[str, list[str]]:
        listed = self.folder.names
        root, suffixes = self.folder.root, self.suffixes
        found = _walk(root, suffixes) if listed is None else _listed(listed, suffixes)
        clips: dict[str, list[str]] = {}
        for name in sorted(set(found)):
            video = _video_of(name.rpartition("/")[2], suffixes)
            assert video is not None
            clips.setdefault(video, []).append(name)
        return clips


def _video_of(name: str, suffixes: Sequence[str]) -> str | None:
    stem, ending = os.path.splitext(name)
    parts = _TRIMMED.fullmatch(stem if ending.lower() in suffixes else name)
    return None if parts is None else parts["video"]


def _walk(root: str, suffixes: Sequence[str], below: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the clips in a folder of a disk, without descending into folders of frames."""
    clips, folders = [], []
    with os.scandir(os.path.join(root, below)) as entries:
        for entry in entries:
            # A link may lead round in a circle.
            is_folder = os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()
            if not is_folder and _parts(entry.name) is not None:
                return
            if _video_of(entry.name, suffixes) is None:
                folders += [entry.name] * is_folder
            elif is_folder or os.path.splitext(entry.name)[1].lower() in suffixes:
                clips.append(entry.name)
    yield from (f"{below}{name}" for name in clips)
    if depth < _MOST_FOLDERS:
        for name in folders:
            yield from _walk(root, suffixes, f"{below}{name}/", depth + 1)


def _listed(names: frozenset[str], suffixes: Sequence[str]) -> Iterator[str]:
    for name in names:
        parts = name.split("/")
        for place, part in enumerate(parts[: _MOST_FOLDERS + 1]):
            is_folder = place < len(parts) - 1
            if _video_of(part, suffixes) is not None and (
                is_folder or os.path.splitext(part)[1].lower() in suffixes
            ):
                yield "/".join(parts[: place + 1])
                break
