"""Extracts the planned frames of a video, once, into the media store."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from eqforge.core.files.find_file import MissingFile
from eqforge.core.files.found_file import FoundFile, OpenFile
from eqforge.core.files.found_frames import FoundFrames, find_video
from eqforge.core.files.objects import FetchFailed
from eqforge.core.files.source_file import SourceFile
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.ledger import Ledger
from eqforge.schemas.records.frames import VIDEO_SUFFIXES, Clip, MissedFrame, StoredFrame
from eqforge.schemas.records.scores import Rejection
from eqforge.transforms.dataset.failures import error_rejection
from eqforge.transforms.video.clip_work import FRAMES_STAGE, ClipWork, Extraction, KeptFrame, Source
from eqforge.transforms.video.pictures import FrameFolder, extract_pictures
from eqforge.transforms.video.rules import encoding_parameters

if TYPE_CHECKING:
    from eqforge.transforms.video.frames.extract import FrameExtractor

TRANSIENT = ("decoder_crashed", "decoder_timeout")


def extract_frames(
    clip: Clip,
    videos: SourceFolder,
    extractor: "FrameExtractor",
    ledger: Ledger,
    frames_fps: float | None = None,
) -> ClipWork:
    """Store the frames of a clip, with a reject for every missing frame.

    A video that is finished and unchanged is not decoded again. If no frame is wanted, because no
    pair was planned, the file need only exist.

    Args:
      frames_fps: rate in frames per second of folders of frames; None if unknown.
    """
    encoding = json.dumps(encoding_parameters(extractor.settings), sort_keys=True)
    work = ClipWork(
        clip=clip, source=None, encoding=encoding, rejects=clip.rejects, tallies=clip.tallies
    )
    if not clip.video:  # records that name no video
        return work.with_tally(FRAMES_STAGE.tally(0, 0))
    try:
        found = find_video(videos, clip.video, VIDEO_SUFFIXES)
        if isinstance(found, MissingFile):
            return _without_video(work, _rejection(found))
        if not clip.frames:
            return work.with_tally(FRAMES_STAGE.tally(0, 0))
        if isinstance(found, FoundFrames):
            folder = FrameFolder(
                frames=found,
                videos=videos,
                frames_fps=frames_fps,
                end_tolerance_s=extractor.settings.end_tolerance_s,
            )
            extraction = extract_pictures(clip, folder, extractor.settings, extractor.store, ledger)
        else:
            extraction = _extract_once(clip, found, extractor, ledger)
    except FetchFailed as error:
        return _without_video(work, _rejection(error))
    except Exception as error:
        return _without_video(work, error_rejection(error))
    stored = replace(
        work,
        source=Source(path=found.name, sha256=extraction.source_sha256),
        frames=tuple(KeptFrame(stored=stored) for stored in extraction.stored),
        sources=extraction.sources,
    )
    return stored.with_rejects(
        [
            stored.reject(
                missed.frame_id, FRAMES_STAGE, Rejection(reason=missed.reason, detail=missed.detail)
            )
            for missed in extraction.missed
        ]
    )


def _rejection(why: MissingFile | FetchFailed) -> Rejection:
    reason = {"file_missing": "video_missing"}.get(why.reason, why.reason)
    return Rejection(reason=reason, detail=why.detail)


def _extract_once(
    clip: Clip, found: FoundFile, extractor: "FrameExtractor", ledger: Ledger
) -> Extraction:
    with _opened(found) as file:
        inputs = [clip.video, file.state, list(map(asdict, clip.frames))]
        known = ledger.recall(inputs, Extraction)
        if known is not None and known.is_stored(extractor.store):
            return known
        with file.copied() as source:
            extraction = _extract(clip, source, extractor)
        # Results from a file that is still being written are not valid; and the decoder, which
        # opens the name, may have opened a different file.
        was_other = any(missed.reason == "source_changed" for missed in extraction.missed)
        if was_other or file.is_changed():
            raise FetchFailed("source_changed", "the file changed while it was read")
    # A crash may be the machine's fault, not the video's, so another run must try again.
    if not any(missed.reason in TRANSIENT for missed in extraction.missed):
        extractor.store.sync((frame.image_id, frame.suffix) for frame in extraction.stored)
        ledger.write(inputs, extraction)
    return extraction


@contextlib.contextmanager
def _opened(found: FoundFile) -> Iterator[OpenFile]:
    with contextlib.ExitStack() as opened:
        try:
            file = opened.enter_context(found.opened())
        except FileNotFoundError as error:
            raise FetchFailed(
                "video_missing", "the file was deleted or moved during the build"
            ) from error
        except OSError as error:
            raise FetchFailed("video_unreadable", error.strerror or str(error)) from error
        yield file


def _extract(clip: Clip, source: SourceFile, extractor: "FrameExtractor") -> Extraction:
    try:
        sha256 = source.digest()
    except OSError as error:
        raise FetchFailed("video_unreadable", error.strerror or str(error)) from error
    state, path = source.state, str(source.stream.name)
    answers = {answer.frame_id: answer for answer in extractor.extract(path, clip.frames, state)}
    crashed = {
        name
        for name, answer in answers.items()
        if isinstance(answer, MissedFrame) and answer.reason in TRANSIENT
    }
    if again := [frame for frame in clip.frames if frame.frame_id in crashed]:
        answers |= {answer.frame_id: answer for answer in extractor.extract(path, again, state)}
    ordered = [answers[frame.frame_id] for frame in clip.frames]
    return Extraction(
        source_sha256=sha256,
        stored=tuple(answer for answer in ordered if isinstance(answer, StoredFrame)),
        missed=tuple(answer for answer in ordered if isinstance(answer, MissedFrame)),
    )


def _without_video(work: ClipWork, rejection: Rejection) -> ClipWork:
    # A missing file is reported even if no frame of it was wanted.
    wanted = [frame.frame_id for frame in work.clip.frames] or [work.clip.root]
    rejects = [work.reject(name, FRAMES_STAGE, rejection) for name in wanted]
    return work.with_rejects(rejects).with_tally(FRAMES_STAGE.tally(len(rejects), 0))
