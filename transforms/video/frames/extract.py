"""Extracts video frames into a media store, in a process that may crash without harm."""

import dataclasses
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import msgspec

from eqforge.core.errors import MissingExtra
from eqforge.core.files.source_file import FileState
from eqforge.core.identity import sha256_hex
from eqforge.core.sandbox.child import Child, ChildDied, ChildFailed, ChildTimeout
from eqforge.core.sandbox.sandbox import Sandbox
from eqforge.schemas.records.frames import FrameRequest, FrameSettings, MissedFrame, StoredFrame
from eqforge.transforms.dataset.media import EncodedImage, MediaStore, encode_image
from eqforge.transforms.video.frames.answers import SQUARE, DecodedFrame, UndecodedFrame
from eqforge.transforms.video.frames.decode import decode_frames

MEMORY_GB = 8.0
"""Address space of the decoder: 12 times the need of a 4K video, 7 times that of an 8K one."""

CPU_S = 4 * 3600.0


def extract_frames(
    video_path: str,
    requests: Sequence[FrameRequest],
    store: "MediaStore | _Outbox",
    settings: FrameSettings,
    alive: Callable[[], None] = lambda: None,
    expected: FileState | None = None,
) -> Iterator[StoredFrame | MissedFrame]:
    """Decode a video once and store the wanted frames; answer each request, in any order."""
    moments = [request.moment for request in requests]
    pixels, stored = None, None
    for answer in decode_frames(video_path, moments, settings, alive, expected):
        request = requests[answer.request]
        if isinstance(answer, UndecodedFrame):
            yield _missed(request, answer.reason, answer.detail)
            continue
        if stored is None or answer.pixels is not pixels:
            pixels = answer.pixels
            image = encode_image(pixels, settings)
            stored = image, store.put(image.data, image.suffix)
        yield _stored(request, answer, *stored)


def _stored(
    request: FrameRequest, answer: DecodedFrame, image: EncodedImage, image_id: str
) -> StoredFrame:
    return StoredFrame(
        frame_id=request.frame_id,
        image_id=image_id,
        suffix=image.suffix,
        width_px=image.width_px,
        height_px=image.height_px,
        num_bytes=len(image.data),
        requested_timestamp_s=(
            answer.timestamp_s if request.timestamp_s is None else request.timestamp_s
        ),
        timestamp_s=answer.timestamp_s,
        pts=answer.pts,
        time_base=str(answer.time_base),
        frame_index=answer.frame_index,
        rotation_deg=answer.rotation_deg,
        pixel_aspect=""
        if answer.pixel_aspect == SQUARE
        else ":".join(map(str, answer.pixel_aspect.as_integer_ratio())),
        is_deinterlaced=answer.is_deinterlaced,
        tone_mapped=answer.tone_mapped,
        video_stream=answer.video_stream,
    )


def _missed(request: FrameRequest, reason: str, detail: str) -> MissedFrame:
    return MissedFrame(
        frame_id=request.frame_id,
        requested_timestamp_s=request.timestamp_s,
        reason=reason,
        detail=detail,
    )


@dataclasses.dataclass(kw_only=True)
class FrameExtractor:
    """Extracts frames in a child process, which starts when it is first needed.

    If the child dies, its finished frames are stored, and the next video gets a new one. The child
    is sandboxed: it reads only the folder of videos, and sends the images back. The extractor may
    be pickled; one thread may use it at a time.

    Attributes:
      folder: of most videos. A video elsewhere, or behind a link, costs the start of another child,
        which may also read that video's folder.
      timeout_s: longest time without a sign of life: a packet read or a frame finished.
    """

    store: MediaStore
    folder: str | None = None
    settings: FrameSettings = dataclasses.field(default_factory=FrameSettings)
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        sandbox = Sandbox(memory_gb=MEMORY_GB, cpu_s=CPU_S)
        self._child = Child(f"{__name__}:serve", timeout_s=self.timeout_s, sandbox=sandbox)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._child.close()

    def _let_in(self, video_path: str) -> None:
        sandbox, folder = self._child.sandbox, os.path.dirname(os.path.realpath(video_path))
        assert sandbox is not None
        if not any(os.path.commonpath([root, folder]) == root for root in sandbox.read):
            self.close()
            roots = [] if self.folder is None else [os.path.realpath(self.folder)]
            self._child.sandbox = dataclasses.replace(
                sandbox, read=tuple(dict.fromkeys([*roots, folder]))
            )

    def extract(
        self, video_path: str, requests: Sequence[FrameRequest], expected: FileState | None = None
    ) -> list[StoredFrame | MissedFrame]:
        """Return one answer for each request, in order.

        Args:
          expected: the required state of the file when opened; None for any.
        """
        answers: dict[str, StoredFrame | MissedFrame] = {}
        images: set[tuple[str, str]] = set()
        if len({request.frame_id for request in requests}) < len(requests):
            raise ValueError(f"two requests to {video_path} have the same frame_id")
        if not requests:
            return []
        if importlib.util.find_spec("av") is None:
            raise MissingExtra("av", "video")
        self._let_in(video_path)
        reason, detail = "", ""
        try:
            question = {
                "video_path": video_path,
                "requests": [dataclasses.asdict(request) for request in requests],
                "settings": dataclasses.asdict(self.settings),
                "expected": expected,
            }
            for value in self._child.ask(question):
                answer = self._take(value, images)
                answers[answer.frame_id] = answer
        except ChildDied as error:
            reason, detail = "decoder_crashed", error.ending
        except ChildTimeout as error:
            reason, detail = "decoder_timeout", str(error)
        return [
            answers.get(request.frame_id) or _missed(request, reason, detail)
            for request in requests
        ]

    def _take(self, value: Any, images: set[tuple[str, str]]) -> StoredFrame | MissedFrame:
        try:
            answer = msgspec.convert(value, _Answer)
        except msgspec.ValidationError as error:
            raise ChildFailed(f"no answer: {error}") from error
        if answer.missed is not None:
            return answer.missed
        stored = answer.stored
        if stored is not None and answer.image is not None and stored.suffix in (".jpg", ".png"):
            images.add((self.store.put(answer.image, stored.suffix), stored.suffix))
        if stored is None or (stored.image_id, stored.suffix) not in images:
            raise ChildFailed("no answer: it names an image that was not sent")
        return stored


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The child's answer for a frame; a video that exploits the decoder may forge it.

    Attributes:
      image: the image file of `stored`, if this is its first frame.
    """

    stored: StoredFrame | None = None
    missed: MissedFrame | None = None
    image: bytes | None = None


class _Outbox:
    """Collects images for the parent: a child in its sandbox writes nothing."""

    def __init__(self) -> None:
        self._image: bytes | None = None

    def put(self, data: bytes, suffix: str) -> str:
        self._image = data
        return sha256_hex(data)

    def answer(self, frame: StoredFrame | MissedFrame) -> dict[str, Any]:
        if isinstance(frame, MissedFrame):
            return {"missed": dataclasses.asdict(frame)}
        image, self._image = self._image, None
        return msgspec.to_builtins({"stored": frame, "image": image})


def serve(question: dict[str, Any], alive: Callable[[], None]) -> Iterator[dict[str, Any]]:
    outbox = _Outbox()
    frames = extract_frames(
        question["video_path"],
        [FrameRequest(**request) for request in question["requests"]],
        outbox,
        FrameSettings(**question["settings"]),
        alive,
        None if question["expected"] is None else FileState(*question["expected"]),
    )
    yield from map(outbox.answer, frames)
