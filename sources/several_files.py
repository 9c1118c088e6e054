"""Reads a source whose annotations come in several files, such as one for each split."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from eqforge.core.errors import InputError


class _Named(Protocol):
    @property
    def video_id(self) -> str: ...


Video = TypeVar("Video", bound=_Named)


def read_files(
    paths: Sequence[Path], read: Callable[[Path], Iterable[Video]]
) -> list[tuple[Path, Video]]:
    """Returns the videos of all files, each with its file, in the order of their ids.

    Args:
      paths: the files; their order does not matter.
      read: reads one.

    Raises:
      InputError: there is no file, one is named twice, or a video stands in two of them.
    """
    if not paths:
        raise InputError("--annotations: name a file, or several")
    files: set[Path] = set()
    for path in paths:
        if path.resolve() in files:
            raise InputError(f"--annotations: {path} is named twice")
        files.add(path.resolve())
    found: dict[str, tuple[Path, Video]] = {}
    for path in sorted(paths):
        for video in read(path):
            other, _ = found.setdefault(video.video_id, (path, video))
            if other is not path:
                raise InputError(
                    f"--annotations: the video {video.video_id} stands in {other} and in {path}"
                )
    return [found[video_id] for video_id in sorted(found)]
