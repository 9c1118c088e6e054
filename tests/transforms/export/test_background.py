"""Things that another thread makes."""

import threading
from collections.abc import Iterator

import pytest

from eqforge.transforms.export.background import in_background


def test_things_come_in_their_order_and_no_more_are_made_than_wait() -> None:
    made: list[int] = []

    def things() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number

    for number in in_background(things(), 2):
        assert len(made) - number <= 5
    assert made == list(range(100))


def test_an_error_is_raised_where_the_things_are_used() -> None:
    def things() -> Iterator[int]:
        yield 1
        raise OSError("full")

    found = in_background(things())
    assert next(found) == 1
    with pytest.raises(OSError, match="full"):
        next(found)


def test_what_is_left_early_leaves_no_thread() -> None:
    before = set(threading.enumerate())  # of which others may end meanwhile
    found = in_background(iter(range(1_000)))
    assert next(found) == 0
    found.close()
    assert set(threading.enumerate()) <= before
