"""Imports OpenCV single-threaded, or names the extra that provides it."""

from types import ModuleType

from eqforge.core.errors import MissingExtra


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
