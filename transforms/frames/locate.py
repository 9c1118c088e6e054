"""Finds the file of a video inside the videos folder, and nowhere else."""

import errno
import os
import socket
from collections.abc import Iterator

from eqforge.schemas.errors import BuildError
from eqforge.schemas.frames import MissedVideo

VIDEO_SUFFIXES = (
    ".mp4",
    ".mkv",
    ".webm",
    ".mov",
    ".m4v",
    ".avi",
    ".flv",
    ".ts",
    ".mpg",
    ".mpeg",
    ".wmv",
    ".3gp",
    ".ogv",
    ".gif",
)
"""Endings tried after a video's id, the first that is found wins."""


def resolve_video(root: str, name: str) -> str | MissedVideo:
    """Returns the path of a video, or why there is none.

    Args:
      root: the videos folder.
      name: a video's id or file name, possibly with folders before it, relative to `root`. The
        name as it stands is tried first, then with each of VIDEO_SUFFIXES, in lower and upper
        case; the order is fixed, so that the choice is the same on every machine.

    Returns:
      A path below `root`. A name that leads out of it, directly or through a symbolic link, or
      round in a circle, is refused.

    Raises:
      BuildError: there is no such folder: on one of several hosts it may not be mounted.
    """
    if os.path.isabs(name) or "\0" in name or ".." in name.split("/"):
        return MissedVideo(reason="outside_root", detail="the name leads out of the videos folder")
    missing = MissedVideo(reason="video_missing", detail="no file of that name")
    if not os.path.basename(name):
        return missing
    for candidate in _candidates(name):
        found = _check(root, os.path.join(root, candidate))
        if found is not None:
            return found
    if not os.path.isdir(root):
        raise BuildError(
            f"{root}: no such folder on {socket.gethostname()}; every host needs it, under the "
            "same path"
        )
    return missing


def _candidates(name: str) -> Iterator[str]:
    yield name
    for suffix in VIDEO_SUFFIXES:
        yield name + suffix
        yield name + suffix.upper()


def _check(root: str, path: str) -> str | MissedVideo | None:
    """Returns a path that is a file below the root, why it may not be read, or None for no file."""
    try:
        folder, real = os.path.realpath(root, strict=True), os.path.realpath(path, strict=True)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return MissedVideo(reason="outside_root", detail="the links go round in a circle")
        return None
    if os.path.commonpath([folder, real]) != folder:
        return MissedVideo(reason="outside_root", detail="a link leads out of the videos folder")
    return path if os.path.isfile(real) else None
