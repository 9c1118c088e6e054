"""Datasets of generated pairs, drawn until the requested number is kept.

Whether a draw is kept depends only on its kind and number, so the last draw that a dataset needs is
the same on any runner. Rounds find it: each makes and judges the next draws of every kind that
lacks pairs. The build itself reuses their results.
"""

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from tyro.conf import OmitArgPrefixes

from eqforge.core.files import storage
from eqforge.core.identity import Trace
from eqforge.core.ranges import check_range
from eqforge.pipelines.base.pipeline import (
    Configured,
    PilotCost,
    Pipeline,
    Record,
    RunPlan,
    RunSettings,
    Target,
)
from eqforge.schemas.records.stages import is_failure
from eqforge.schemas.tables.description import DatasetType
from eqforge.schemas.tables.generated import GENERATED_PAIRS
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.plan import PlanFiles, Selection, select_whole, write_plan
from eqforge.transforms.dataset.tables import Table, generated_tables
from eqforge.transforms.filters.images import ImageFilters
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.filters.perceptual import PerceptualSettings, prepare_perceptual
from eqforge.transforms.generated.pairs import GeneratedRules, drop_generated
from eqforge.transforms.generated.work import PairWork
from eqforge.transforms.oracle.judges import OracleSettings, prepare_oracle

if TYPE_CHECKING:
    import apache_beam as beam

Planned = TypeVar("Planned")
Loaded = TypeVar("Loaded")
Numbers = Mapping[str, range]
"""Draw numbers by kind."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawSettings:
    """Replacement of rejected pairs."""

    max_draws_per_pair: float = 4.0
    """Maximum number of attempts per requested pair. With 1, rejected pairs are not replaced."""

    def __post_init__(self) -> None:
        check_range("max_draws_per_pair", self.max_draws_per_pair, 1, 1000)


@dataclass(frozen=True, kw_only=True)
class PairFilters(ImageFilters):
    """Filters that reject generated pairs."""

    gates: OmitArgPrefixes[GateSettings] = field(default_factory=GateSettings)
    perceptual: Annotated[OmitArgPrefixes[PerceptualSettings], Trace.IF_CHANGED] = field(
        default_factory=PerceptualSettings
    )
    oracle: OmitArgPrefixes[OracleSettings] = field(default_factory=OracleSettings)

    distinct_captions: bool = True
    """Reject pairs with two identical captions. --no-distinct-captions keeps them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """Number of draws of one kind that a dataset takes, from the first on, and number kept."""

    number: int
    kept: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """Ids of the kept pairs of some draws, and the number of draws that raised an exception."""

    kept: tuple[str, ...]
    failed: int = 0


class GeneratedPipeline(Pipeline[Configured, Record]):
    """A dataset of generated pairs; a draw has a kind and a number from 0.

    Attributes:
      unit: the count of `measure` that is the number of candidate pairs.
    """

    config: Any
    unit = "pairs"
    type: DatasetType = GENERATED_PAIRS

    def tables(self, plan: PlanFiles) -> tuple[Table, ...]:
        run, media = self.run, MediaStore(self.media_root)
        pairs = plan.counts.get(self.unit, 0)
        return generated_tables(pairs, run.samples_per_file, run.images_per_file, media, self.type)

    def make(self, root: "beam.Pipeline", target: Target) -> "beam.PCollection[PairWork]":
        """Wire the steps that make and judge the pairs of a plan."""
        raise NotImplementedError

    def build(self, root: "beam.Pipeline", target: Target) -> None:
        from eqforge.transforms.dataset.steps import WriteDataset

        _ = self.make(root, target) | WriteDataset(target.dataset)

    def pair_counts(self) -> dict[str, int]:
        """Number of pairs of each kind to keep; empty if the inputs determine it."""
        return {}

    def supply(self, kind: str) -> int:
        raise NotImplementedError

    def most(self) -> dict[str, int]:
        return {
            kind: min(int(count * self.config.draws.max_draws_per_pair), self.supply(kind))
            if count
            else 0
            for kind, count in self.pair_counts().items()
        }

    def prepare_models(self) -> None:
        """Load models that measure pairs, so that missing packages show before any work."""
        settings = self.config.settings
        settings.prepare()
        prepare_perceptual(settings.perceptual)
        prepare_oracle(settings.oracle)

    def generated_rules(self, work: str, **others: Any) -> GeneratedRules:
        """Return the rules for measuring and judging pairs, with files below a folder or URL."""
        settings = self.config.settings
        return GeneratedRules(
            work=work,
            images=settings,
            gates=settings.gates,
            distinct_captions=settings.distinct_captions,
            perceptual=prepare_perceptual(settings.perceptual),
            oracle=prepare_oracle(settings.oracle),
            **others,
        )

    def planned_pairs(self, numbers: Numbers) -> Iterator[Record]:
        raise NotImplementedError

    def sample_id(self, kind: str, number: int) -> str:
        return f"{self.name}/{kind}/{number:06d}"

    def plan(self) -> Iterator[Record]:
        counts = self.most() if self.run.only else self.pair_counts()
        return self.planned_pairs({kind: range(count) for kind, count in counts.items()})

    def final_plan(self, plan: PlanFiles, run: "RunPlan | None", scratch: str) -> PlanFiles:
        """Return the plan with enough draws to keep the requested number of pairs."""
        if run is None:
            return plan
        wanted, most = self.pair_counts(), self.most()
        # Rejected pairs of a part of the draws are not replaced.
        if self.run.selection != Selection() or all(most[kind] <= wanted[kind] for kind in wanted):
            return plan
        folder = storage.join(self.work, "draws")
        noted = storage.join(folder, "judged.json")

        def written(numbers: Numbers, name: str) -> PlanFiles:
            return write_plan(self.planned_pairs(numbers), f"{scratch}/{name}", self.measure)

        def wire(root: "beam.Pipeline", target: Target) -> None:
            note_judged(self.make(root, target), noted)

        def judge(numbers: Numbers) -> Judged:
            first = min(draws.start for draws in numbers.values())
            if first:
                more = ", ".join(f"{len(draws):,} {kind}" for kind, draws in numbers.items())
                self._print(f"drawing replacements for rejected pairs: {more}")
            run(written(numbers, f"draws-{first}"), "draws", wire)
            return msgspec.json.decode(storage.read_bytes(noted), type=Judged)

        draws = draw_until_kept(wanted, most, self.sample_id, judge, self.run.max_error_rate)
        storage.delete_folder(folder)
        for kind, found in draws.items():
            if found.kept < wanted[kind] and found.number >= most[kind]:
                self._print(
                    f"WARNING: only {found.kept:,} of {wanted[kind]:,} {kind} pairs were "
                    f"kept after {found.number:,} draws; to draw more, raise --max-draws-per-pair"
                )
        settled = written({kind: range(each.number) for kind, each in draws.items()}, "settled")
        if settled.counts != plan.counts:
            print(self.described(settled), file=sys.stderr)
        return settled

    def _print(self, message: str) -> None:
        print(f"{self.name}: {message}", file=sys.stderr)


def draw_until_kept(
    wanted: Mapping[str, int],
    most: Mapping[str, int],
    sample_id: Callable[[str, int], str],
    judge: Callable[[Numbers], Judged],
    max_error_rate: float = 1.0,
) -> dict[str, Drawn]:
    """Return the draws of each kind that give the requested number of pairs, up to `most` draws.

    Args:
        sample_id: maps kind and number of a draw to its sample id.
        max_error_rate: stop if a larger share of the draws raised an exception.
    """
    done, failed = dict.fromkeys(wanted, 0), 0
    kept: dict[str, list[int]] = {kind: [] for kind in wanted}
    while ahead := _ahead(wanted, most, done, kept):
        judged = judge(ahead)
        names, failed = set(judged.kept), failed + judged.failed
        for kind, numbers in ahead.items():
            kept[kind] += (n for n in numbers if sample_id(kind, n) in names)
            done[kind] = numbers.stop
        if failed > max_error_rate * sum(done.values()):
            break
    found = {}
    for kind, number in wanted.items():
        is_enough = 0 < number <= len(kept[kind])
        draws = kept[kind][number - 1] + 1 if is_enough else done[kind]
        found[kind] = Drawn(number=draws, kept=min(len(kept[kind]), number))
    return found


def _ahead(
    wanted: Mapping[str, int],
    most: Mapping[str, int],
    done: Mapping[str, int],
    kept: Mapping[str, list[int]],
) -> dict[str, range]:
    """Return the draws of the next round, estimated from the share kept so far.

    A round at most doubles the draws, so that rarely kept kinds are not exhausted at once.
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


def note_judged(works: "beam.PCollection[PairWork]", url: str) -> None:
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


def select_pairs(
    pairs: Iterable[Planned], sample_id: Callable[[Planned], str], run: RunSettings
) -> Iterator[Planned]:
    groups = ((sample_id(pair), (pair,)) for pair in pairs)
    for (pair,) in select_whole(groups, run.selection, sample_id):
        yield pair


def try_making(
    load: Callable[[], Loaded], make: Callable[[Loaded], Iterable[PairWork]], rules: GeneratedRules
) -> PilotCost:
    """Make, measure and judge the pairs of a pilot; the time of `load` counts once."""
    started = time.perf_counter()
    maker = load()
    loaded = time.perf_counter()
    works = list(make(maker))
    seconds = time.perf_counter() - loaded
    decided = [drop_generated(work, rules) for work in works]
    measured = [(work.measured, work.scores) for work in works if work.measured is not None]
    return PilotCost(
        seconds=seconds,
        num_bytes=sum(work.made.num_bytes for work in works if work.made is not None),
        start_s=loaded - started,
        kept=sum(work.made is not None for work in decided),
        rejects=[reject for work in decided for reject in work.rejects],
        images=[image.scores for found, _ in measured for image in found.images],
        pairs=[(found.measures, scores) for found, scores in measured],
    )
