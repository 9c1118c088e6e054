"""Copies the planned frames of a folder of numbered images into the media store."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from eqforge.core.errors import InputError
from eqforge.core.files.find_file import MissingFile
from eqforge.core.files.found_file import FoundFile
from eqforge.core.files.found_frames import FoundFrames
from eqforge.core.files.objects import STORE_REASONS, FetchFailed
from eqforge.core.files.pictures import VERSION, BadImage, TooManyPixels, read_frame
from eqforge.core.files.source_file import SourceChanged
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.identity import sha256_hex
from eqforge.core.ledger import Ledger
from eqforge.schemas.records.frames import (
    CLOCK_GRACE_S,
    Clip,
    FrameRequest,
    FrameSettings,
    MissedFrame,
    StoredFrame,
)
from eqforge.schemas.records.scores import Rejection
from eqforge.transforms.dataset.image_folder import UNREADABLE
from eqforge.transforms.dataset.media import EncodedImage, MediaStore, encode_image
from eqforge.transforms.video.clip_work import Extraction, Source

PASSING = frozenset({"source_changed", "video_unreadable", *STORE_REASONS})
"""Reasons that may not hold in another run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FrameFolder:
    """A folder of frames.

    Attributes:
      frames_fps: its rate in frames per second; None if unknown.
      end_tolerance_s: how long after its end the last frame still answers, in seconds.
    """

    frames: FoundFrames
    videos: SourceFolder
    frames_fps: float | None
    end_tolerance_s: float

    def find(self, request: FrameRequest) -> "FramePicture | Rejection":
        number = number_of(request, self.frames, self.frames_fps, self.end_tolerance_s)
        if isinstance(number, Rejection):
            return number
        found = self.videos.find(self.frames.path(number))
        if isinstance(found, MissingFile):
            return _without_picture(found)
        return FramePicture(number=number, file=found)


@dataclass(frozen=True, kw_only=True, slots=True)
class FramePicture:
    """The image file of a frame."""

    number: int
    file: FoundFile

    def state(self) -> list[Any]:
        try:
            return [self.file.name, *self.file.state()]
        except OSError as error:
            return [self.file.name, error.strerror]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Taken:
    """An image that was read, or why it could not be.

    Attributes:
      image: the stored image and its name in the store, or the rejection.
      rotation_deg: clockwise rotation that was applied.
    """

    source: Source
    image: tuple[EncodedImage, str] | Rejection
    rotation_deg: int = 0


def extract_pictures(
    clip: Clip, folder: FrameFolder, settings: FrameSettings, store: MediaStore, ledger: Ledger
) -> Extraction:
    """Store the frames of a clip, each from its image file; unchanged files are not read again."""
    found = [folder.find(request) for request in clip.frames]
    states = [[f.reason, f.detail] if isinstance(f, Rejection) else f.state() for f in found]
    rate, wanted = folder.frames_fps, list(map(asdict, clip.frames))
    inputs = [clip.video, VERSION, rate, states, wanted]
    known = ledger.recall(inputs, Extraction)
    if known is not None and known.is_stored(store):
        return known
    pictures = {each.number: each.file for each in found if isinstance(each, FramePicture)}
    entries = {number: _take(file, settings, store) for number, file in pictures.items()}
    extraction = _extraction(clip, found, entries, rate)
    if not any(missed.reason in PASSING for missed in extraction.missed):
        store.sync((frame.image_id, frame.suffix) for frame in extraction.stored)
        ledger.write(inputs, extraction)
    return extraction


def _extraction(
    clip: Clip,
    found: Sequence[FramePicture | Rejection],
    entries: Mapping[int, _Taken],
    rate: float | None,
) -> Extraction:
    answers: list[StoredFrame | MissedFrame] = []
    sources: dict[str, Source] = {}
    for request, picture in zip(clip.frames, found, strict=True):
        if isinstance(picture, Rejection):
            answers.append(_missed(request, picture))
            continue
        answers.append(_answer(request, picture.number, entries[picture.number], rate))
        sources[request.frame_id] = entries[picture.number].source
    return Extraction(
        stored=tuple(answer for answer in answers if isinstance(answer, StoredFrame)),
        missed=tuple(answer for answer in answers if isinstance(answer, MissedFrame)),
        sources=sources,
    )


def _take(file: FoundFile, settings: FrameSettings, store: MediaStore) -> _Taken:
    data = _read(file)
    if isinstance(data, Rejection):
        return _Taken(source=Source(path=file.name, sha256=None), image=data)
    source = Source(path=file.name, sha256=sha256_hex(data))
    try:
        rotation_deg, pixels = read_frame(data, settings.max_pixels)
    except TooManyPixels as error:
        detail = f"{error.pixels} pixels, at most {settings.max_pixels}"
        return _Taken(source=source, image=Rejection(reason="too_many_pixels", detail=detail))
    except BadImage as error:
        return _Taken(source=source, image=Rejection(reason="undecodable", detail=str(error)))
    image = encode_image(pixels, settings)
    stored = image, store.put(image.data, image.suffix)
    return _Taken(source=source, image=stored, rotation_deg=rotation_deg)


def _read(file: FoundFile) -> bytes | Rejection:
    try:
        return file.read()
    except SourceChanged as error:
        return Rejection(reason="source_changed", detail=str(error))
    except FetchFailed as error:
        return _without_picture(error)
    except OSError as error:
        if error.errno not in UNREADABLE:
            raise
        return Rejection(reason="video_unreadable", detail=error.strerror or str(error))


def _without_picture(why: MissingFile | FetchFailed) -> Rejection:
    reason = {"file_missing": "frame_missing"}.get(why.reason, why.reason)
    return Rejection(reason=reason, detail=why.detail)


def _missed(request: FrameRequest, why: Rejection) -> MissedFrame:
    return MissedFrame(
        frame_id=request.frame_id,
        requested_timestamp_s=request.timestamp_s,
        reason=why.reason,
        detail=why.detail,
    )


def _answer(
    request: FrameRequest, number: int, entry: _Taken, frames_fps: float | None
) -> StoredFrame | MissedFrame:
    if isinstance(entry.image, Rejection):
        return _missed(request, entry.image)
    image, image_id = entry.image
    frame_s = None if frames_fps is None else 1 / exact_rate(frames_fps)
    shown_s = None if frame_s is None else float((number - 1) * frame_s)
    return StoredFrame(
        frame_id=request.frame_id,
        image_id=image_id,
        suffix=image.suffix,
        width_px=image.width_px,
        height_px=image.height_px,
        num_bytes=len(image.data),
        requested_timestamp_s=shown_s if request.timestamp_s is None else request.timestamp_s,
        timestamp_s=shown_s,
        pts=number - 1,
        time_base=None if frame_s is None else str(frame_s),
        frame_index=number - 1,
        rotation_deg=entry.rotation_deg,
    )


def exact_rate(frames_fps: float) -> Fraction:
    """Return a rate as written: 29.97 is 2997/100."""
    return Fraction(str(frames_fps))


def needs_rate(requests: Iterable[FrameRequest]) -> bool:
    return any(request.timestamp_s is not None for request in requests)


def number_of(
    request: FrameRequest, frames: FoundFrames, frames_fps: float | None, end_tolerance_s: float
) -> int | Rejection:
    """Return the number of the image file that a request means, or its rejection.

    Image n of a folder with R frames per second is shown from (n - 1) / R until n / R seconds, as
    in a video of that constant rate.

    Args:
      request: the wanted frame; its own numbers count from 0, those of images from 1.
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
    return (
        f"{folder} is a folder of frames, but its captions are timed in seconds; pass the frame "
        "rate with --frames-fps"
    )
