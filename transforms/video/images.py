"""Scores the images of a clip, and drops the frames that a score speaks against."""

from dataclasses import dataclass, replace

from eqforge.core.files.pictures import read_pixels
from eqforge.schemas.records.books import Reject
from eqforge.transforms.dataset.books import error_rejection
from eqforge.transforms.dataset.ledger import Ledger
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.filters.images import ImageFilters, ScoredImage, image_row
from eqforge.transforms.video.clip_work import FRAMES_STAGE, ClipWork, KeptFrame


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoredImages:
    """The scored images of one clip by image id."""

    by_id: dict[str, ScoredImage]


def score_images(
    work: ClipWork, media: MediaStore, filters: ImageFilters, ledger: Ledger
) -> ClipWork:
    """Score the images of a clip's frames.

    The stored image is scored, so anyone with the dataset can reproduce the scores. An image that
    makes a scorer fail is a reject, and does not affect other images.
    """
    stored = {frame.stored.image_id: frame.stored for frame in work.frames}
    scored = ledger.remember(
        sorted(stored),
        ScoredImages,
        lambda: ScoredImages(
            by_id={
                image_id: _score_stored(media.get(image_id, stored[image_id].suffix), filters)
                for image_id in sorted(stored)
            }
        ),
        lambda images: all(image.rejection is None for image in images.by_id.values()),
    )
    rejections = {image_id: image.rejection for image_id, image in scored.by_id.items()}
    rejects = [
        work.reject(frame.stored.frame_id, FRAMES_STAGE, rejection)
        for frame in work.frames
        if (rejection := rejections[frame.stored.image_id]) is not None
    ]
    frames = tuple(
        replace(frame, image=image_row(frame.stored, scored.by_id[frame.stored.image_id]))
        for frame in work.frames
        if rejections[frame.stored.image_id] is None
    )
    return replace(work, frames=frames).with_rejects(rejects)


def _score_stored(data: bytes, filters: ImageFilters) -> ScoredImage:
    try:
        return filters.score(read_pixels(data))
    except Exception as error:
        return ScoredImage(rejection=error_rejection(error))


def drop_frames(work: ClipWork, filters: ImageFilters) -> ClipWork:
    """Drop the frames of a clip whose scores are rejected, and count its frames."""
    kept: list[KeptFrame] = []
    rejects: list[Reject] = []
    for frame in work.frames:
        assert frame.image is not None
        rejection = filters.refuse(frame.image.scores)
        if rejection is None:
            kept.append(frame)
        else:
            rejects.append(work.reject(frame.stored.frame_id, FRAMES_STAGE, rejection))
    if work.source is None:
        return work
    judged = replace(work, frames=tuple(kept)).with_rejects(rejects)
    return judged.with_tally(FRAMES_STAGE.tally(len(work.clip.frames), len(kept)))
