"""Reads ahead: the next things are made while the last ones are used."""

import queue
import threading
from collections.abc import Generator, Iterable
from typing import TypeVar

T = TypeVar("T")


def in_background(things: Iterable[T], held: int = 1) -> Generator[T]:
    """Yields things that another thread makes, in their order; to be closed where it is left early.

    Args:
      things: what is made; its errors are raised here.
      held: how many wait at most, beside the one that is being made.
    """
    made: queue.Queue[tuple[T] | BaseException | None] = queue.Queue(held)
    is_left = threading.Event()

    def make() -> None:
        try:
            for thing in things:
                if is_left.is_set():
                    return
                made.put((thing,))
            made.put(None)
        except BaseException as error:
            made.put(error)

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        while (found := made.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found[0]
    finally:
        is_left.set()
        while thread.is_alive():
            _drop(made)
            thread.join(0.01)


def _drop(made: "queue.Queue[tuple[T] | BaseException | None]") -> None:
    """Makes room for a thread that waits for it."""
    while not made.empty():
        made.get_nowait()
