"""Faces: the published detector, a second opinion, and the policies over both."""

import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skimage.data
from PIL import Image, ImageFile

from eqforge.schemas.errors import InputError, MissingExtra
from eqforge.schemas.scores import IMAGE_REASONS, Score
from eqforge.transforms.faces import (
    DLIB,
    OPENCV,
    FacePolicy,
    FaceSettings,
    has_face,
    prepare_faces,
    score_faces,
)

BOTH_SEEN = (0.5, 57.0)


def scores(dlib: float | None, opencv: float | None) -> list[Score]:
    return [
        Score(name=name, value=value, scorer="s", version="1", settings="{}")
        for name, value in ((DLIB, dlib), (OPENCV, opencv))
    ]


def is_refused(pixels: np.ndarray, policy: FacePolicy, **changes: Any) -> bool:
    settings = FaceSettings(face_policy=policy, **changes)
    return has_face(score_faces(pixels, settings), settings) is not None


@pytest.fixture(scope="module")
def face_recognition() -> Iterator[Any]:
    """The published package, without the warning and the setting it leaves behind in Pillow."""
    pytest.importorskip("dlib")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", ImageFile.LOAD_TRUNCATED_IMAGES)
        yield pytest.importorskip("face_recognition")


@pytest.fixture
def some_photos(data_folder: Path) -> list[np.ndarray]:
    folder = data_folder / "photos"
    files = [
        *sorted((folder / "faces").glob("*.*g")),
        *sorted((folder / "no_faces").glob("*.*g")),
        *sorted((folder / "coco_mini/train2017").glob("*.jpg"))[:18],
    ]
    assert len(files) == 24
    photos = []
    for file in files:
        with Image.open(file) as image:
            photos.append(np.asarray(image.convert("RGB")))
    return photos


def test_the_astronaut_has_a_face_for_both_detectors_and_the_coffee_for_none() -> None:
    for policy in ("paper", "either", "both"):
        assert is_refused(skimage.data.astronaut(), policy)
        assert not is_refused(skimage.data.coffee(), policy)


def test_policy_paper_refuses_what_face_recognition_finds_a_face_in(
    some_photos: list[np.ndarray], face_recognition: Any
) -> None:
    expected = [bool(face_recognition.face_locations(photo)) for photo in some_photos]
    assert 4 <= sum(expected) <= 12
    assert [is_refused(photo, "paper") for photo in some_photos] == expected


def test_upsampling_means_what_it_means_for_face_recognition(
    some_photos: list[np.ndarray], face_recognition: Any
) -> None:
    photos = some_photos[:10]
    expected = [bool(face_recognition.face_locations(photo, 0)) for photo in photos]
    assert [is_refused(photo, "paper", face_upsample=0) for photo in photos] == expected
    assert expected != [is_refused(photo, "paper", face_upsample=1) for photo in photos]


def test_the_second_detector_sees_a_skier_the_first_one_misses(data_folder: Path) -> None:
    file = data_folder / "photos/coco_mini/train2017/000000030752.jpg"
    with Image.open(file) as image:
        skier = np.asarray(image.convert("RGB"))
    assert not is_refused(skier, "paper")
    assert is_refused(skier, "either")
    assert not is_refused(skier, "both")
    assert is_refused(skier, "both", face_threshold=-0.1)


@pytest.mark.parametrize(
    ("policy", "dlib", "opencv", "expected"),
    [
        ("off", *BOTH_SEEN, False),
        ("paper", 0.0, None, True),
        ("paper", -0.01, 57.0, False),
        ("paper", None, 57.0, False),
        ("either", 0.5, None, True),
        ("either", None, 57.0, True),
        ("either", -0.5, 55.0, False),
        ("either", None, None, False),
        ("both", *BOTH_SEEN, True),
        ("both", 0.5, None, False),
        ("both", None, 57.0, False),
    ],
)
def test_policies(
    policy: FacePolicy, dlib: float | None, opencv: float | None, expected: bool
) -> None:
    rejection = has_face(scores(dlib, opencv), FaceSettings(face_policy=policy))
    assert (rejection is not None) is expected


def test_the_paper_has_its_own_threshold_and_the_other_policies_have_settings() -> None:
    strict = {"face_threshold": 0.9, "face_opencv_threshold": 99.0}
    assert has_face(scores(*BOTH_SEEN), FaceSettings(face_policy="paper", **strict)) is not None
    assert has_face(scores(*BOTH_SEEN), FaceSettings(face_policy="either", **strict)) is None


def test_a_rejection_names_the_detectors_and_the_first_ones_numbers() -> None:
    rejection = has_face(scores(*BOTH_SEEN), FaceSettings(face_policy="either"))
    assert rejection is not None
    assert rejection.reason in IMAGE_REASONS
    assert (rejection.value, rejection.threshold) == (0.5, 0.0)
    assert rejection.detail == f"{DLIB} and {OPENCV}"


def test_scores_of_another_policy_are_not_taken_for_no_face() -> None:
    with pytest.raises(KeyError, match=OPENCV):
        has_face(scores(0.5, None)[:1], FaceSettings(face_policy="either"))


def test_only_the_detectors_of_the_policy_run() -> None:
    def names(policy: FacePolicy) -> list[str]:
        found = score_faces(skimage.data.coffee(), FaceSettings(face_policy=policy))
        return [score.name for score in found]

    assert names("off") == []
    assert names("paper") == [DLIB]
    assert names("either") == names("both") == [DLIB, OPENCV]


def test_a_score_carries_what_is_needed_to_take_it_again() -> None:
    settings = FaceSettings(face_upsample=0, face_opencv_scale=1.2)
    dlib, opencv = score_faces(skimage.data.astronaut(), settings)
    assert dlib.settings == '{"floor":-1.0,"upsample":0}'
    assert '"scale_factor":1.2' in opencv.settings
    assert dlib.version.startswith("20.")
    assert opencv.version.startswith("4.")


@pytest.mark.parametrize("shape", [(1, 1), (1, 700), (700, 1), (7, 5)])
def test_images_too_small_for_a_face_have_none(shape: tuple[int, int]) -> None:
    found = score_faces(np.full((*shape, 3), 90, np.uint8), FaceSettings())
    assert [score.value for score in found] == [None, None]


def test_threads_at_once_score_as_one_thread_does() -> None:
    images = [skimage.data.astronaut(), skimage.data.coffee(), skimage.data.chelsea()]
    expected = [score_faces(image, FaceSettings()) for image in images]
    found: dict[int, list[list[Score]]] = {}

    def work(number: int) -> None:
        found[number] = [score_faces(image, FaceSettings()) for image in images]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(3), expected)


@pytest.mark.parametrize(
    "wrong",
    [
        {"face_upsample": -1},
        {"face_upsample": 5},
        {"face_threshold": -1.5},
        {"face_threshold": float("nan")},
        {"face_opencv_scale": 1.0},
        {"face_opencv_neighbors": 0},
    ],
)
def test_settings_outside_their_range_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        FaceSettings(**wrong)


@pytest.mark.parametrize(("package", "extra"), [("dlib", "faces"), ("cv2", "video")])
def test_a_missing_package_is_named_before_any_work(
    package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"{package} is not installed.*\[{extra}\]"):
        prepare_faces(FaceSettings(face_policy="either"))


def test_detectors_that_are_not_asked_for_need_not_be_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    prepare_faces(FaceSettings(face_policy="paper"))
    monkeypatch.setitem(sys.modules, "dlib", None)
    prepare_faces(FaceSettings(face_policy="off"))


def test_scoring_warns_of_nothing_and_leaves_pillow_strict() -> None:
    """Importing face_recognition warns and makes Pillow accept truncated files everywhere."""
    code = (
        "import numpy as np\n"
        "from PIL import ImageFile\n"
        "from eqforge.transforms.faces import FaceSettings, score_faces\n"
        "score_faces(np.zeros((90, 90, 3), np.uint8), FaceSettings())\n"
        "print(ImageFile.LOAD_TRUNCATED_IMAGES)\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert (run.stdout, run.stderr) == ("False\n", "")
