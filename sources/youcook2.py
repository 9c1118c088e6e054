"""Reads YouCook2's `youcookii_annotations_trainval.json`."""

from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, load_json, read_all
from eqforge.sources.captioned_videos import CaptionedSegment, CaptionedVideo

SUBSETS = ("training", "validation", "testing")


def read_youcook2(path: str | Path) -> list[CaptionedVideo]:
    """Returns the videos of a YouCook2 annotation file in the file's order.

    Segment ids are the published ones, as three digits. The file's `duration` and `recipe_type`
    are kept as annotation.

    Raises:
      InputError: the file is not a YouCook2 annotation file; the message names record and field,
        for the first ten videos.
    """
    database = load_json(path)["database"]
    return read_all(database.items(), _video)


def _video(video_id: str, record: Node) -> CaptionedVideo:
    subset = record["subset"]
    if subset.name() not in SUBSETS:
        subset.fail(f"one of {', '.join(SUBSETS)}")
    segments = tuple(_segment(segment) for segment in record["annotations"].elements())
    if len({segment.segment_id for segment in segments}) != len(segments):
        raise InputError(f"{record.file}: {record.where}.annotations: a segment id appears twice")
    return CaptionedVideo(
        video_id=video_id,
        video=video_id,
        split=subset.name(),
        annotation={
            "duration_s": str(record["duration"].number()),
            "recipe_type": record["recipe_type"].name(),
        },
        segments=segments,
    )


def _segment(segment: Node) -> CaptionedSegment:
    bounds = [bound.number() for bound in segment["segment"].elements()]
    if len(bounds) != 2:
        segment["segment"].fail("two numbers, start and end in seconds")
    return CaptionedSegment(
        segment_id=f"{segment['id'].integer():03d}",
        start_s=bounds[0],
        end_s=bounds[1],
        caption=segment["sentence"].text(),
    )
