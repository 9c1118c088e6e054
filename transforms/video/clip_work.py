"""The state of one video in the pipeline, and the rows it becomes."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from eqforge.generators.text.words import WordEdit
from eqforge.schemas.records.frames import (
    FRAME_REASONS,
    Clip,
    MissedFrame,
    PairCandidate,
    StoredFrame,
)
from eqforge.schemas.records.scores import Rejection, Score
from eqforge.schemas.records.stages import Reject, Stage, Tally
from eqforge.schemas.records.values import spans_of
from eqforge.schemas.tables.pairs import UNKNOWN_S, ImageRow, Origin, PairSample
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.filters.images import IMAGE_FILTER_REASONS
from eqforge.transforms.filters.minimality import PairMeasures

FRAMES_STAGE = Stage(
    "frames",
    {**IMAGE_FILTER_REASONS, **FRAME_REASONS},
    note="If a missing or rejected video has no planned pairs, this stage lists the video's id.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A source file: its path below the user's folder, and its SHA-256.

    The digest is None for a folder of frames and for an unreadable file.
    """

    path: str
    sha256: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Extraction:
    """The frames from one pass over a video.

    Attributes:
      source_sha256: digest of the video's file; None for a folder of frames.
      sources: the image files of a folder of frames, by frame id.
    """

    stored: tuple[StoredFrame, ...]
    missed: tuple[MissedFrame, ...]
    source_sha256: str | None = None
    sources: dict[str, Source] = field(default_factory=dict)

    def is_stored(self, media: MediaStore) -> bool:
        """Return True if a store has each frame, whole: a power cut may shorten one."""
        return all(media.exists(each.image_id, each.suffix, each.num_bytes) for each in self.stored)


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptFrame:
    """A frame in the media store, with its row once the filters measured it."""

    stored: StoredFrame
    image: ImageRow | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredPair:
    """A candidate pair with its measured minimality and other scores."""

    candidate: PairCandidate
    measures: PairMeasures
    edit: WordEdit
    scores: tuple[Score, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ClipWork:
    """A clip and its results so far; every step returns a new one.

    Attributes:
      source: the video file, or the folder of its frames; None if it could not be read.
      encoding: how frames are encoded, as JSON.
      rejects: all so far, including those of planning.
      sources: the image files of a folder of frames, by frame id.
    """

    clip: Clip
    source: Source | None
    encoding: str
    frames: tuple[KeptFrame, ...] = ()
    pairs: tuple[MeasuredPair, ...] = ()
    rejects: tuple[Reject, ...] = ()
    tallies: tuple[Tally, ...] = ()
    sources: dict[str, Source] = field(default_factory=dict)

    def reject(self, candidate_id: str, stage: Stage, rejection: Rejection) -> Reject:
        source = self.sources.get(candidate_id, self.source)
        return stage.reject(
            candidate_id,
            rejection,
            source_id=self.clip.clip_id,
            source_path=None if source is None else source.path,
            source_sha256=None if source is None else source.sha256,
        )

    def with_rejects(self, rejects: list[Reject]) -> "ClipWork":
        return replace(self, rejects=(*self.rejects, *rejects))

    def rows(self, table: str, dataset: str) -> Iterable[Any]:
        if table == "samples":
            return samples_of(self, dataset)
        return images_of(self) if table == "images" else self.rejects

    def with_tally(self, tally: Tally) -> "ClipWork":
        return replace(self, tallies=(*self.tallies, tally))


def samples_of(work: ClipWork, dataset: str) -> Iterator[PairSample]:
    frames = {frame.stored.frame_id: frame for frame in work.frames}
    for pair in work.pairs:
        candidate = pair.candidate
        first, second = frames[candidate.frame_0_id], frames[candidate.frame_1_id]
        yield PairSample(
            sample_id=candidate.sample_id,
            dataset=dataset,
            split=work.clip.split,
            source_id=work.clip.clip_id,
            caption_0=candidate.caption_0,
            caption_1=candidate.caption_1,
            captions_0=candidate.captions_0,
            captions_1=candidate.captions_1,
            image_0_id=first.stored.image_id,
            image_1_id=second.stored.image_id,
            origin_0=_origin(work, first.stored),
            origin_1=_origin(work, second.stored),
            annotation=json.dumps(candidate.annotation, sort_keys=True, ensure_ascii=False),
            changed_area_fraction=pair.measures.changed_area_fraction,
            ssim=pair.measures.ssim,
            background_ssim=pair.measures.background_ssim,
            luminance_shift=pair.measures.luminance_shift,
            phash_distance=pair.measures.phash_distance,
            word_edit_distance=pair.edit.distance,
            edited_spans_0=spans_of(pair.edit.spans_0),
            edited_spans_1=spans_of(pair.edit.spans_1),
            scores=pair.scores,
        )


def _origin(work: ClipWork, frame: StoredFrame) -> Origin:
    source = work.sources.get(frame.frame_id, work.source)
    assert source is not None
    assert source.sha256 is not None, "the frame was read from it"
    return Origin(
        frame_id=frame.frame_id,
        source_path=source.path,
        source_sha256=source.sha256,
        licence=work.clip.licence,
        requested_timestamp_s=_seconds(frame.requested_timestamp_s),
        timestamp_s=_seconds(frame.timestamp_s),
        pts=frame.pts,
        time_base=frame.time_base or "",
        frame_index=frame.frame_index,
        rotation_deg=frame.rotation_deg,
        parameters=_parameters(work.encoding, frame),
    )


def _parameters(encoding: str, frame: StoredFrame) -> str:
    """Return an image's encoding, with changes of the stored pixels other than rotation."""
    done = {
        "pixel_aspect": frame.pixel_aspect,
        "deinterlaced": frame.is_deinterlaced and "bwdif",
        "tone_mapped": frame.tone_mapped,
        "video_stream": frame.video_stream,
    }
    changes = {name: value for name, value in done.items() if value}
    return json.dumps(json.loads(encoding) | changes, sort_keys=True) if changes else encoding


def _seconds(time_s: float | None) -> float:
    return UNKNOWN_S if time_s is None else time_s


def images_of(work: ClipWork) -> Iterator[ImageRow]:
    frames = {frame.stored.frame_id: frame for frame in work.frames}
    needed = {
        frame_id
        for pair in work.pairs
        for frame_id in (pair.candidate.frame_0_id, pair.candidate.frame_1_id)
    }
    images = [frames[frame_id].image for frame_id in sorted(needed)]
    yield from {image.image_id: image for image in images if image is not None}.values()
