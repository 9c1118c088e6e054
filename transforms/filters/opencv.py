"""Imports OpenCV where it is used: on one thread, or with the extra that brings it named."""

from types import ModuleType

from eqforge.schemas.errors import MissingExtra


def import_cv2() -> ModuleType:
    """Imports OpenCV with its own threads off, because the runner already uses every core.

    Raises:
      MissingExtra: OpenCV is not installed.
    """
    try:
        import cv2
    except ImportError as error:
        raise MissingExtra("cv2", "video") from error
    cv2.setNumThreads(1)
    return cv2
