"""Exact frames of videos: decoded, encoded, stored."""

from eqforge.schemas.records.frames import (
    FRAME_REASONS,
    FrameRequest,
    FrameSettings,
    MissedFrame,
    StoredFrame,
)
from eqforge.transforms.dataset.encode_image import EncodedImage, encode_image
from eqforge.transforms.video.frames.answers import DecodedFrame, UndecodedFrame
from eqforge.transforms.video.frames.decode import decode_frames
from eqforge.transforms.video.frames.extract import FrameExtractor, extract_frames

__all__ = [
    "FRAME_REASONS",
    "DecodedFrame",
    "EncodedImage",
    "FrameExtractor",
    "FrameRequest",
    "FrameSettings",
    "MissedFrame",
    "StoredFrame",
    "UndecodedFrame",
    "decode_frames",
    "encode_image",
    "extract_frames",
]
