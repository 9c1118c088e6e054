"""Scores faces with dlib's detector, as EqBen's authors did, and with OpenCV's; rejects by policy.

EqBen filters with `face_recognition.face_locations`, which is one call of dlib's frontal face
detector. dlib is called here directly: the same boxes, with their scores, and without what
importing face_recognition brings along (100 MB of models for other tasks, a warning,
Pillow switched to decoding truncated files for the whole process, exit of the process with
status 0 when its models cannot be found).
"""

import dataclasses
import functools
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eqforge.schemas.errors import InputError, MissingExtra
from eqforge.schemas.scores import Rejection, Score, compact_json, value_of
from eqforge.transforms.luma import check_pixels
from eqforge.transforms.opencv import import_cv2

VERSION = "1"
DLIB = "face_dlib_hog"
OPENCV = "face_opencv_haar"

PAPER_THRESHOLD = 0.0
"""The detector score from which `face_recognition.face_locations` reports a face."""

SCORE_FLOOR = -1.0
"""The lowest dlib score that is looked for; windows below it are as good as noise."""

CASCADE = "haarcascade_frontalface_alt2"
"""Of OpenCV's frontal cascades, the one whose score tells faces from the rest.

On 86 photographs its false alarms score at most 55.7, where haarcascade_frontalface_default
gives a bus, a laptop and an elephant the scores of faces.
"""

FacePolicy = Literal["paper", "either", "both", "off"]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FaceSettings:
    """Which detectors look for faces, how, and which of them decide.

    Raises:
      InputError: a setting is outside its range.
    """

    face_policy: FacePolicy = "either"
    """paper: dlib at face_recognition's own threshold, as EqBen. either / both: dlib or / and
    OpenCV, at the thresholds below. off: no detector runs."""

    face_upsample: int = 1
    """How often dlib doubles the image before it looks; 0 to 4. One step more finds faces of
    half the size (80 pixels at 0, 40 at 1) and takes four times as long."""

    face_threshold: float = PAPER_THRESHOLD
    """Least dlib score of a face, -1 or more; policy paper ignores it."""

    face_opencv_threshold: float = 55.8
    """Least OpenCV score of a face: the sum of the cascade's last stage, 54 to 58."""

    face_opencv_scale: float = 1.1
    """By how much OpenCV shrinks the image from one pass to the next; above 1."""

    face_opencv_neighbors: int = 3
    """How many overlapping windows make one OpenCV detection; 1 or more."""

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for is_right, rule in (
            (0 <= self.face_upsample <= 4, "face_upsample lies in 0 to 4"),
            (self.face_threshold >= SCORE_FLOOR, f"face_threshold is {SCORE_FLOOR} or more"),
            (self.face_opencv_scale > 1, "face_opencv_scale is above 1"),
            (self.face_opencv_neighbors >= 1, "face_opencv_neighbors is 1 or more"),
        ):
            if not is_right:
                raise InputError(f"{rule}; found {self}")


def prepare_faces(settings: FaceSettings) -> None:
    """Loads the detectors the policy asks for, so that a missing package shows before any work.

    Raises:
      MissingExtra: dlib or OpenCV is not installed.
    """
    for name in _thresholds(settings):
        _SCORERS[name](np.zeros((1, 1, 3), np.uint8), settings)


def score_faces(pixels: NDArray[np.uint8], settings: FaceSettings) -> list[Score]:
    """Scores the most face-like place of an image with each detector the policy asks for.

    Args:
      pixels: uint8 of shape (height, width, 3), RGB, of any size.
      settings: see FaceSettings.

    Returns:
      One score per detector, none for policy off. dlib: its confidence, -1 or more. OpenCV: the
      sum of the cascade's last stage. The value is None where the detector reports nothing.

    Raises:
      ValueError: the array is not an RGB image.
      MissingExtra: dlib or OpenCV is not installed.

    Source: EqBen, appendix B.3 (frames with human faces are discarded, by face_recognition).
    """
    check_pixels(pixels)
    contiguous = np.ascontiguousarray(pixels)
    return [_SCORERS[name](contiguous, settings) for name in _thresholds(settings)]


def scoring_basis(settings: FaceSettings) -> dict[str, object]:
    """Returns what the scores depend on beside the image; thresholds do not belong to it."""
    return {
        "version": VERSION,
        "detectors": sorted(_thresholds(settings)),
        "upsample": settings.face_upsample,
        "opencv_scale": settings.face_opencv_scale,
        "opencv_neighbors": settings.face_opencv_neighbors,
    }


def has_face(scores: Sequence[Score], settings: FaceSettings) -> Rejection | None:
    """Rejects an image in which the detectors, by the policy, see a face.

    Raises:
      KeyError: the scores were made with a policy that runs other detectors.
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
    """Returns the detectors the policy runs, each with the score from which it sees a face."""
    if settings.face_policy == "off":
        return {}
    if settings.face_policy == "paper":
        return {DLIB: PAPER_THRESHOLD}
    return {DLIB: settings.face_threshold, OPENCV: settings.face_opencv_threshold}


class _Detectors(threading.local):
    """The detectors of one thread: neither library's may be shared between threads."""

    @functools.cached_property
    def dlib(self) -> Any:
        """The frontal face detector of dlib: HOG with a linear SVM."""
        return _import_dlib().get_frontal_face_detector()

    @functools.cached_property
    def opencv(self) -> Any:
        """The cascade of OpenCV for frontal faces."""
        cv2 = import_cv2()
        return cv2.CascadeClassifier(str(Path(cv2.data.haarcascades) / f"{CASCADE}.xml"))


_detectors = _Detectors()


def _score_dlib(pixels: NDArray[np.uint8], settings: FaceSettings) -> Score:
    """Scores with the call `face_recognition.face_locations` makes, at a lower threshold."""
    _, confidences, _ = _detectors.dlib.run(pixels, settings.face_upsample, SCORE_FLOOR)
    return Score(
        name=DLIB,
        value=_highest(confidences),
        scorer="dlib.get_frontal_face_detector",
        version=_import_dlib().__version__,
        settings=compact_json({"upsample": settings.face_upsample, "floor": SCORE_FLOOR}),
    )


def _score_opencv(pixels: NDArray[np.uint8], settings: FaceSettings) -> Score:
    """Scores with OpenCV's Haar cascade."""
    cv2 = import_cv2()
    _, _, weights = _detectors.opencv.detectMultiScale3(
        cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY),
        scaleFactor=settings.face_opencv_scale,
        minNeighbors=settings.face_opencv_neighbors,
        outputRejectLevels=True,
    )
    found = {
        "cascade": CASCADE,
        "scale_factor": settings.face_opencv_scale,
        "min_neighbors": settings.face_opencv_neighbors,
    }
    return Score(
        name=OPENCV,
        value=_highest(weights),
        scorer="cv2.CascadeClassifier",
        version=cv2.__version__,
        settings=compact_json(found),
    )


_SCORERS = {DLIB: _score_dlib, OPENCV: _score_opencv}


def _highest(values: Any) -> float | None:
    """Returns the greatest of some scores, to 6 decimals; None where there are none."""
    return round(max(float(value) for value in values), 6) if len(values) else None


def _import_dlib() -> Any:
    """Imports dlib, or names the extra that brings it."""
    try:
        import dlib
    except ImportError as error:
        raise MissingExtra("dlib", "faces") from error
    return dlib
