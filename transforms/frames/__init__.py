"""Exact frames of videos: found, decoded, encoded, stored."""

from eqforge.schemas.frames import (
    FRAME_REASONS,
    FrameRequest,
    FrameSettings,
    MissedFrame,
    MissedVideo,
    StoredFrame,
)
from eqforge.transforms.frames.answers import DecodedFrame, UndecodedFrame
from eqforge.transforms.frames.decode import decode_frames
from eqforge.transforms.frames.encode import EncodedImage, encode_image
from eqforge.transforms.frames.extract import FrameExtractor, extract_frames
from eqforge.transforms.frames.locate import resolve_video

__all__ = [
    "FRAME_REASONS",
    "DecodedFrame",
    "EncodedImage",
    "FrameExtractor",
    "FrameRequest",
    "FrameSettings",
    "MissedFrame",
    "MissedVideo",
    "StoredFrame",
    "UndecodedFrame",
    "decode_frames",
    "encode_image",
    "extract_frames",
    "resolve_video",
]
