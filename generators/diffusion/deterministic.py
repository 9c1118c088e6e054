"""Makes torch compute reproducibly."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def deterministic(threads: int) -> Iterator[None]:
    """Makes torch compute bit-reproducibly for the block, and restores its settings.

    On the CPU the number of threads decides how an image is split, and the ends of a part are
    rounded differently. If torch has no deterministic GPU algorithm for an operation, it warns.
    """
    import torch

    threads_before = torch.get_num_threads()
    enabled = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    memory: Any = torch.utils.deterministic
    fills = memory.fill_uninitialized_memory
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    memory.fill_uninitialized_memory = False
    try:
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            yield
    finally:
        torch.set_num_threads(threads_before)
        torch.use_deterministic_algorithms(enabled, warn_only=warns)
        memory.fill_uninitialized_memory = fills
