"""What a clip shows at each moment: a camera gliding over photographs, and prints laid on them.

Boxes are (left, top, right, bottom). A time is in seconds from the start of the clip.
"""

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from eqforge.generators.demo.photographs import load_photograph

Box: TypeAlias = tuple[float, float, float, float]

GLIDE_S = 0.6
"""How long the camera takes from one view of a photograph to the next."""

DRIFT = 1.04
"""How far the camera zooms in during a shot, so that it is not a still image."""


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """Where the camera looks.

    Attributes:
      x: centre as a fraction of the photograph's width, in [0, 1].
      y: centre as a fraction of the photograph's height, in [0, 1].
      zoom: 1 sees as much of the photograph as fits the frame's shape, 2 half as much each way.
    """

    x: float
    y: float
    zoom: float = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Shot:
    """One view held for a while.

    The camera glides over from the view before if that was of the same photograph, else it cuts.
    """

    photograph: str
    view: View
    seconds: float
    drift: float = DRIFT


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a print lies from a time on: its centre in fractions of the frame's sides."""

    from_s: float
    x: float
    y: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Print:
    """A photograph printed on paper with a white margin, lying on the frame and moved about.

    Attributes:
      photograph: what is printed.
      width: its width as a fraction of the frame's width.
      places: by ascending time; each move takes GLIDE_S. Outside [0, 1] it leaves the frame.
    """

    photograph: str
    width: float
    places: tuple[Place, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Clip:
    """One video file of the demo.

    Attributes:
      file: path below the folder of videos; its suffix chooses the container.
      shots: what is seen, one after the other.
      prints: what lies on top.
      size: width and height of the upright frame in pixels, both even.
      fps: ticks per second.
      rhythm: which ticks carry a frame, repeated: "1" all of them, "110" two of three.
      codec: h264, hevc or vp9.
      is_turned: the pixels are stored rotated, with a display rotation that undoes it.
      condition: truncated loses the file's second half, empty has 0 bytes, missing is not there.
    """

    file: str
    shots: tuple[Shot, ...]
    prints: tuple[Print, ...] = ()
    size: tuple[int, int] = (480, 360)
    fps: int = 12
    rhythm: str = "1"
    codec: Literal["h264", "hevc", "vp9"] = "h264"
    is_turned: bool = False
    condition: Literal["whole", "truncated", "empty", "missing"] = "whole"

    @property
    def starts_s(self) -> list[float]:
        """The time at which each shot starts, and last the one at which the clip ends."""
        lengths = (shot.seconds for shot in self.shots)
        return [round(total, 6) for total in itertools.accumulate(lengths, initial=0.0)]

    @property
    def duration_s(self) -> float:
        """The length of the whole clip."""
        return self.starts_s[-1]


def ticks(clip: Clip) -> list[int]:
    """Returns the presentation times of a clip's frames, in units of 1 / fps seconds."""
    total = round(clip.duration_s * clip.fps)
    return [tick for tick in range(total) if clip.rhythm[tick % len(clip.rhythm)] == "1"]


def photograph_at(clip: Clip, time_s: float) -> str:
    """Returns the name of the photograph the camera sees."""
    return clip.shots[_shot_index(clip, time_s)].photograph


def window_at(clip: Clip, time_s: float) -> Box:
    """Returns the part of the photograph that fills the frame, in the photograph's pixels."""
    view = _view_at(clip, time_s)
    width, height = load_photograph(photograph_at(clip, time_s)).size
    frame_width, frame_height = clip.size
    scale = min(width / frame_width, height / frame_height) / view.zoom
    half_width, half_height = frame_width * scale / 2, frame_height * scale / 2
    x = _clamp(view.x * width, half_width, width - half_width)
    y = _clamp(view.y * height, half_height, height - half_height)
    return x - half_width, y - half_height, x + half_width, y + half_height


def seen_box(clip: Clip, time_s: float, box: Box) -> Box:
    """Returns where in the frame, in pixels, a part of the photograph is seen.

    Args:
      clip: the clip.
      time_s: when.
      box: the part, in fractions of the photograph's sides.

    Returns:
      The box, which may reach out of the frame.
    """
    left, top, right, _ = window_at(clip, time_s)
    width, height = load_photograph(photograph_at(clip, time_s)).size
    scale = clip.size[0] / (right - left)
    x0, y0, x1, y1 = box
    return (
        (x0 * width - left) * scale,
        (y0 * height - top) * scale,
        (x1 * width - left) * scale,
        (y1 * height - top) * scale,
    )


def print_box(clip: Clip, time_s: float, laid: Print) -> Box:
    """Returns where a print lies, in whole pixels of the frame; it may reach out of the frame."""
    x, y = _place_at(laid.places, time_s)
    photo_width, photo_height = load_photograph(laid.photograph).size
    width = round(laid.width * clip.size[0])
    height = round(width * photo_height / photo_width)
    left = float(round(x * clip.size[0] - width / 2))
    top = float(round(y * clip.size[1] - height / 2))
    return left, top, left + width, top + height


def _shot_index(clip: Clip, time_s: float) -> int:
    # The tolerance lets a tick such as 29 / 10 belong to the shot that starts at 2.9 s.
    found = bisect.bisect_right(clip.starts_s, time_s + 1e-6) - 1
    return min(found, len(clip.shots) - 1)


def _view_at(clip: Clip, time_s: float) -> View:
    index = _shot_index(clip, time_s)
    shot, since_s = clip.shots[index], time_s - clip.starts_s[index]
    here = _crept(shot, since_s / shot.seconds)
    before = clip.shots[index - 1] if index > 0 else shot
    if index == 0 or before.photograph != shot.photograph or since_s >= GLIDE_S:
        return here
    return _between(_crept(before, 1.0), here, _ease(since_s / GLIDE_S))


def _crept(shot: Shot, progress: float) -> View:
    view = shot.view
    return View(x=view.x, y=view.y, zoom=view.zoom * shot.drift**progress)


def _between(first: View, second: View, share: float) -> View:
    # Zooms multiply, so equal steps of the exponent look like an even speed.
    return View(
        x=first.x + (second.x - first.x) * share,
        y=first.y + (second.y - first.y) * share,
        zoom=first.zoom * (second.zoom / first.zoom) ** share,
    )


def _place_at(places: Sequence[Place], time_s: float) -> tuple[float, float]:
    index = max(bisect.bisect_right([place.from_s for place in places], time_s + 1e-6) - 1, 0)
    here, before = places[index], places[max(index - 1, 0)]
    share = _ease((time_s - here.from_s) / GLIDE_S)
    return before.x + (here.x - before.x) * share, before.y + (here.y - before.y) * share


def _ease(share: float) -> float:
    share = _clamp(share, 0.0, 1.0)
    return share * share * (3 - 2 * share)


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
