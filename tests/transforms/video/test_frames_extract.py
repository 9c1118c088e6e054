"""Frames go from videos to the store through a process that may crash or hang."""

import hashlib
import io
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from eqforge.schemas.records.frames import FrameRequest, FrameSettings, MissedFrame, StoredFrame
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.video.frames.extract import FrameExtractor, extract_frames
from tests import clips

# A frame extractor that meets its end at the third frame it stores of a video whose name says so.
FATAL_MODULE = """
import os, signal, time
from eqforge.transforms.video.frames import extract

def serve(question, alive):
    name = os.path.basename(question["video_path"])
    for number, answer in enumerate(extract.serve(question, alive)):
        if number == 2 and name.startswith("crash"):
            os.kill(os.getpid(), signal.SIGABRT)
        if number == 2 and name.startswith("hang"):
            time.sleep(600)
        yield answer
"""


def requests_at(*times: float) -> list[FrameRequest]:
    return [FrameRequest(frame_id=f"f{n}", timestamp_s=time_s) for n, time_s in enumerate(times)]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clip")
    return clips.write_clip(folder / "clip.mp4", clips.CLIPS["constant rate"])


@pytest.fixture
def extractor(tmp_path: Path) -> Iterator[FrameExtractor]:
    store = MediaStore(str(tmp_path / "media"))
    with FrameExtractor(store=store, settings=FrameSettings(image_format="png")) as extractor:
        yield extractor


@pytest.fixture
def fatal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FrameExtractor]:
    (tmp_path / "fatal.py").write_text(FATAL_MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    extractor = FrameExtractor(store=MediaStore(str(tmp_path / "media")), timeout_s=6)
    extractor._child._function = "fatal:serve"
    yield extractor
    extractor.close()


def children() -> list[psutil.Process]:
    return psutil.Process().children()


def test_each_request_gets_its_frame_stored_and_described(
    extractor: FrameExtractor, clip: Path
) -> None:
    requests = [*requests_at(1.0, 0.1, 0.11), FrameRequest(frame_id="tenth", frame_index=10)]
    answers = extractor.extract(str(clip), requests)
    assert [answer.frame_id for answer in answers] == ["f0", "f1", "f2", "tenth"]
    for answer, number in zip(answers, [25, 2, 2, 10], strict=True):
        assert isinstance(answer, StoredFrame)
        data = extractor.store.get(answer.image_id, answer.suffix)
        assert hashlib.sha256(data).hexdigest() == answer.image_id
        assert len(data) == answer.num_bytes
        image = Image.open(io.BytesIO(data))
        assert image.size == (answer.width_px, answer.height_px) == (160, 96)
        assert clips.read_number(np.asarray(image)) == number
        assert (answer.frame_index, answer.pts) == (number, number * 640)
        assert answer.time_base == "1/16000"
        assert answer.timestamp_s == pytest.approx(number * 0.04)
        assert (answer.suffix, answer.rotation_deg) == (".png", 0)
    asked = [answer.requested_timestamp_s for answer in answers]
    assert asked == [1.0, 0.1, 0.11, pytest.approx(0.4)]


def test_the_child_gives_the_answers_of_this_process(extractor: FrameExtractor, clip: Path) -> None:
    requests = requests_at(0.3, 99, -1, 1.5)
    settings = extractor.settings
    here = {
        answer.frame_id: answer
        for answer in extract_frames(str(clip), requests, extractor.store, settings)
    }
    assert extractor.extract(str(clip), requests) == [here[r.frame_id] for r in requests]


def test_settings_reach_the_child(tmp_path: Path, clip: Path) -> None:
    settings = FrameSettings(max_side=80, jpeg_quality=50)
    with FrameExtractor(store=MediaStore(str(tmp_path)), settings=settings) as extractor:
        (answer,) = extractor.extract(str(clip), requests_at(0.3))
    assert isinstance(answer, StoredFrame)
    assert (answer.suffix, answer.width_px, answer.height_px) == (".jpg", 80, 48)


def test_frames_that_cannot_be_had_have_reasons_and_the_others_are_there(
    extractor: FrameExtractor, clip: Path
) -> None:
    answers = extractor.extract(str(clip), requests_at(-1, 0.5, 99))
    assert isinstance(answers[0], MissedFrame)
    assert isinstance(answers[1], StoredFrame)
    assert isinstance(answers[2], MissedFrame)
    assert (answers[0].reason, answers[2].reason) == ("before_first_frame", "after_last_frame")
    assert (answers[0].requested_timestamp_s, answers[2].requested_timestamp_s) == (-1, 99)


def test_of_a_missing_video_every_frame_is_missed(
    extractor: FrameExtractor, tmp_path: Path
) -> None:
    answers = extractor.extract(str(tmp_path / "none.mp4"), requests_at(0.1, 0.2))
    assert [getattr(answer, "reason", None) for answer in answers] == ["video_missing"] * 2
    assert str(tmp_path) not in str(answers)


@pytest.mark.parametrize(
    ("name", "reason", "detail"),
    [
        ("crash.mp4", "decoder_crashed", "killed by SIGABRT"),
        ("hang.mp4", "decoder_timeout", "no response for 6 s"),
    ],
)
def test_a_decoder_that_ends_badly_costs_only_the_frames_to_come(
    fatal: FrameExtractor, clip: Path, tmp_path: Path, name: str, reason: str, detail: str
) -> None:
    video = tmp_path / name
    video.write_bytes(clip.read_bytes())
    answers = fatal.extract(str(video), requests_at(0.1, 0.2, 0.3, 0.4, 0.5))
    kept = [answer for answer in answers if isinstance(answer, StoredFrame)]
    lost = [answer for answer in answers if isinstance(answer, MissedFrame)]
    assert [answer.frame_id for answer in kept] == ["f0", "f1"]
    assert all(fatal.store.exists(answer.image_id, answer.suffix) for answer in kept)
    assert [answer.frame_id for answer in lost] == ["f2", "f3", "f4"]
    assert {(answer.reason, answer.detail) for answer in lost} == {(reason, detail)}
    after = fatal.extract(str(clip), requests_at(0.1, 0.2, 0.3, 0.4))
    assert all(isinstance(answer, StoredFrame) for answer in after)


def test_one_child_serves_many_videos_and_ends_with_the_extractor(
    extractor: FrameExtractor, clip: Path
) -> None:
    before = set(children())
    for _ in range(3):
        extractor.extract(str(clip), requests_at(0.1))
    (child,) = set(children()) - before
    extractor.close()
    assert not child.is_running()


def test_nothing_is_started_before_it_is_needed_nor_for_no_request(
    extractor: FrameExtractor, clip: Path
) -> None:
    before = children()
    assert extractor.extract(str(clip), []) == []
    assert children() == before


def test_an_extractor_can_be_sent_to_a_worker(extractor: FrameExtractor, clip: Path) -> None:
    first = extractor.extract(str(clip), requests_at(0.1))
    with pickle.loads(pickle.dumps(extractor)) as copy:
        assert copy.settings == extractor.settings
        assert copy.extract(str(clip), requests_at(0.1)) == first


def test_two_requests_of_one_name_are_refused(extractor: FrameExtractor, clip: Path) -> None:
    with pytest.raises(ValueError, match="same frame_id"):
        extractor.extract(str(clip), [*requests_at(0.1), *requests_at(0.2)])


def test_a_full_disk_is_an_error_of_the_run(
    extractor: FrameExtractor, clip: Path, tmp_path: Path
) -> None:
    (tmp_path / "media").write_text("a file where the store's folder should be")
    with pytest.raises(OSError, match="media"):
        extractor.extract(str(clip), requests_at(0.1))


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"timestamp_s": 1.0, "frame_index": 1},
        {"timestamp_s": float("nan")},
        {"frame_index": -1},
    ],
)
def test_a_request_without_one_moment_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="f0"):
        FrameRequest(frame_id="f0", **wrong)  # type: ignore[arg-type]
