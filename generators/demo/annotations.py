"""The demo's annotations in the formats of the originals, down to the order of keys."""

import bisect
import itertools
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from eqforge.generators.demo.boundaries import Change, EventVideo
from eqforge.generators.demo.cooking import CookingVideo
from eqforge.generators.demo.own import OwnCaption
from eqforge.generators.demo.scene_graphs import (
    MIN_SEEN,
    GraphVideo,
    Relations,
    SceneObject,
)
from eqforge.generators.demo.scenes import Box, Clip, Print, print_box, seen_box


def youcook2(videos: Sequence[CookingVideo]) -> dict[str, Any]:
    """Returns the content of YouCook2's youcookii_annotations_trainval.json.

    Source: YouCook2's annotation file; segments are in whole seconds.
    """
    return {"database": {_stem(video.clip): _cooking_entry(video) for video in videos}}


def gebplus(videos: Sequence[EventVideo]) -> dict[str, list[dict[str, Any]]]:
    """Returns the content of one of GEB+'s files, such as val.json: boundaries by video.

    Source: GEB+, datasets/annotations/val.json.
    """
    return {_stem(video.clip): list(_boundary_rows(video)) for video in videos}


def object_boxes(videos: Sequence[GraphVideo]) -> dict[str, list[dict[str, Any]]]:
    """Returns the content of Action Genome's object_bbox_and_relationship.pkl.

    Boxes are (x, y, width, height) in pixels; an object out of sight has None in place of its box
    and of its relations.
    """
    return {
        _frame_key(video, number): [
            _object_row(video, number, time_s, thing) for thing in video.objects
        ]
        for video in videos
        for number, time_s in _annotated_frames(video)
    }


def person_boxes(videos: Sequence[GraphVideo]) -> dict[str, dict[str, Any]]:
    """Returns the content of Action Genome's person_bbox.pkl, without its body key points.

    Boxes are float32 (n, 4) as (left, top, right, bottom) in pixels, scores float32 (n,). A person
    is detected with score 1 in each frame of the clip, and nobody in a frame after its end.
    """
    return {
        _frame_key(video, number): _person_row(video, number, time_s)
        for video in videos
        for number, time_s in _annotated_frames(video)
    }


def frame_list(videos: Sequence[GraphVideo]) -> list[str]:
    """Returns the lines of Action Genome's frame_list.txt, such as DEMO1.mp4/000007.png."""
    return [_frame_key(video, number) for video in videos for number, _ in _annotated_frames(video)]


def own_captions(captions: Sequence[OwnCaption]) -> list[dict[str, Any]]:
    """Returns the records of a user's own captioned videos, one for each line of the JSONL."""
    return [_own_record(number, caption) for number, caption in enumerate(captions)]


def _stem(clip: Clip) -> str:
    return PurePosixPath(clip.file).stem


def _cooking_entry(video: CookingVideo) -> dict[str, Any]:
    bounds = [round(start_s) for start_s in video.clip.starts_s]
    segments = zip(itertools.pairwise(bounds), video.sentences, strict=True)
    return {
        "duration": video.clip.duration_s,
        "subset": video.subset,
        "recipe_type": video.recipe_type,
        "annotations": [
            {"segment": list(segment), "id": number, "sentence": sentence}
            for number, (segment, sentence) in enumerate(segments)
        ],
        "video_url": f"https://example.org/watch?v={_stem(video.clip)}",
    }


def _boundary_rows(video: EventVideo) -> Iterator[dict[str, Any]]:
    for change in sorted(video.changes, key=lambda change: (change.shot, change.annotator)):
        # The published files have the integer 0 in front of a video's first boundary.
        before_s = video.clip.starts_s[change.shot] if change.shot > 0 else 0
        yield {
            "boundary_id": f"{_stem(video.clip)}_{change.shot}{change.annotator}",
            "timestamp": video.clip.starts_s[change.shot + 1],
            "prev_timestamp": before_s,
            "next_timestamp": video.clip.starts_s[change.shot + 2],
            "label": change.label,
            "subject": change.subject,
            "status_before": change.before,
            "status_after": change.after,
            "action_of_cause": change.cause,
            "caption": _event_caption(change),
        }


def _event_caption(change: Change) -> str:
    return (
        f"Subject: {change.subject} //Status_Before: {change.before} //Status_After: {change.after}"
    )


def _annotated_frames(video: GraphVideo) -> Iterator[tuple[int, float]]:
    """Yields a frame's number and time in seconds.

    Numbers start at 1: Action Genome's frames were written by ffmpeg as %06d.png.

    Source: Action Genome, tools/dump_frames.py.
    """
    fps = video.clip.fps
    for time_s in video.times_s:
        index = round(time_s * fps)
        yield index + 1, index / fps
    for number in video.late_frames:
        yield number, (number - 1) / fps


def _frame_key(video: GraphVideo, number: int) -> str:
    return f"{video.clip.file}/{number:06d}.png"


def _object_row(
    video: GraphVideo, number: int, time_s: float, thing: SceneObject
) -> dict[str, Any]:
    box = _visible_box(video.clip, time_s, thing.where)
    held = None if box is None else _relations_at(thing, time_s)
    slug = thing.name.replace("/", "_")
    return {
        "class": thing.name,
        "bbox": None if box is None else (box[0], box[1], box[2] - box[0], box[3] - box[1]),
        "attention_relationship": None if held is None else list(held.attention),
        "spatial_relationship": None if held is None else list(held.spatial),
        "contacting_relationship": None if held is None else list(held.contacting),
        "metadata": {"tag": f"{video.clip.file}/{slug}/{number:06d}", "set": video.split},
        "visible": box is not None,
    }


def _person_row(video: GraphVideo, number: int, time_s: float) -> dict[str, Any]:
    box = None if number in video.late_frames else _visible_box(video.clip, time_s, video.person)
    boxes = [] if box is None else [box]
    return {
        "bbox": np.array(boxes, dtype=np.float32).reshape(-1, 4),
        "bbox_score": np.ones(len(boxes), dtype=np.float32),
        "bbox_size": video.clip.size,
        "bbox_mode": "xyxy",
    }


def _relations_at(thing: SceneObject, time_s: float) -> Relations:
    starts_s = [relations.from_s for relations in thing.relations]
    return thing.relations[bisect.bisect_right(starts_s, time_s) - 1]


def _visible_box(clip: Clip, time_s: float, where: Box | Print) -> Box | None:
    """Returns the part of an object inside the frame, or None if too little of it is."""
    whole = (
        print_box(clip, time_s, where)
        if isinstance(where, Print)
        else seen_box(clip, time_s, where)
    )
    width, height = clip.size
    left, top = max(whole[0], 0.0), max(whole[1], 0.0)
    right, bottom = min(whole[2], float(width)), min(whole[3], float(height))
    seen = max(right - left, 0.0) * max(bottom - top, 0.0)
    total = (whole[2] - whole[0]) * (whole[3] - whole[1])
    return (left, top, right, bottom) if seen >= MIN_SEEN * total else None


def _own_record(number: int, caption: OwnCaption) -> dict[str, Any]:
    span = (
        {"timestamp_s": caption.start_s}
        if caption.end_s is None
        else {"start_s": caption.start_s, "end_s": caption.end_s}
    )
    return {
        "id": f"own-{number:03d}",
        "video": caption.clip.file,
        **span,
        "caption": caption.caption,
        "split": "train",
        "licence": "CC0-1.0",
    }
