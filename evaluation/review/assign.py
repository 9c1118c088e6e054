"""Who sees what: by hashes of ids, so that the same options always give the same tasks."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_REPEATED: Final = 0.05
"""The share of a reviewer's items that come a second time, unannounced."""

_APART: Final = 10
"""So many other items at least lie between an item and its repeat."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """Something that a reviewer is shown; turned, its second picture stands first."""

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


def assign(
    ids: Sequence[str], reviewers: Sequence[str], overlap: int, *, repeats: bool = True
) -> dict[str, list[Task]]:
    """Returns the tasks of each reviewer.

    Each item goes to `overlap` reviewers: those with the fewest so far, and among equals those of
    the least rank. Each reviewer has an order of their own.

    Args:
      ids: of the items.
      reviewers: their names.
      overlap: how many see each item.
      repeats: whether some come a second time, hidden among the others.
    """
    own: dict[str, list[str]] = {name: [] for name in sorted(reviewers)}
    for item in sorted(ids, key=lambda name: (rank("deal", name), name)):
        by_load = sorted(own, key=lambda name: (len(own[name]), rank("who", name, item), name))
        for name in by_load[:overlap]:
            own[name].append(item)
    return {name: _tasks(name, items, repeats=repeats) for name, items in own.items()}


def _tasks(reviewer: str, items: Sequence[str], *, repeats: bool) -> list[Task]:
    order = sorted(items, key=lambda item: (rank("order", reviewer, item), item))
    shown: list[tuple[str, bool]] = []
    again = _repeats(reviewer, order) if repeats else {}
    for place, item in enumerate(order, start=1):
        shown.append((item, False))
        if place in again:
            shown.append((again[place], True))
    return [
        Task(
            number=number,
            id=item,
            is_repeat=is_repeat,
            is_turned=bool(rank("turn", reviewer, item, str(is_repeat)) & 1),
        )
        for number, (item, is_repeat) in enumerate(shown, start=1)
    ]


def _repeats(reviewer: str, order: Sequence[str]) -> dict[int, str]:
    """Returns what is repeated, by how many items were shown before.

    Places are drawn first, uniformly from those with room before them, and then for each an item
    that lies far enough back. Were items drawn first, the places would crowd at the end, and tell.
    """
    room = range(_APART + 1, len(order) + 1)
    count = min(round(_REPEATED * len(order)), len(room))
    found: dict[int, str] = {}
    left: list[str] = []
    far = 0
    for place in sorted(sorted(room, key=lambda each: rank("place", reviewer, str(each)))[:count]):
        left += order[far : place - _APART]
        far = place - _APART
        item = min(left, key=lambda name: (rank("repeat", reviewer, str(place), name), name))
        left.remove(item)
        found[place] = item
    return found
