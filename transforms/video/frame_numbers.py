"""Which picture of a folder of frames is meant by a time, or by a frame's number.

Picture n of a folder taken at R frames a second is shown from (n - 1) / R until n / R seconds, the
frames of a video of that constant rate.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

from eqforge.core.errors import InputError
from eqforge.core.files.found_frames import FoundFrames
from eqforge.schemas.records.frames import CLOCK_GRACE_S, FrameRequest
from eqforge.schemas.records.scores import Rejection


def exact_rate(frames_fps: float) -> Fraction:
    """Returns a rate as it was written: 29.97 is 2997/100."""
    return Fraction(str(frames_fps))


def needs_rate(requests: Iterable[FrameRequest]) -> bool:
    """Tells whether some frames are asked for by their time."""
    return any(request.timestamp_s is not None for request in requests)


def number_of(
    request: FrameRequest,
    frames: FoundFrames,
    frames_fps: float | None,
    end_tolerance_s: float,
) -> int | Rejection:
    """Returns the number of the picture that a request means, or why there is none.

    Args:
      request: the frame wanted; its own numbers count from 0, those of pictures from 1.
      frames: the folder of frames.
      frames_fps: frames a second at which they were taken; None if that is not known.
      end_tolerance_s: how long after its end the last picture still answers, in seconds.

    Raises:
      InputError: a time is asked for, and the rate is not known.
    """
    if frames.fault:
        return Rejection(reason="frames_unclear", detail=frames.fault)
    if not frames.files:
        return Rejection(reason="video_empty", detail=f"no numbered picture in {frames.name}")
    number = _number(request, frames, frames_fps, end_tolerance_s)
    if isinstance(number, int) and number not in frames.files:
        return Rejection(reason="frame_missing", detail=f"no picture {number} in {frames.name}")
    return number


def _number(
    request: FrameRequest, frames: FoundFrames, frames_fps: float | None, end_tolerance_s: float
) -> int | Rejection:
    if request.frame_index is not None:
        return request.frame_index + 1
    if frames_fps is None:
        raise InputError(rate_missing(frames.name))
    assert request.timestamp_s is not None
    time_s, rate = Fraction(request.timestamp_s) + CLOCK_GRACE_S, exact_rate(frames_fps)
    number, end_s = math.floor(time_s * rate) + 1, frames.last / rate
    if number < 1:
        return Rejection(reason="before_first_frame", detail="the first frame is shown at 0 s")
    if number <= frames.last:
        return number
    if time_s < end_s + Fraction(end_tolerance_s):
        return frames.last
    detail = f"the last picture, {frames.last}, ends at {float(end_s):.6f} s"
    return Rejection(reason="after_last_frame", detail=detail)


def rate_missing(folder: str) -> str:
    """Returns what to do where times are asked of a folder of frames whose rate is not known."""
    return (
        f"{folder} is a folder of frames, and its moments are given in seconds: --frames-fps has "
        "to say at how many frames a second it was made"
    )
