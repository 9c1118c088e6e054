"""How far reviewers agree with each other and with themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from eqforge.core.late import numpy as np
from eqforge.evaluation.review.protocols import Form
from eqforge.evaluation.review.votes import Vote, answers_of
from eqforge.evaluation.statistics.shares import (
    LEVEL,
    NO_INTERVAL,
    Interval,
    Share,
    exact_interval,
)
from eqforge.schemas.records.reviews import VERDICTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]

Level = Literal["nominal", "ordinal"]
RESAMPLES: Final = 1_000

_LEVELS: Final[Mapping[Form, Level]] = {
    "decide": "nominal",
    "rank": "ordinal",
    "order": "ordinal",
    "write": "nominal",
    "box": "nominal",
}
"""What the values of answers are: names or ranks; texts and boxes have none."""

_COMPARED: Final[tuple[Form, ...]] = ("decide", "rank")
"""Forms whose answers are alike or not; two orders of 25 pictures hardly ever are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reviewer:
    """How a reviewer answered.

    Attributes:
      name: of the reviewer.
      tasks: how many they had.
      answered: how many of them they answered.
      answers: how often they gave each answer, without the repeats.
      others: share of the votes of others on the same items that were theirs, without what either
        skipped; None without any.
      others_interval: of this share at 95 %, by resampling items; NaN without any.
      alpha: Krippendorff's alpha of their votes, each beside one of another on the same item; None
        without any, or where all are the same.
      alpha_interval: of this alpha at 95 %, by resampling items; NaN where there is none.
      repeats: how many items they answered twice.
      same: how many of these they answered alike.
      same_interval: of the share answered alike at 95 %, exact (Clopper and Pearson); NaN where
        nothing was repeated.
      minutes: how long they took.
    """

    name: str
    tasks: int
    answered: int
    answers: dict[str, int]
    others: float | None
    others_interval: Interval
    alpha: float | None
    alpha_interval: Interval
    repeats: int
    same: int
    same_interval: Interval
    minutes: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """How far reviewers agree.

    Attributes:
      alpha: Krippendorff's alpha, of decisions for nominal and of ranks for ordinal answers; None
        where no item has two votes, all votes are the same, or texts or boxes are asked for.
      interval: of alpha at 95 %, by resampling items; NaN where there is no alpha.
      items: how many items have votes.
      several: how many have two or more that were not skipped.
      unanimous: how many of these all answered alike.
    """

    alpha: float | None
    interval: Interval
    items: int
    several: int
    unanimous: int


def first_votes(votes: Mapping[str, Sequence[Vote]]) -> dict[str, dict[str, Vote]]:
    """Returns each reviewer's first vote on each item, by item and reviewer."""
    found: dict[str, dict[str, Vote]] = {}
    for reviewer, some in votes.items():
        for vote in some:
            if not vote.is_repeat:
                found.setdefault(vote.id, {})[reviewer] = vote
    return {name: found[name] for name in sorted(found)}


def counts_of(votes: Mapping[str, Mapping[str, Vote]], form: Form = "decide") -> Counts:
    """Returns how often each value was given on each part of each item [items, parts, values].

    The one part of an item to decide on has the values of VERDICTS; those of an item with ranks are
    its captions, or its pictures, and their values the ranks from 1. Skipped ones have none.
    """
    parts = [
        [dict(_parts(vote, form)) for vote in own.values() if vote.answer != "skipped"]
        for own in votes.values()
    ]
    # Parts are counted within their item: of pictures, each text has its own.
    places = [
        {name: place for place, name in enumerate(sorted({name for vote in own for name in vote}))}
        for own in parts
    ]
    most = max((value for own in parts for vote in own for value in vote.values()), default=0)
    values = len(VERDICTS) if form == "decide" else most
    counts = np.zeros((len(parts), max([1, *map(len, places)]), values), dtype=np.int64)
    for item, own in enumerate(parts):
        for vote in own:
            for name, value in vote.items():
                counts[item, places[item][name], value - 1] += 1
    return counts


def _parts(vote: Vote, form: Form) -> Iterator[tuple[str, int]]:
    """Yields the parts of what was asked with the value that a vote gives each, from 1."""
    if form == "decide":
        yield "", 1 + VERDICTS.index(vote.verdict)
    for picture, ranks in enumerate(vote.ranks):
        yield from ((f"{picture} {place}", rank) for place, rank in enumerate(ranks))
    yield from ((name, place) for place, name in enumerate(vote.order, start=1))


def agreement(
    votes: Mapping[str, Mapping[str, Vote]], form: Form = "decide", seed: int = 0
) -> Agreement:
    """Returns how far reviewers agree on items.

    Args:
      votes: first votes by item and reviewer.
      form: how they answered.
      seed: of the resampling of items.

    Source: Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability".
    """
    counts = counts_of(votes, form)
    value, interval = _alpha(counts, np.arange(len(counts)), _LEVELS[form], seed)
    said = [
        [vote.said for vote in own.values() if vote.answer != "skipped"] for own in votes.values()
    ]
    shared = [own for own in said if len(own) > 1]
    return Agreement(
        alpha=value,
        interval=interval,
        items=len(votes),
        several=len(shared),
        unanimous=sum(len(set(own)) == 1 for own in shared),
    )


def alpha_of(counts: NDArray[np.int64], level: Level = "nominal") -> float | None:
    """Returns Krippendorff's alpha; None where it is not defined.

    Args:
      counts: how often each value was given on each part [..., values].
      level: whether values are names or ranks.
    """
    import krippendorff

    counts = counts.reshape(-1, max(1, counts.shape[-1]))
    counts = counts[counts.sum(axis=1) > 1]
    if not counts.size or (counts.sum(axis=0) > 0).sum() < 2:
        return None
    return float(krippendorff.alpha(value_counts=counts, level_of_measurement=level))


def _alpha(
    counts: Counts, items: NDArray[np.int64], level: Level, seed: int
) -> tuple[float | None, Interval]:
    """Returns alpha and its interval.

    Args:
      counts: how often each value was given on each part [units, parts, values].
      items: the item of each unit [units], from 0.
      level: as in alpha_of.
      seed: of the resampling of items.
    """
    several = (counts.sum(axis=2) > 1).any(axis=1)
    counts, items = counts[several], np.unique(items[several], return_inverse=True)[1]
    value, number = alpha_of(counts, level), int(items.max(initial=-1)) + 1
    if value is None or number < 2:
        return value, NO_INTERVAL
    times = (np.bincount(draw, minlength=number) for draw in _resampled(number, seed))
    found = [alpha_of(np.repeat(counts, each[items], axis=0), level) for each in times]
    # Where all votes of a draw are the same, nobody disagrees.
    known = [1.0 if each is None else each for each in found]
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return value, (float(low), float(high))


def reviewers_of(
    votes: Mapping[str, Sequence[Vote]],
    tasks: Mapping[str, int],
    form: Form = "decide",
    seed: int = 0,
) -> tuple[Reviewer, ...]:
    """Returns how each reviewer answered; `seed` is that of the resampling of items."""
    first = first_votes(votes) if form in _COMPARED else {}
    return tuple(
        _reviewer(name, some, tasks[name], first, form, seed) for name, some in votes.items()
    )


def _reviewer(
    name: str,
    votes: Sequence[Vote],
    tasks: int,
    first: Mapping[str, Mapping[str, Vote]],
    form: Form,
    seed: int,
) -> Reviewer:
    own = {vote.id: vote for vote in votes if not vote.is_repeat}
    again = [vote for vote in votes if vote.is_repeat and vote.id in own]
    same = sum(vote.said == own[vote.id].said for vote in again)
    others, interval = _with_others(own, name, first, seed)
    alpha, alpha_interval = _alpha_with_others(own, name, first, form, seed)
    return Reviewer(
        name=name,
        tasks=tasks,
        answered=len(votes),
        answers={
            each: sum(found.answer == each for found in own.values()) for each in answers_of(form)
        },
        others=others,
        others_interval=interval,
        alpha=alpha,
        alpha_interval=alpha_interval,
        repeats=len(again),
        same=same,
        same_interval=exact_interval(same / len(again), len(again)) if again else NO_INTERVAL,
        minutes=sum(vote.seconds for vote in votes) / 60,
    )


def _with_others(
    own: Mapping[str, Vote], name: str, first: Mapping[str, Mapping[str, Vote]], seed: int
) -> tuple[float | None, Interval]:
    """Returns the share of others' votes that are a reviewer's own, and its interval."""
    pairs = [
        [
            vote.said == mine.said
            for reviewer, vote in first.get(item, {}).items()
            if reviewer != name and "skipped" not in (vote.answer, mine.answer)
        ]
        for item, mine in own.items()
    ]
    counts = np.array([[sum(each), len(each)] for each in pairs if each], dtype=np.int64)
    if not len(counts):
        return None, NO_INTERVAL
    alike, total = counts.sum(axis=0)
    draws = [counts[draw].sum(axis=0) for draw in _resampled(len(counts), seed)]
    share = Share(
        value=float(alike / total),
        draws=np.array([right / of for right, of in draws]),
        clusters=float(total**2 / (counts[:, 1] ** 2).sum()),
        samples=float(total),
    )
    return share.value, share.interval()


def _alpha_with_others(
    own: Mapping[str, Vote],
    name: str,
    first: Mapping[str, Mapping[str, Vote]],
    form: Form,
    seed: int,
) -> tuple[float | None, Interval]:
    """Returns alpha of a reviewer's votes, each beside one of another, and its interval.

    Of others' votes none stands beside another, so that who they are careless with does not count.
    """
    both = [
        (item, {name: mine, reviewer: vote})
        for item, mine in own.items()
        for reviewer, vote in first.get(item, {}).items()
        if reviewer != name
    ]
    counts = counts_of({str(n): pair for n, (_, pair) in enumerate(both)}, form)
    _, items = np.unique([item for item, _ in both], return_inverse=True)
    return _alpha(counts, items, _LEVELS[form], seed)


def _resampled(items: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yields places in `range(items)`, as many of them each time, with some twice."""
    rng = np.random.default_rng(seed)
    for _ in range(RESAMPLES):
        yield rng.integers(0, items, items)
