"""Silences the messages and progress bars of diffusers and transformers."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Shows only errors of diffusers and transformers for the block."""
    from diffusers.utils import logging as diffusers_logging
    from transformers.utils import logging as transformers_logging

    levels = [(log, log.get_verbosity()) for log in (diffusers_logging, transformers_logging)]
    for log, _ in levels:
        log.set_verbosity_error()
        log.disable_progress_bar()
    try:
        yield
    finally:
        for log, level in levels:
            log.set_verbosity(level)
            log.enable_progress_bar()
