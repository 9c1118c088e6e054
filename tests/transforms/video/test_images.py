import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge.core.ledger import Ledger
from eqforge.schemas.records.frames import Clip, FrameRequest
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.filters import quality
from eqforge.transforms.filters.faces import FaceSettings
from eqforge.transforms.filters.images import ImageFilters
from eqforge.transforms.filters.quality import QualitySettings
from eqforge.transforms.video.clip_work import ClipWork, Source
from eqforge.transforms.video.pair import drop_frames, score_images
from tests.samples import kept_frame

FILTERS = ImageFilters(faces=FaceSettings(face_policy="off"), quality=QualitySettings())
NOISE = np.random.default_rng(3).integers(0, 256, (40, 60, 3), dtype=np.uint8)


def encoded(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def clip_of(media: MediaStore, *pictures: bytes) -> ClipWork:
    """A clip whose frames are some stored pictures."""
    frames = tuple(
        replace(kept_frame(media, f"d/v/{number}", data, (60, 40)), image=None)
        for number, data in enumerate(pictures)
    )
    requests = tuple(
        FrameRequest(frame_id=frame.stored.frame_id, timestamp_s=0.0) for frame in frames
    )
    return ClipWork(
        clip=Clip(clip_id="v", video="v", split="train", frames=requests),
        source=Source(path="v.mp4", sha256="0" * 64),
        encoding="{}",
        frames=frames,
    )


def score(work: ClipWork, folder: Path, filters: ImageFilters = FILTERS) -> ClipWork:
    ledger = Ledger(root=str(folder / "done"), step="score", basis=filters.basis())
    return score_images(work, MediaStore(str(folder)), filters, ledger)


def test_every_frame_carries_the_scores_of_its_image(tmp_path: Path) -> None:
    media = MediaStore(str(tmp_path))
    work = score(clip_of(media, encoded(NOISE), encoded(NOISE // 2)), tmp_path)

    for frame, pixels in zip(work.frames, (NOISE, NOISE // 2), strict=True):
        assert frame.image is not None
        found = {found.name: found.value for found in frame.image.scores}
        luma = np.asarray(Image.fromarray(pixels).convert("L"), dtype=float)
        assert found["luminance_mean"] == pytest.approx(luma.mean(), abs=1e-6)
        strongest = max(pixels[..., channel].std() for channel in range(3))
        assert found["contrast"] == pytest.approx(strongest, abs=1e-6)
        assert (frame.image.width_px, frame.image.height_px) == (60, 40)
        assert len(frame.image.phash) == 48


def fail(*_: Any) -> Any:
    raise ZeroDivisionError


def test_frames_of_one_image_are_scored_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    original = quality.score_quality

    def counted(pixels: Any) -> Any:
        calls.append(1)
        return original(pixels)

    monkeypatch.setattr(quality, "score_quality", counted)

    work = score(clip_of(MediaStore(str(tmp_path)), *[encoded(NOISE)] * 4), tmp_path)

    assert calls == [1]
    assert len({frame.image for frame in work.frames}) == 1


def test_a_threshold_moved_later_needs_no_new_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = score(clip_of(MediaStore(str(tmp_path)), encoded(NOISE), encoded(NOISE // 4)), tmp_path)
    monkeypatch.setattr(quality, "score_quality", fail)

    kept = {}
    for limit in (None, 60.0, 200.0):
        settings = QualitySettings(min_luminance=limit, min_contrast=None, min_sharpness=None)
        filters = ImageFilters(faces=FILTERS.faces, quality=settings)
        found = drop_frames(score(work, tmp_path, filters), filters)
        kept[limit] = len(found.frames)
        assert {reject.reason for reject in found.rejects} <= {"black_image"}
        assert all(reject.threshold == limit for reject in found.rejects)
        (tally,) = found.tallies
        assert tally.candidates == tally.kept + len(found.rejects) == 2
    assert kept == {None: 2, 60.0: 1, 200.0: 0}
