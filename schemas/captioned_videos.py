"""Videos with captioned segments, and the reader of a user's own.

A file of captioned videos is JSON lines, one captioned moment a line:

    {"video": "kitchen/take1.mp4", "start_s": 2.0, "end_s": 5.5, "caption": "cut the onion"}
    {"video": "kitchen/take1.mp4", "timestamp_s": 9.25, "caption": "fry the onion", "id": "fry"}

`video` is a path below the videos folder. Optional fields: `id` (names the moment within its
video; otherwise its times do), `split` (default `all`) and `licence`; the last two have to be the
same on every line of a video.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from eqforge.schemas.checked import Node, parse_json, shown
from eqforge.schemas.errors import InputError

FIELDS = ("video", "start_s", "end_s", "timestamp_s", "caption", "id", "split", "licence")
MAX_TIME_S = 10_000_000
"""A third of a year: no video is longer, and what is further out is no time in seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionedSegment:
    """A stretch of a video, in seconds from its start, and the sentence that describes it."""

    segment_id: str
    start_s: float
    end_s: float
    caption: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionedVideo:
    """A video with its captioned segments in the order of the file.

    Attributes:
      video_id: the id its samples carry.
      video: the name under which the file is looked up below the videos folder.
      split: the source's split.
      licence: licence of the video, where stated.
      annotation: what the source says of the video as a whole, as text by field name.
      segments: its captioned segments; ids are unique within the video.
    """

    video_id: str
    video: str
    split: str
    licence: str | None = None
    annotation: dict[str, str] = field(default_factory=dict)
    segments: tuple[CaptionedSegment, ...] = ()


def read_captioned_videos(path: str | Path) -> list[CaptionedVideo]:
    """Reads a user's JSON lines, described above, in the order in which videos first occur.

    Raises:
      InputError: a line is not such an object; the message names line and field.
    """
    videos: dict[str, CaptionedVideo] = {}
    segments: dict[str, dict[str, CaptionedSegment]] = {}
    for line in _lines(path):
        video, segment = _moment(line)
        first = videos.setdefault(video.video_id, video)
        if (first.split, first.licence) != (video.split, video.licence):
            line.fail(f"the split and licence of {video.video_id}'s other lines")
        known = segments.setdefault(video.video_id, {})
        if segment.segment_id in known:
            raise InputError(
                f"{line.file}: {line.where}: {video.video_id} already has a moment with the id "
                f"{segment.segment_id!r}: give each moment its own `id`"
            )
        known[segment.segment_id] = segment
    if not videos:
        raise InputError(f"{path}: holds no captioned moment")
    return [_with_segments(video, segments[video.video_id]) for video in videos.values()]


def _with_segments(video: CaptionedVideo, segments: dict[str, CaptionedSegment]) -> CaptionedVideo:
    return CaptionedVideo(
        video_id=video.video_id,
        video=video.video,
        split=video.split,
        licence=video.licence,
        segments=tuple(segments.values()),
    )


def _lines(path: str | Path) -> Iterator[Node]:
    try:
        with open(path, encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield parse_json(line, Path(path).name, f"line {number}")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _moment(line: Node) -> tuple[CaptionedVideo, CaptionedSegment]:
    if unknown := sorted(set(line.mapping()) - set(FIELDS)):
        raise InputError(
            f"{line.file}: {line.where}: unknown field {shown(unknown[0])}; "
            f"known: {', '.join(FIELDS)}"
        )
    name = line["video"].name()
    split, licence, own_id = line.get("split"), line.get("licence"), line.get("id")
    start_s, end_s = _times(line)
    video = CaptionedVideo(
        video_id=name,
        video=name,
        split="all" if split is None else split.name(),
        licence=None if licence is None else licence.name(),
    )
    segment = CaptionedSegment(
        segment_id=f"{_milliseconds(start_s)}-{_milliseconds(end_s)}"
        if own_id is None
        else own_id.name(),
        start_s=start_s,
        end_s=end_s,
        caption=line["caption"].text(),
    )
    return video, segment


def _times(line: Node) -> tuple[float, float]:
    moment = line.get("timestamp_s")
    if moment is None:
        start, end = line["start_s"], line["end_s"]
        if not 0 <= start.number() <= end.number() <= MAX_TIME_S:
            first = shown(start.value)
            end.fail(f"a time not before start_s = {first}, from 0 to {MAX_TIME_S:,} s")
        return start.number(), end.number()
    if line.get("start_s") is not None or line.get("end_s") is not None:
        line.fail("either timestamp_s or start_s and end_s, not both")
    if not 0 <= moment.number() <= MAX_TIME_S:
        moment.fail(f"a time from 0 to {MAX_TIME_S:,} s")
    return moment.number(), moment.number()


def _milliseconds(time_s: float) -> str:
    return f"{round(time_s * 1000):08d}"
