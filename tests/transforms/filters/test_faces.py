"""Faces: the published detector, a second opinion, and the policies over both."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import dlib
import numpy as np
import pytest
import skimage.data
from PIL import Image

from eqforge.core.errors import InputError, MissingExtra
from eqforge.schemas.records.scores import Score
from eqforge.transforms.filters.faces import (
    DLIB,
    FACES,
    OPENCV,
    PUBLISHED_CNN,
    PUBLISHED_HOG,
    FacePolicy,
    FaceSettings,
    prepare_faces,
    reject_face,
    score_faces,
)

BOTH_SEEN = (0.5, 57.0)


def score(name: str, value: float | None) -> Score:
    return Score(name=name, value=value, scorer="s", version="1", settings="{}")


def scores(dlib: float | None, opencv: float | None) -> list[Score]:
    return [score(DLIB, dlib), score(OPENCV, opencv)]


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
    for policy in ("paper", "either", "both"):
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
    rejection = reject_face(scores(dlib, opencv), FaceSettings(face_policy=policy))
    assert (rejection is not None) is expected


@pytest.mark.parametrize(("policy", "name"), [("paper", PUBLISHED_HOG), ("cnn", PUBLISHED_CNN)])
def test_one_face_of_face_recognition_is_enough_whatever_the_thresholds(
    policy: FacePolicy, name: str
) -> None:
    settings = FaceSettings(face_policy=policy, face_threshold=9.0, face_opencv_threshold=99.0)
    assert reject_face([score(name, 0.0)], settings) is None
    rejection = reject_face([score(name, 2.0)], settings)
    assert rejection is not None
    assert (rejection.value, rejection.threshold, rejection.detail) == (2.0, 1.0, name)


def test_a_rejection_names_the_detectors_and_the_first_ones_numbers() -> None:
    rejection = reject_face(scores(*BOTH_SEEN), FaceSettings(face_policy="either"))
    assert rejection is not None
    assert rejection.reason in FACES.reasons
    assert (rejection.value, rejection.threshold) == (0.5, 0.0)
    assert rejection.detail == f"{DLIB} and {OPENCV}"


def test_scores_of_another_policy_are_not_taken_for_no_face() -> None:
    with pytest.raises(KeyError, match=OPENCV):
        reject_face(scores(0.5, None)[:1], FaceSettings(face_policy="either"))


def test_only_the_detectors_of_the_policy_run() -> None:
    def names(policy: FacePolicy) -> list[str]:
        settings = FaceSettings(face_policy=policy, face_upsample=0)
        return [score.name for score in score_faces(skimage.data.chelsea(), settings)]

    assert names("off") == []
    assert names("paper") == [PUBLISHED_HOG]
    assert names("cnn") == [PUBLISHED_CNN]
    assert names("either") == names("both") == [DLIB, OPENCV]


def test_a_score_carries_what_is_needed_to_take_it_again() -> None:
    settings = FaceSettings(face_upsample=0, face_opencv_scale=1.2)
    frontal, opencv = score_faces(skimage.data.astronaut(), settings)
    assert frontal.settings == '{"floor":-1.0,"upsample":0}'
    assert '"scale_factor":1.2' in opencv.settings
    assert frontal.version.startswith("20.")
    assert opencv.version.startswith("4.")
    (published,) = score_faces(skimage.data.coffee(), FaceSettings(face_policy="paper"))
    assert (published.scorer, published.version) == ("face_recognition.face_locations", "1.3.0")
    assert published.settings == f'{{"dlib":"{dlib.__version__}","model":"hog","upsample":1}}'


@pytest.mark.parametrize("shape", [(1, 1), (1, 700), (700, 1), (7, 5)])
def test_images_too_small_for_a_face_have_none(shape: tuple[int, int]) -> None:
    pixels = np.full((*shape, 3), 90, np.uint8)
    assert [score.value for score in score_faces(pixels, FaceSettings())] == [None, None]
    for policy in ("paper", "cnn"):
        (found,) = score_faces(pixels, FaceSettings(face_policy=policy, face_upsample=0))
        assert found.value == 0.0


def test_threads_at_once_score_as_one_thread_does() -> None:
    images = [skimage.data.astronaut(), skimage.data.coffee(), skimage.data.chelsea()]
    either, paper = FaceSettings(), FaceSettings(face_policy="paper")
    expected = [score_faces(image, either) + score_faces(image, paper) for image in images]
    found: dict[int, list[list[Score]]] = {}

    def work(number: int) -> None:
        found[number] = [score_faces(i, either) + score_faces(i, paper) for i in images]

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
    with pytest.raises(InputError, match=next(iter(wrong)).replace("_", "-")):
        FaceSettings(**wrong)


@pytest.mark.parametrize(("package", "extra"), [("dlib", "video"), ("cv2", "video")])
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


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    found = "import numpy as np\nimport sys\nfrom PIL import ImageFile\n"
    found += (
        "from eqforge.transforms.filters.faces import FaceSettings, prepare_faces, score_faces\n"
    )
    command = [sys.executable, "-W", "error", "-c", found + code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("policy", ["paper", "either"])
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
    expected = f"MissingExtra {missing} is not installed: {commands}\nFalse False\n"
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
