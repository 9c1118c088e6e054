"""Who sees what: by hashes of ids, so that the same options always give the same tasks."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_REPEATED: Final = 0.05
"""The share of a reviewer's items that come a second time, unannounced."""

_APART: Final = 10
"""So many tasks at least lie between an item and its repeat, where there are as many."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """Something that a reviewer is shown.

    Attributes:
      number: its place, from 1.
      id: of the item.
      is_repeat: whether the reviewer has seen it before.
      is_turned: whether the second picture stands first.
    """

    number: int
    id: str
    is_repeat: bool
    is_turned: bool


def rank(*words: str) -> int:
    """Returns a number in [0, 2**64) that depends on some words alone."""
    digest = hashlib.blake2b("\0".join(words).encode(), digest_size=8, person=b"review")
    return int.from_bytes(digest.digest(), "big")


def chosen(ids: Sequence[str], most: int | None) -> list[str]:
    """Returns the ids with the least ranks, in this order; all if there is no limit."""
    return sorted(ids, key=lambda name: (rank("sample", name), name))[:most]


def assign(ids: Sequence[str], reviewers: Sequence[str], overlap: int) -> dict[str, list[Task]]:
    """Returns the tasks of each reviewer.

    Each item goes to `overlap` reviewers: those with the fewest so far, and among equals those of
    the least rank. Each reviewer has an order of their own.

    Args:
      ids: of the items.
      reviewers: their names.
      overlap: how many see each item.
    """
    own: dict[str, list[str]] = {name: [] for name in sorted(reviewers)}
    for item in sorted(ids, key=lambda name: (rank("deal", name), name)):
        by_load = sorted(own, key=lambda name: (len(own[name]), rank("who", name, item), name))
        for name in by_load[:overlap]:
            own[name].append(item)
    return {name: _tasks(name, items) for name, items in own.items()}


def _tasks(reviewer: str, items: Sequence[str]) -> list[Task]:
    """Returns a reviewer's tasks, with the hidden repeats among them."""
    order = sorted(items, key=lambda item: (rank("order", reviewer, item), item))
    count = round(_REPEATED * len(order)) or min(1, len(order) - 1)
    early = order[: max(1, len(order) - _APART)]
    twice = sorted(early, key=lambda item: (rank("repeat", reviewer, item), item))[:count]
    shown = [(item, False) for item in order]
    for item in twice:
        first = shown.index((item, False)) + 1 + _APART
        place = min(len(shown), first + rank("place", reviewer, item) % (len(order) or 1))
        shown.insert(place, (item, True))
    return [
        Task(
            number=number,
            id=item,
            is_repeat=is_repeat,
            is_turned=bool(rank("turn", reviewer, item, str(is_repeat)) & 1),
        )
        for number, (item, is_repeat) in enumerate(shown, start=1)
    ]
