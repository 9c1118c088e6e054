"""Draws pairs until as many are kept as were asked for.

Which draws are kept depends on nothing but their kind and number, so the last one that a dataset
needs is the same on any runner. Rounds find it: each makes and judges the next draws of every kind
that lacks pairs. What they made is remembered, and the build itself takes it from there.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from eqforge.core.files import storage
from eqforge.core.ranges import check_range
from eqforge.pipelines.shared.settings import DatasetConfig, RunSettings, selection_of
from eqforge.schemas.records.books import is_failure
from eqforge.transforms.dataset.plan import Selection
from eqforge.transforms.generated.work import PairWork

if TYPE_CHECKING:
    import apache_beam as beam

    from eqforge.pipelines.shared.pipeline import Target

Configured = TypeVar("Configured", bound=DatasetConfig)
Numbers = Mapping[str, range]
"""Of each kind, the numbers of some draws."""

MAX_DRAWS_PER_PAIR = 4.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawSettings:
    """How long a dataset goes on for pairs in place of refused ones."""

    max_draws_per_pair: float = MAX_DRAWS_PER_PAIR
    """Where filters refuse pairs, others are drawn until as many are kept as were asked for, at
    most so many draws for each of them. 1 draws no others."""

    def __post_init__(self) -> None:
        """Checks the range.

        Raises:
          InputError: it is below 1.
        """
        check_range("max_draws_per_pair", self.max_draws_per_pair, 1, 1000)


@dataclass(frozen=True, kw_only=True, slots=True)
class Draws(Generic[Configured]):
    """How the pairs of a dataset are drawn; a draw is one of a kind, with a number from 0.

    Attributes:
      wanted: how many pairs of each kind are to be kept.
      most: how many may be drawn of each kind.
      plan: yields the plan's records of some draws.
      sample_id: the id of the sample that a draw of a kind and number becomes.
      make: wires what makes and judges the pairs of a plan.
    """

    wanted: Callable[[Configured], Mapping[str, int]]
    most: Callable[[Configured], Mapping[str, int]]
    plan: Callable[[Configured, Numbers], Iterator[Any]]
    sample_id: Callable[[str, int], str]
    make: "Callable[[beam.Pipeline, Target[Configured]], beam.PCollection[PairWork]]"


def draws_on(run: RunSettings) -> bool:
    """Tells whether refused pairs are replaced; not where a part of the draws is selected."""
    return selection_of(run) == Selection()


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """The draws of one kind that a dataset takes.

    Attributes:
      number: how many there are, from the first on.
      kept: how many of them are kept.
      wanted: how many were to be kept.
    """

    number: int
    kept: int
    wanted: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """What became of some draws.

    Attributes:
      kept: ids of the pairs that were kept.
      failed: how many draws ended in an exception.
    """

    kept: tuple[str, ...]
    failed: int = 0


def draw_until_kept(
    draws: Draws[Configured],
    config: Configured,
    judge: Callable[[Numbers], Judged],
    max_error_rate: float = 1.0,
) -> dict[str, Drawn]:
    """Returns how many draws of each kind give as many kept pairs as are wanted.

    Where the most draws that are allowed do not give as many, it is these.

    Args:
      draws: how the dataset draws.
      config: its settings.
      judge: makes and judges draws.
      max_error_rate: the share of the draws that may end in an exception; beyond, no more are made.
    """
    wanted, most = draws.wanted(config), draws.most(config)
    done, failed = dict.fromkeys(wanted, 0), 0
    kept: dict[str, list[int]] = {kind: [] for kind in wanted}
    while ahead := _ahead(wanted, most, done, kept):
        judged = judge(ahead)
        names, failed = set(judged.kept), failed + judged.failed
        for kind, numbers in ahead.items():
            kept[kind] += (n for n in numbers if draws.sample_id(kind, n) in names)
            done[kind] = numbers.stop
        if failed > max_error_rate * sum(done.values()):
            break
    return {kind: _drawn(done[kind], kept[kind], number) for kind, number in wanted.items()}


def _drawn(done: int, kept: list[int], wanted: int) -> Drawn:
    is_enough = 0 < wanted <= len(kept)
    number = kept[wanted - 1] + 1 if is_enough else done
    return Drawn(number=number, kept=min(len(kept), wanted), wanted=wanted)


def _ahead(
    wanted: Mapping[str, int],
    most: Mapping[str, int],
    done: Mapping[str, int],
    kept: Mapping[str, list[int]],
) -> dict[str, range]:
    """Returns the draws of the next round: as many as will do at the share that was kept so far.

    They are no more than there were before, so that a kind of which hardly any are kept is not
    drawn to the end at once.
    """
    found = {}
    for kind, number in wanted.items():
        missing, before = number - len(kept[kind]), done[kind]
        more = math.ceil(missing * (before + 1) / (len(kept[kind]) + 1)) if before else missing
        more = min(more, before or more)
        stop = min(before + max(more, 0), max(most[kind], number))
        if stop > before:
            found[kind] = range(before, stop)
    return found


def most_draws(
    wanted: Mapping[str, int], supply: Mapping[str, int], settings: DrawSettings
) -> dict[str, int]:
    """Returns how many may be drawn of each kind: what the settings allow, if there are as many."""
    allowed = {kind: int(count * settings.max_draws_per_pair) for kind, count in wanted.items()}
    return {kind: min(count, supply[kind]) for kind, count in allowed.items()}


def note_judged(works: "beam.PCollection[PairWork]", url: str) -> None:
    """Wires the note of what became of some draws, to be read by `judged_of`."""
    import apache_beam as beam

    _ = (
        works
        | "Judge" >> beam.FlatMap(_judged)
        | "AllJudged" >> beam.combiners.ToList()
        | "NoteJudged" >> beam.Map(partial(_write, url))
    )


def _judged(work: PairWork) -> Iterator[Judged]:
    if work.proposal is not None and work.made is not None and work.measured is not None:
        yield Judged(kept=(work.proposal.sample_id,))
    elif any(is_failure(reject.reason) for reject in work.rejects):
        yield Judged(kept=(), failed=1)


def _write(url: str, judged: Iterable[Judged]) -> None:
    found = [*judged]
    kept = tuple(sorted(name for each in found for name in each.kept))
    every = Judged(kept=kept, failed=sum(each.failed for each in found))
    storage.write_bytes(url, msgspec.json.encode(every))


def judged_of(url: str) -> Judged:
    """Returns what a round noted."""
    return msgspec.json.decode(storage.read_bytes(url), type=Judged)
