"""Takes frames out of videos into a media store, in a process that may crash without harm."""

import dataclasses
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from eqforge.schemas.errors import MissingExtra
from eqforge.schemas.frames import FrameRequest, FrameSettings, MissedFrame, StoredFrame
from eqforge.schemas.sources import FileState
from eqforge.transforms.child import Child, ChildDied, ChildTimeout
from eqforge.transforms.frames.answers import DecodedFrame, UndecodedFrame
from eqforge.transforms.frames.decode import decode_frames
from eqforge.transforms.frames.encode import EncodedImage, encode_image
from eqforge.transforms.media import MediaStore


def extract_frames(
    video_path: str,
    requests: Sequence[FrameRequest],
    store: MediaStore,
    settings: FrameSettings,
    alive: Callable[[], None] = lambda: None,
    expected: FileState | None = None,
) -> Iterator[StoredFrame | MissedFrame]:
    """Decodes a video once and stores the frames wanted; yields one answer for each request.

    The answers come as they are ready, in no particular order. A frame on which several requests
    fall is encoded once.
    """
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
    """Extracts frames in a child process, which is started when it is first needed.

    Whatever happens to the child, the frames it had stored are kept, and the next video gets a
    fresh one. It may be pickled; one thread may use it at a time.

    Attributes:
      store: where the frames go.
      settings: how they are decoded and encoded.
      timeout_s: longest time without a sign of life: a packet read or a frame finished.
    """

    store: MediaStore
    settings: FrameSettings = dataclasses.field(default_factory=FrameSettings)
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        """Names the child's function; nothing is started yet."""
        self._child = Child(f"{__name__}:serve", timeout_s=self.timeout_s)

    def __enter__(self) -> Self:
        """Returns the extractor itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the child."""
        self.close()

    def close(self) -> None:
        """Ends the child, if it runs; it would end with this process, too."""
        self._child.close()

    def extract(
        self,
        video_path: str,
        requests: Sequence[FrameRequest],
        expected: FileState | None = None,
    ) -> list[StoredFrame | MissedFrame]:
        """Returns one answer for each request, in their order.

        Args:
          video_path: the file.
          requests: the frames wanted of it.
          expected: the state that the file has to be in when it is opened; None for any.

        Raises:
          ValueError: two requests have the same frame_id.
          MissingExtra: PyAV is not installed.
          OSError: the store cannot be written to.
          BuildError: the child process does not start.
        """
        answers: dict[str, StoredFrame | MissedFrame] = {}
        if len({request.frame_id for request in requests}) < len(requests):
            raise ValueError(f"two requests to {video_path} have the same frame_id")
        if not requests:
            return []
        if importlib.util.find_spec("av") is None:
            raise MissingExtra("av", "video")
        reason, detail = "", ""
        try:
            for answer in self._child.ask(self._question(video_path, requests, expected)):
                kind = StoredFrame if "image_id" in answer else MissedFrame
                answers[answer["frame_id"]] = kind(**answer)
        except ChildDied as error:
            reason, detail = "decoder_crashed", error.ending
        except ChildTimeout as error:
            reason, detail = "decoder_timeout", str(error)
        return [
            answers.get(request.frame_id) or _missed(request, reason, detail)
            for request in requests
        ]

    def _question(
        self, video_path: str, requests: Sequence[FrameRequest], expected: FileState | None
    ) -> dict[str, Any]:
        return {
            "video_path": video_path,
            "requests": [dataclasses.asdict(request) for request in requests],
            "root": self.store.root,
            "settings": dataclasses.asdict(self.settings),
            "expected": expected,
        }


def serve(question: dict[str, Any], alive: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """Extracts the frames of one question, in the child."""
    answers = extract_frames(
        question["video_path"],
        [FrameRequest(**request) for request in question["requests"]],
        MediaStore(question["root"]),
        FrameSettings(**question["settings"]),
        alive,
        None if question["expected"] is None else FileState(*question["expected"]),
    )
    yield from map(dataclasses.asdict, answers)
