"""Videos as Kinetics is distributed: clips named by video, start and end, in folders of classes.

`abseiling/SIbQ1aJ8eLM_000018_000028.mp4` is the clip of the video SIbQ1aJ8eLM from second 18 to 28.
"""

import functools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eqforge.core.errors import InputError
from eqforge.core.files.find_file import MISSING, MissingFile
from eqforge.core.files.found_frames import find_video, frame_number
from eqforge.core.files.source_folder import SourceFolder

_TRIMMED = re.compile(r"(?P<video>.+)_[0-9]{6}_[0-9]{6}")
_MOST_FOLDERS = 2  # such as train/abseiling


@dataclass(frozen=True)
class TrimmedClips:
    """The clips below a folder, listed once and only if they are needed.

    Attributes:
      folder: the folder of videos.
      suffixes: the endings that a file may have.
    """

    folder: SourceFolder
    suffixes: tuple[str, ...]

    def find(self, video: str) -> str:
        """Returns the name under which a video, or the one clip of it, lies below the folder.

        A file or a folder of frames that has the video's own name comes first. Clips are looked for
        in the folder, in folders of classes, and in those of splits that hold folders of classes.
        Where there is neither, or the folder is that of a web server, the name is the video's.

        Raises:
          InputError: there are two clips of the video.
        """
        if not self.folder.is_on_disk and self.folder.names is None:
            return video
        found = find_video(self.folder, video, self.suffixes)
        if not isinstance(found, MissingFile) or found.reason != MISSING.reason:
            return video
        names = self._names.get(video, [])
        if len(names) > 1:
            raise InputError(
                f"--videos {self.folder.root}: {names[0]} and {names[1]} are clips of one video, "
                f"{video}, and the annotations mean one: take the other away"
            )
        return names[0] if names else video

    @functools.cached_property
    def _names(self) -> dict[str, list[str]]:
        """The names of the clips by their video, sorted."""
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
    """Returns the video of a clip, given the name of its file or folder; None if it is no clip."""
    stem, ending = os.path.splitext(name)
    parts = _TRIMMED.fullmatch(stem if ending.lower() in suffixes else name)
    return None if parts is None else parts["video"]


def _walk(root: str, suffixes: Sequence[str], below: str = "", depth: int = 0) -> Iterator[str]:
    """Yields the clips in a folder of a disk; folders of frames are not read through."""
    clips, folders = [], []
    with os.scandir(os.path.join(root, below)) as entries:
        for entry in entries:
            # A link may lead round in a circle.
            is_folder = os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()
            if not is_folder and frame_number(entry.name) is not None:
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
    """Yields the clips of a store or of shards: files, and folders of frames."""
    for name in names:
        parts = name.split("/")
        for place, part in enumerate(parts[: _MOST_FOLDERS + 1]):
            is_folder = place < len(parts) - 1
            if _video_of(part, suffixes) is not None and (
                is_folder or os.path.splitext(part)[1].lower() in suffixes
            ):
                yield "/".join(parts[: place + 1])
                break
