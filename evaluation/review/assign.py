"""Choose the items to review and assign them to reviewers, reproducibly by hashes of ids."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.ranges import check_range
from eqforge.core.visible import counted
from eqforge.evaluation.review.settings import Plan
from eqforge.evaluation.tables.samples import check_label_column
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.judgements import (
    OF_SOURCE,
    QUESTIONS,
    disputed_by_judges,
    disputed_by_rules,
)
from eqforge.schemas.tables.benchmark_rows import COMBINED
from eqforge.schemas.tables.datasets import table_type
from eqforge.schemas.tables.texts import Judgement
from eqforge.sources.errata import disagreed, read_decisions

_REPEATED: Final = 0.05
"""Share of a reviewer's items that are repeated, unannounced."""

_APART: Final = 10
"""Minimum number of other items between an item and its repeat."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One item on a reviewer's list."""

    number: int
    id: str
    is_repeat: bool


def hidden_id(name: str) -> str:
    """Return an id that reveals nothing about a sample, as reviewers could read the source."""
    return f"{rank('id', name):016x}"


def is_turned(task: Task, reviewer: str) -> bool:
    return bool(rank("turn", reviewer, task.id, str(task.is_repeat)) & 1)


def shuffled(label: str, task: Task, reviewer: str, count: int) -> list[int]:
    """Return `range(count)` in an order drawn by hash for a reviewer's task."""
    again = str(task.is_repeat)
    return sorted(range(count), key=lambda n: rank(label, reviewer, task.id, again, str(n)))


def rank(*words: str) -> int:
    """Return a number in [0, 2**64) that depends only on the words."""
    digest = hashlib.blake2b("\0".join(words).encode(), digest_size=8, person=b"review")
    return int.from_bytes(digest.digest(), "big")


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubtful:
    """Samples in doubt, and the number of samples that no judge was asked about."""

    ids: tuple[str, ...]
    unjudged: int = 0


def selected_items(dataset: Dataset, settings: Plan) -> Doubtful:
    is_judged = settings.disputed is not None or settings.unlikely is not None
    if settings.disagreed is None:
        named = is_judged and doubtful(dataset, settings.disputed, settings.unlikely)
        return named or Doubtful(ids=())
    only = disagreed(read_decisions(settings.disagreed))
    if not only:
        raise InputError(
            f"--disagreed {settings.disagreed}: nothing is left to review, because all reviewers "
            "voted and agreed"
        )
    if is_judged:
        raise InputError("--disagreed cannot be combined with --disputed or --unlikely")
    return Doubtful(ids=only)


def doubtful(
    dataset: Dataset,
    disputed: Literal["judges", "rules"] | None = None,
    unlikely: float | None = None,
) -> Doubtful:
    """Return the samples whose correctness is in doubt.

    Judges disagree with each other or with the rules, or the probability of being correct is
    unknown or below `unlikely`.
    """
    check_range("unlikely", unlikely, 0, 1)
    dataset.check_samples()
    rows = list(_judgements(dataset))
    if disputed is not None and not any(row.answers for row in rows):
        raise InputError(
            f"{dataset.folder} has no answers from judges; {judgement_advice(dataset)}"
        )
    if unlikely is not None and all(row.probability is None for row in rows):
        how = judgement_advice(dataset, "the rules of corrected mode")
        raise InputError(
            f"--unlikely: {dataset.folder} does not store how probable it is that a sample "
            f"is correct; {how}"
        )
    if unlikely is not None:
        generated = [row for row in rows if row.basis != OF_SOURCE]
        rows = [row for row in generated if row.probability is None or row.probability < unlikely]
    unjudged = 0
    if disputed is not None:
        unjudged = sum(not row.answers and row.basis != OF_SOURCE for row in rows)
        is_disputed = disputed_by_judges if disputed == "judges" else disputed_by_rules
        rows = [row for row in rows if is_disputed(row.answers)]
    if not rows:
        hint = f", but judges were not asked about {counted(unjudged, 'samples')}"
        raise InputError(f"{dataset.folder}: no samples are in doubt{hint if unjudged else ''}")
    return Doubtful(ids=tuple(row.sample_id for row in rows), unjudged=unjudged)


def _judgements(dataset: Dataset) -> Iterator[Judgement]:
    known = {row.sample_id: row for row in read_judgements(dataset)}
    beside = ["role"] if "role" in dataset.columns("samples") else []
    for row in dataset.rows("samples", ["sample_id", *beside]):
        name, is_original = row["sample_id"], row.get("role") == "original"
        yield known.get(name) or Judgement(
            sample_id=name,
            probability=None,
            low=None,
            high=None,
            basis=OF_SOURCE if is_original else "",
            answers=(),
        )


def read_judgements(dataset: Dataset) -> Iterator[Judgement]:
    for row in dataset.rows("judgements"):
        found = msgspec.convert(row, Judgement)
        for answer in found.answers:
            if answer.question not in QUESTIONS:
                raise InputError(
                    f"{dataset.folder}: a judgement answers the unknown question "
                    f"{shown(answer.question)}"
                )
        yield found


def judgement_advice(dataset: Dataset, options: str = "--verify") -> str:
    """Return the end of an error: how to get judgements for a dataset, if at all."""
    name = dataset.manifest.dataset
    if table_type(name, "judgements") is None:
        return f"eqforge judges only hard-positives and training-captions, not {name}"
    verb = "combine datasets that you built" if name in COMBINED else "build the dataset"
    return f"{verb} with {options}"


def chosen(dataset: Dataset, ids: Sequence[str], settings: Plan, only: Sequence[str]) -> list[str]:
    there = set(ids)
    if lost := [name for name in only if name not in there]:
        raise InputError(f"{dataset.folder} has no sample with the id {lost[0]!r} to review")
    of_each: dict[str, list[str]] = {}
    if (column := settings.each) is None:
        of_each[""] = list(only or ids)
    else:
        check_label_column(dataset.schema("samples"), column, dataset.folder)
        for row in dataset.rows("samples", ["sample_id", column]):
            if row["sample_id"] in there:
                of_each.setdefault(str(row[column]), []).append(row["sample_id"])
    return [
        name
        for _, names in sorted(of_each.items())
        for name in sorted(names, key=lambda each: (rank("sample", each), each))[: settings.sample]
    ]


def assign(
    ids: Sequence[str], reviewers: Sequence[str], overlap: int, *, repeats: bool = True
) -> dict[str, list[Task]]:
    """Assign items to the `overlap` reviewers with the fewest; ties go to the lowest rank."""
    item_lists: dict[str, list[str]] = {name: [] for name in sorted(reviewers)}
    for item in sorted(ids, key=lambda name: (rank("deal", name), name)):
        by_load = sorted(
            item_lists, key=lambda name: (len(item_lists[name]), rank("who", name, item), name)
        )
        for name in by_load[:overlap]:
            item_lists[name].append(item)
    return {name: _tasks(name, items, repeats=repeats) for name, items in item_lists.items()}


def _tasks(reviewer: str, items: Sequence[str], *, repeats: bool) -> list[Task]:
    order = sorted(items, key=lambda item: (rank("order", reviewer, item), item))
    shown: list[tuple[str, bool]] = []
    again = _repeats(reviewer, order) if repeats else {}
    for place, item in enumerate(order, start=1):
        shown.append((item, False))
        if place in again:
            shown.append((again[place], True))
    return [
        Task(number=number, id=item, is_repeat=is_repeat)
        for number, (item, is_repeat) in enumerate(shown, start=1)
    ]


def _repeats(reviewer: str, order: Sequence[str]) -> dict[int, str]:
    """Return repeated items by the number of items shown before them.

    Positions are drawn first, then an item far enough back for each. Drawing items first would
    crowd the repeats at the end, where reviewers would notice.
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
