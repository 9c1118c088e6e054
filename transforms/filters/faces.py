"""Scores faces with face_recognition, with dlib's detector and with OpenCV's; rejects by policy.

EqBen filters with `face_recognition.face_locations`, which returns locations without confidences;
dlib's own call, used by the policies of corrected mode, gives a score for each face.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.ranges import expect
from eqforge.schemas.records.scores import Rejection, Score, compact_json, value_of
from eqforge.transforms.filters.image_filter import ImageFilter, check_pixels, import_cv2

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERSION = "2"
PUBLISHED_HOG = "face_recognition_hog"
PUBLISHED_CNN = "face_recognition_cnn"
DLIB = "face_dlib_hog"
OPENCV = "face_opencv_haar"

ONE_FACE = 1.0
"""Minimum number of faces from `face_recognition.face_locations`, which gives no scores."""

SCORE_FLOOR = -1.0
"""The lowest dlib score reported; windows below it are noise."""

CASCADE = "haarcascade_frontalface_alt2"
"""The frontal cascade of OpenCV whose score separates faces best.

On 86 photographs its false alarms score at most 55.7, whereas haarcascade_frontalface_default
gives a bus, a laptop and an elephant the scores of faces.
"""

CNN_SIDE_PX = 80
"""The cnn model fails on images smaller than its windows; they are padded with black."""

UNBOUND = "pip install --no-deps face_recognition==1.3.0"
"""Installs the package with dlib-bin: it depends on dlib's source package by name."""

FacePolicy = Literal["paper", "cnn", "either", "both", "off"]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FaceSettings:
    """Face detectors, and how their results are combined."""

    face_policy: FacePolicy = "either"
    """Face detectors to use: `paper`, `cnn`, `either`, `both`, or `off`. `paper` is EqBen's: the
    hog model of face_recognition. `cnn` also detects turned heads, and needs 7 s of CPU time per
    640 x 480 image. `either` and `both` combine dlib with OpenCV."""

    face_upsample: int = 1
    """Number of times dlib doubles the image size before detection, 0 to 4. Each doubling halves
    the smallest detectable face (80 pixels at 0, 40 at 1) and takes four times as long."""

    face_threshold: float = 0.0
    """Minimum dlib score of a face, -1 or more. `paper` and `cnn` ignore this option."""

    face_opencv_threshold: float = 55.8
    """Minimum OpenCV score of a face, 54 to 58: the sum over the last cascade stage."""

    face_opencv_scale: float = 1.1
    """Factor by which OpenCV shrinks the image between passes, above 1."""

    face_opencv_neighbors: int = 3
    """Minimum number of overlapping windows for an OpenCV detection, 1 or more."""

    def __post_init__(self) -> None:
        expect(self, "face_upsample", 0 <= self.face_upsample <= 4, "0 to 4")
        expect(self, "face_threshold", self.face_threshold >= SCORE_FLOOR, f"{SCORE_FLOOR} or more")
        expect(self, "face_opencv_scale", self.face_opencv_scale > 1, "more than 1")
        expect(self, "face_opencv_neighbors", self.face_opencv_neighbors >= 1, "1 or more")


def prepare_faces(settings: FaceSettings) -> None:
    """Load the policy's detectors, so that a missing package shows before any work."""
    for name in _thresholds(settings):
        _SCORERS[name](np.zeros((1, 1, 3), np.uint8), settings)


def score_faces(pixels: NDArray[np.uint8], settings: FaceSettings) -> list[Score]:
    """Score the most face-like place of an image with each of the policy's detectors.

    Args:
      pixels: RGB, uint8 [height, width, 3], of any size.

    Returns:
      One score per detector, none for policy off. face_recognition: the number of faces. dlib: its
      confidence, -1 or more. OpenCV: the sum of the cascade's last stage. The latter two are None
      if the detector reports nothing.

    Source: EqBen, appendix B.3 (frames with human faces are discarded, by face_recognition).
    """
    check_pixels(pixels)
    contiguous = np.ascontiguousarray(pixels)
    return [_SCORERS[name](contiguous, settings) for name in _thresholds(settings)]


def scoring_basis(settings: FaceSettings) -> dict[str, object]:
    """Return everything the scores depend on besides the image; thresholds are not part of it."""
    return {
        "version": VERSION,
        "detectors": sorted(_thresholds(settings)),
        "upsample": settings.face_upsample,
        "opencv_scale": settings.face_opencv_scale,
        "opencv_neighbors": settings.face_opencv_neighbors,
    }


def reject_face(scores: Sequence[Score], settings: FaceSettings) -> Rejection | None:
    """Reject an image in which the detectors, by the policy, see a face.

    Raises:
      KeyError: the scores come from a policy with other detectors.
    """
    thresholds = _thresholds(settings)
    values = {name: value_of(scores, name) for name in thresholds}
    found = [
        name for name, value in values.items() if value is not None and value >= thresholds[name]
    ]
    needed = 2 if settings.face_policy == "both" else 1
    if len(found) < needed:
        return None
    return Rejection(
        reason="face_found",
        value=values[found[0]],
        threshold=thresholds[found[0]],
        detail=" and ".join(found),
    )


def _thresholds(settings: FaceSettings) -> Mapping[str, float]:
    if settings.face_policy == "off":
        return {}
    if settings.face_policy == "paper":
        return {PUBLISHED_HOG: ONE_FACE}
    if settings.face_policy == "cnn":
        return {PUBLISHED_CNN: ONE_FACE}
    return {DLIB: settings.face_threshold, OPENCV: settings.face_opencv_threshold}


class _Detectors(threading.local):
    """The detectors of one thread; neither library allows threads to share them."""

    @functools.cached_property
    def dlib(self) -> Any:
        return _import_dlib().get_frontal_face_detector()

    @functools.cached_property
    def opencv(self) -> Any:
        cv2 = import_cv2()
        return cv2.CascadeClassifier(str(Path(cv2.data.haarcascades) / f"{CASCADE}.xml"))


_detectors = _Detectors()
_one_at_a_time = threading.Lock()
"""face_recognition has one detector of each kind for the whole process."""


def _score_published(
    pixels: NDArray[np.uint8], settings: FaceSettings, name: str, model: Literal["hog", "cnn"]
) -> Score:
    from importlib.metadata import version

    if model == "cnn":
        down, right = (max(0, CNN_SIDE_PX - side) for side in pixels.shape[:2])
        pixels = np.pad(pixels, ((0, down), (0, right), (0, 0)))
    with _one_at_a_time:
        found = _import_face_recognition().face_locations(pixels, settings.face_upsample, model)
    dlib = _import_dlib().__version__
    return Score(
        name=name,
        value=float(len(found)),
        scorer="face_recognition.face_locations",
        version=version("face_recognition"),
        settings=compact_json({"model": model, "upsample": settings.face_upsample, "dlib": dlib}),
    )


def _score_dlib(pixels: NDArray[np.uint8], settings: FaceSettings) -> Score:
    """Score with face_recognition's model hog, at a lower threshold."""
    _, confidences, _ = _detectors.dlib.run(pixels, settings.face_upsample, SCORE_FLOOR)
    return Score(
        name=DLIB,
        value=_highest(confidences),
        scorer="dlib.get_frontal_face_detector",
        version=_import_dlib().__version__,
        settings=compact_json({"upsample": settings.face_upsample, "floor": SCORE_FLOOR}),
    )


def _score_opencv(pixels: NDArray[np.uint8], settings: FaceSettings) -> Score:
    cv2 = import_cv2()
    _, _, weights = _detectors.opencv.detectMultiScale3(
        cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY),
        scaleFactor=settings.face_opencv_scale,
        minNeighbors=settings.face_opencv_neighbors,
        outputRejectLevels=True,
    )
    return Score(
        name=OPENCV,
        value=_highest(weights),
        scorer="cv2.CascadeClassifier",
        version=cv2.__version__,
        settings=compact_json(
            {
                "cascade": CASCADE,
                "scale_factor": settings.face_opencv_scale,
                "min_neighbors": settings.face_opencv_neighbors,
            }
        ),
    )


_SCORERS: Mapping[str, Callable[[NDArray[np.uint8], FaceSettings], Score]] = {
    PUBLISHED_HOG: functools.partial(_score_published, name=PUBLISHED_HOG, model="hog"),
    PUBLISHED_CNN: functools.partial(_score_published, name=PUBLISHED_CNN, model="cnn"),
    DLIB: _score_dlib,
    OPENCV: _score_opencv,
}


def _highest(values: Any) -> float | None:
    return round(max(float(value) for value in values), 6) if len(values) else None


def _import_dlib() -> Any:
    try:
        import dlib
    except ImportError as error:
        raise MissingExtra("dlib", "video") from error
    return dlib


@functools.cache
def _import_face_recognition() -> Any:
    """Import face_recognition, and undo its process-wide side effects.

    It emits a deprecation warning, and makes Pillow accept truncated files. If it cannot import its
    models, it closes standard input and exits with status 0, so import the models first.
    """
    from PIL import ImageFile

    _import_dlib()
    reads_truncated = ImageFile.LOAD_TRUNCATED_IMAGES
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import face_recognition_models  # noqa: F401, I001
            import face_recognition
    except ImportError as error:
        raise MissingExtra(error.name or str(error), "video", UNBOUND) from error
    except RuntimeError as error:
        raise InputError(f"face_recognition cannot load its models: {error}") from error
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = reads_truncated
    return face_recognition


FACES = ImageFilter(
    settings=FaceSettings,
    off=FaceSettings(face_policy="off"),
    reasons={"face_found": "A face detector's score reaches its threshold (--face-policy)."},
    packages=(
        *("numpy", "pillow", "opencv-python-headless"),
        *("dlib-bin", "dlib", "face_recognition", "face_recognition_models"),
    ),
    basis=scoring_basis,
    score=lambda pixels, settings: score_faces(pixels, settings),
    refuse=reject_face,
    prepare=prepare_faces,
)
