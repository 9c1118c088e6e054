"""Turn the failure of one record into a rejection; failures of the run pass through."""

import re
from collections.abc import Callable
from typing import TypeVar

from eqforge.core.errors import EqforgeError
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import ERROR_PREFIX

Made = TypeVar("Made")


def error_rejection(error: Exception) -> Rejection:
    """Return the rejection of a record on which a step failed.

    Raises:
      EqforgeError, OSError, MemoryError, torch.AcceleratorError, torch.OutOfMemoryError: the run
        failed, not the record: a missing package, a full disk, no memory, a lost accelerator.
    """
    of_the_system = isinstance(error, OSError) and error.errno is not None
    of_the_device = type(error).__name__ in ("AcceleratorError", "OutOfMemoryError")
    if of_the_system or of_the_device or isinstance(error, EqforgeError | MemoryError):
        raise error
    # Memory addresses would make the same failure differ between processes.
    detail = re.sub(r"0x[0-9a-f]+", "0x", str(error))[:500]
    return Rejection(reason=f"{ERROR_PREFIX}{type(error).__name__}", detail=detail)


def guarded(make: Callable[[], Made]) -> Made | Rejection:
    try:
        return make()
    except Exception as error:
        return error_rejection(error)
