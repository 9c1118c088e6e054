"""Videos with captioned segments, whatever source they come from."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionedSegment:
    """A segment of a video and the sentence that describes it.

    Attributes:
      segment_id: unique within its video.
      start_s, end_s: in seconds from the video's start; equal for a single moment.
      caption: the sentence.
      annotation: the source's other fields, as text by field name.
    """

    segment_id: str
    start_s: float
    end_s: float
    caption: str
    annotation: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedRecord:
    """A record that gives no segment.

    Attributes:
      record_id: unique within its video, made from its content.
      reason: `bad_segment` or `duplicate_moment`.
      detail: what is wrong with it.
    """

    record_id: str
    reason: str
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionedVideo:
    """A video with its captioned segments.

    Attributes:
      video_id: the id in its samples; empty for refused records that name no video.
      video: the name under which the file is looked up below the videos folder.
      split: the source's split.
      licence: licence of the video; None if not stated.
      annotation: the source's fields about the whole video, as text by field name.
      segments: its captioned segments, in any order; ids are unique within the video.
      refused: its records that give no segment.
    """

    video_id: str
    video: str
    split: str
    licence: str | None = None
    annotation: dict[str, str] = field(default_factory=dict)
    segments: tuple[CaptionedSegment, ...] = ()
    refused: tuple[RefusedRecord, ...] = ()
