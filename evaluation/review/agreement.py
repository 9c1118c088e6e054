"""How far reviewers agree with each other and with themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from eqforge.evaluation.review.votes import Vote
from eqforge.evaluation.statistics.shares import (
    LEVEL,
    NO_INTERVAL,
    Interval,
    Share,
    exact_interval,
)
from eqforge.schemas.late import numpy as np
from eqforge.schemas.records.reviews import VERDICTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESAMPLES: Final = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Reviewer:
    """How a reviewer answered.

    Attributes:
      name: of the reviewer.
      tasks: how many they had.
      answered: how many of them they answered.
      answers: how often they gave each answer, without the repeats.
      others: share of the votes of others on the same items that were theirs; None without any.
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
      alpha: Krippendorff's alpha for nominal answers; None where no item has two votes, or all
        votes are the same.
      interval: of alpha at 95 %, by resampling items; NaN where there is no alpha.
      items: how many items have votes.
      several: how many have two or more.
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


def counts_of(votes: Mapping[str, Mapping[str, Vote]]) -> NDArray[np.int64]:
    """Returns how often each answer was given on each item [items, 3], in the order of VERDICTS."""
    rows = [
        [sum(vote.answer == answer for vote in own.values()) for answer in VERDICTS]
        for own in votes.values()
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, len(VERDICTS))


def agreement(votes: Mapping[str, Mapping[str, Vote]], seed: int = 0) -> Agreement:
    """Returns how far reviewers agree on items.

    Args:
      votes: first votes by item and reviewer.
      seed: of the resampling of items.

    Source: Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability".
    """
    counts = counts_of(votes)
    several = counts[counts.sum(axis=1) > 1]
    value, interval = _alpha(several, np.arange(len(several)), seed)
    return Agreement(
        alpha=value,
        interval=interval,
        items=len(counts),
        several=len(several),
        unanimous=int(((several > 0).sum(axis=1) == 1).sum()),
    )


def alpha_of(counts: NDArray[np.int64]) -> float | None:
    """Returns Krippendorff's alpha of nominal answers; None where it is not defined.

    Args:
      counts: how often each answer was given on each item [items, answers], two votes or more each.
    """
    import krippendorff

    if not len(counts) or (counts.sum(axis=0) > 0).sum() < 2:
        return None
    return float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))


def _alpha(
    counts: NDArray[np.int64], items: NDArray[np.int64], seed: int
) -> tuple[float | None, Interval]:
    """Returns alpha and its interval.

    Args:
      counts: how often each answer was given [units, answers].
      items: the item of each unit [units], from 0.
      seed: of the resampling of items.
    """
    value, number = alpha_of(counts), len(set(items.tolist()))
    if value is None or number < 2:
        return value, NO_INTERVAL
    times = (np.bincount(draw, minlength=number) for draw in _resampled(number, seed))
    found = [alpha_of(np.repeat(counts, each[items], axis=0)) for each in times]
    # Where all votes of a draw are the same, nobody disagrees.
    known = [1.0 if each is None else each for each in found]
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return value, (float(low), float(high))


def reviewers_of(
    votes: Mapping[str, Sequence[Vote]], tasks: Mapping[str, int], seed: int = 0
) -> tuple[Reviewer, ...]:
    """Returns how each reviewer answered; `seed` is that of the resampling of items."""
    first = first_votes(votes)
    return tuple(_reviewer(name, some, tasks[name], first, seed) for name, some in votes.items())


def _reviewer(
    name: str,
    votes: Sequence[Vote],
    tasks: int,
    first: Mapping[str, Mapping[str, Vote]],
    seed: int,
) -> Reviewer:
    own = {vote.id: vote.answer for vote in votes if not vote.is_repeat}
    again = [vote for vote in votes if vote.is_repeat and vote.id in own]
    same = sum(vote.answer == own[vote.id] for vote in again)
    others, interval = _with_others(own, name, first, seed)
    alpha, alpha_interval = _alpha_with_others(own, name, first, seed)
    return Reviewer(
        name=name,
        tasks=tasks,
        answered=len(votes),
        answers={each: sum(found == each for found in own.values()) for each in VERDICTS},
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
    own: Mapping[str, str], name: str, first: Mapping[str, Mapping[str, Vote]], seed: int
) -> tuple[float | None, Interval]:
    """Returns the share of others' votes that are a reviewer's own, and its interval."""
    pairs = [
        [vote.answer == answer for reviewer, vote in first[item].items() if reviewer != name]
        for item, answer in own.items()
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
    own: Mapping[str, str], name: str, first: Mapping[str, Mapping[str, Vote]], seed: int
) -> tuple[float | None, Interval]:
    """Returns alpha of a reviewer's votes, each beside one of another, and its interval.

    Of others' votes none stands beside another, so that who they are careless with does not count.
    """
    both = [
        (item, (answer, vote.answer))
        for item, answer in own.items()
        for reviewer, vote in first[item].items()
        if reviewer != name
    ]
    counts = [[pair.count(answer) for answer in VERDICTS] for _, pair in both]
    _, items = np.unique([item for item, _ in both], return_inverse=True)
    return _alpha(np.array(counts, dtype=np.int64).reshape(-1, len(VERDICTS)), items, seed)


def _resampled(items: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yields places in `range(items)`, as many of them each time, with some twice."""
    rng = np.random.default_rng(seed)
    for _ in range(RESAMPLES):
        yield rng.integers(0, items, items)
